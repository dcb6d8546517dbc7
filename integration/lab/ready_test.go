package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const notifying = `
name: t-ready
topology:
  nodes:
    a: {kind: linux, image: pncd}
`

// fakePncd writes a program in pncd's place.
func fakePncd(t *testing.T, script string) map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pncd")
	if err := os.WriteFile(path, []byte("#!/usr/bin/python3\nimport os, socket, time\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"pncd": path}
}

func TestUpReturnsWhenPncdSaysThatItIsReady(t *testing.T) {
	needRoot(t)
	opt := options(t)
	opt.Programs = fakePncd(t, `time.sleep(0.3)
open("/run/did", "w").close()
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect(os.environ["NOTIFY_SOCKET"])
s.send(b"STATUS=here\nREADY=1")
for _ in range(1000): s.send(b"STATUS=nobody must have to read this")
open("/run/said", "w").close()
time.sleep(600)
`)
	l := up(t, writeTopology(t, notifying), opt)
	if _, err := os.Stat(filepath.Join(l.RunDir("a"), "did")); err != nil {
		t.Errorf("Up returned before the program was ready: %v", err)
	}
	if err := l.WaitFor(testContext(t), func(context.Context) error {
		_, err := os.Stat(filepath.Join(l.RunDir("a"), "said"))
		return err
	}); err != nil {
		t.Errorf("the program waits for somebody to hear it: %v", err)
	}
}

func TestUpFailsWithTheLogWhenPncdEndsBeforeItIsReady(t *testing.T) {
	needRoot(t)
	opt := options(t)
	opt.Programs = fakePncd(t, "print('line 3: unknown key', flush=True)\nraise SystemExit(2)\n")
	l, err := Up(testContext(t), writeTopology(t, notifying), opt)
	if err == nil {
		t.Error(l.Down(), "Up succeeded")
	} else if !strings.Contains(err.Error(), "line 3: unknown key") {
		t.Errorf("error %v does not show the log", err)
	}
	assertGone(t, fmt.Sprintf("t-ready-%d", os.Getpid()), opt.StateDir)
}
