package telemetry

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
)

func TestLoggerFollowsLevelAndFormat(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(LogConfig{Level: "warning", Format: "json", Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("hidden")
	log.WithField("neighbor", "192.0.2.1").Warn("shown")
	var line map[string]string
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("not one JSON object: %q", out.String())
	}
	if line["msg"] != "shown" || line["neighbor"] != "192.0.2.1" || line["level"] != "warning" {
		t.Errorf("logged %v", line)
	}

	out.Reset()
	log, err = NewLogger(LogConfig{Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("hidden")
	log.Info("shown")
	if got := out.String(); !strings.Contains(got, "level=info msg=shown") || strings.Contains(got, "hidden") {
		t.Errorf("default logger wrote %q, want text at info", got)
	}
}

func TestBadLogSettingsNameFieldAndRule(t *testing.T) {
	for _, tt := range []struct {
		cfg  LogConfig
		want []string
	}{
		{LogConfig{Level: "loud"}, []string{"log.level", "loud", "debug"}},
		{LogConfig{Format: "xml"}, []string{"log.format", "xml", "json"}},
	} {
		_, err := NewLogger(tt.cfg)
		for _, w := range tt.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("NewLogger(%+v) = %v, want %q in it", tt.cfg, err, w)
			}
		}
	}
}

func TestSetLevelReturnsTheLevelBefore(t *testing.T) {
	log, err := NewLogger(LogConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if prev, err := SetLevel(log, "debug"); err != nil || prev != "info" {
		t.Errorf("SetLevel(debug) = %q, %v, want info", prev, err)
	}
	if _, err := SetLevel(log, "loud"); err == nil {
		t.Error("SetLevel(loud) succeeded")
	}
	if log.GetLevel() != logrus.DebugLevel {
		t.Errorf("level = %v, want debug kept after a bad one", log.GetLevel())
	}
}
