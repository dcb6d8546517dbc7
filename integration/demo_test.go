package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"go.uber.org/goleak"

	"pncd/integration/demo"
)

func TestDemoShowsBothActs(t *testing.T) {
	needLab(t)
	for _, family := range []int{4, 6} {
		t.Run(map[int]string{4: "IPv4", 6: "IPv6"}[family], func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			var out bytes.Buffer
			err := demo.Run(testContext(t), demo.Options{
				Family: family, Out: &out, Patience: patience, Unique: true, Pncd: pncdBinary(t),
			})
			t.Logf("\n%s", out.String())
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"Partial set", "learned by connection management", "event number", "sender: CNP", "closed", "map-undecided"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the timeline does not show %q", want)
				}
			}
			var before float64
			for line := range strings.Lines(out.String()) {
				var now float64
				if n, _ := fmt.Sscanf(line, "%f s ", &now); n == 1 {
					if now < before {
						t.Errorf("the time falls from %f s to that of %q", before, line)
					}
					before = now
				}
			}
		})
	}
}

func TestDemoWithACaptureThatCannotServeFailsBeforeTheLabIsBuilt(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pcap")
	var file bytes.Buffer
	w := pcapgo.NewWriter(&file)
	if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	arp := make([]byte, 60)
	arp[12], arp[13] = 8, 6
	if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(arp), Length: len(arp)}, arp); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(empty, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.pcap"): "no such file",
		empty:                           "no RoCEv2 packet among 1",
	} {
		var out bytes.Buffer
		state := filepath.Join(dir, "state")
		err := demo.Run(testContext(t), demo.Options{Family: 4, PCAP: path, Out: &out, StateDir: state, Unique: true})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v, want %q and the file", err, want)
		}
		if _, err := os.Stat(state); err == nil || out.Len() > 0 {
			t.Errorf("a lab was begun: %q", out.String())
		}
	}
}

// interrupter ends a context when a text is written.
type interrupter struct {
	mu     sync.Mutex
	text   string
	cancel context.CancelFunc
}

func (w *interrupter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Contains(string(p), w.text) {
		w.cancel()
	}
	return len(p), nil
}

// TestMain finds what an interrupted demonstration would leave.
func TestInterruptedDemoFailsAndTakesEverythingDown(t *testing.T) {
	needLab(t)
	for _, at := range []string{"route reflector", "traffic starts", "Act 2"} {
		t.Run(at, func(t *testing.T) {
			ctx, cancel := context.WithCancel(testContext(t))
			defer cancel()
			err := demo.Run(ctx, demo.Options{
				Family: 4, Out: &interrupter{text: at, cancel: cancel}, Patience: patience, Unique: true, Pncd: pncdBinary(t),
			})
			if err == nil || !strings.Contains(err.Error(), "interrupted") {
				t.Errorf("error %v does not say that it was interrupted", err)
			}
			if after, err := leftovers(); err != nil || strings.Contains(after, "pncd-") {
				t.Errorf("left behind: %v\n%s", err, after)
			}
		})
	}
}
