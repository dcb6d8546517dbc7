package daemon

import (
	"context"
	"strings"
	"testing"
)

// What was counted stays when sockets are opened anew, and when they are raw ones from then on.
func TestCountsOfFramesOutliveTheirSockets(t *testing.T) {
	const proxy = "proxy:\n"
	r := start(t, strings.Replace(template, proxy, proxy+"  emit: packet\n", 1))
	count := func(name string) (value uint64, there bool) {
		for _, c := range r.Counters() {
			if c.GetPart() == "sender" && c.GetName() == name {
				return c.GetValue(), true
			}
		}
		return 0, false
	}
	toMyself := []byte{ // UDP to port 9 of 127.0.0.1, which goes by no frame
		0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0x7c, 0xce, 127, 0, 0, 1, 127, 0, 0, 1,
		0, 9, 0, 9, 0, 8, 0, 0,
	}
	turn := func(to func(context.Context) (bool, error)) {
		t.Helper()
		if _, err := to(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	turn(r.Enable)
	if n, err := r.sender.Send([][]byte{toMyself}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	turn(r.Disable)
	if left, there := count("left"); left != 1 {
		t.Errorf("disabled: %d left, %v", left, there)
	}
	turn(r.Enable)
	if left, _ := count("left"); left != 1 {
		t.Errorf("opened anew: %d left", left)
	}
	if _, err := r.edit(); err != nil {
		t.Fatal(err)
	}
	if left, there := count("left"); left != 1 {
		t.Errorf("raw: %d left, %v", left, there)
	}
	if all, there := count("destinations"); all != 0 || !there {
		t.Errorf("raw: %d destinations, %v", all, there)
	}
}
