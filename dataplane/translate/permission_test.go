package translate

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pncd/dataplane/tap/kernel"
	"pncd/dataplane/tap/taptest"
)

func openAndClose() error {
	k, err := Open(Config{})
	if err != nil {
		return err
	}
	return k.Close()
}

// Three capabilities are enough; without one of them the error names them.
func TestCapabilities(t *testing.T) {
	taptest.Need(t)
	taptest.NeedPrivilegedBPF(t)
	if err := taptest.WithCapabilities(openAndClose, unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_NET_ADMIN); err != nil {
		t.Errorf("with all: %+v", err)
	}
	for _, caps := range [][]uint{{}, {unix.CAP_BPF, unix.CAP_NET_ADMIN}, {unix.CAP_PERFMON, unix.CAP_NET_ADMIN}} {
		if err := taptest.WithCapabilities(openAndClose, caps...); !errors.Is(err, kernel.ErrPermission) || !strings.Contains(err.Error(), "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN") {
			t.Errorf("with %v: %v", caps, err)
		}
	}
}
