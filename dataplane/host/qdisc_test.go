package host

import (
	"errors"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestMarkingQdiscIsThatOfTheInterface(t *testing.T) {
	n := newNamespace(t)
	n.veth("va", "vb")
	// Every kernel has pfifo, and few have one that marks.
	delete(unmarking, "pfifo")
	t.Cleanup(func() { unmarking["pfifo"] = true })
	n.ok(n.nl.QdiscAdd(&netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: n.link("va").Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		QdiscType:  "pfifo",
	}))
	for name, want := range map[string]string{"va": "pfifo", "vb": ""} {
		if got, err := MarkingQdisc(n.path, name); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	if _, err := MarkingQdisc(n.path, "vc"); !errors.As(err, &netlink.LinkNotFoundError{}) {
		t.Errorf("an interface that does not exist: %v", err)
	}
}
