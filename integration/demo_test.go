package integration

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

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
		})
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
