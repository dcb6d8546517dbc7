package translate

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"pncd/dataplane/tap/taptest"
)

// veth takes tags off as adapters do.
func TestVLANTagsThatTheAdapterTakesOffAreRefusedWithWhatToDo(t *testing.T) {
	a, _ := taptest.Pair(t)
	for name, want := range map[string]string{
		"va":   "VLANs whose tags the adapter takes off: v.7 is on it, and rx-vlan-offload is on: 'ethtool -K va rxvlan off'",
		"gone": "VLANs whose tags the adapter takes off: v.7 is on it, and whether rx-vlan-offload is on is not known: no such device",
		"lo":   "",
	} {
		err := a.Do(func() error { return keepsTags(name, "v.7") })
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want || errors.Is(err, ErrVLAN) != (want != "") || errors.Is(err, unix.ENODEV) != (name == "gone") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
