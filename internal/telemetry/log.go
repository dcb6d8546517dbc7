package telemetry

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

// LogConfig says how to log. The zero value logs text at level info to nowhere: Output must be set.
type LogConfig struct {
	Level  string    // panic, fatal, error, warning, info, debug or trace; info when empty
	Format string    // text or json; text when empty
	Output io.Writer // where to write
}

// NewLogger returns a logger by cfg. The error names the field and what it accepts.
func NewLogger(cfg LogConfig) (*logrus.Logger, error) {
	level := cfg.Level
	if level == "" {
		level = logrus.InfoLevel.String()
	}
	lv, err := ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("log.level: %w", err)
	}
	log := logrus.New()
	log.SetLevel(lv)
	log.SetOutput(io.Discard)
	if cfg.Output != nil {
		log.SetOutput(cfg.Output)
	}
	switch cfg.Format {
	case "", "text":
		log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: time.RFC3339Nano})
	case "json":
		log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano})
	default:
		return nil, fmt.Errorf("log.format: %q is neither text nor json", cfg.Format)
	}
	return log, nil
}

// ParseLevel reads the name of a level. The error lists the names.
func ParseLevel(name string) (logrus.Level, error) {
	lv, err := logrus.ParseLevel(name)
	if err != nil {
		return 0, fmt.Errorf("%q is no log level: want one of %s", name, strings.Join(levelNames(), ", "))
	}
	return lv, nil
}

// SetLevel changes the level of log and returns the name of the one before.
func SetLevel(log *logrus.Logger, name string) (previous string, err error) {
	lv, err := ParseLevel(name)
	if err != nil {
		return "", err
	}
	previous = log.GetLevel().String()
	log.SetLevel(lv)
	return previous, nil
}

func levelNames() []string {
	names := make([]string, len(logrus.AllLevels))
	for i, l := range logrus.AllLevels {
		names[i] = l.String()
	}
	return names
}
