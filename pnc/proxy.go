package pnc

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrProxyAddress is wrapped by what CheckProxy returns.
var ErrProxyAddress = errors.New("proxy address")

// CheckProxy says what is wrong with a proxy's address: it must be a unicast address without a zone
// that means something beyond one link and one host.
func CheckProxy(a netip.Addr) error {
	u := a.Unmap()
	var rule string
	switch {
	case !a.IsValid():
		rule = "is missing"
	case a.Zone() != "":
		rule = "must not have a zone"
	case u.IsUnspecified(), u.IsMulticast(), u == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		rule = "must be a unicast address"
	case u.IsLoopback():
		rule = "must not be a loopback address: on every node it is that node itself"
	case u.IsLinkLocalUnicast():
		rule = "must not be link-local"
	default:
		return nil
	}
	return fmt.Errorf("%w %s: %s", ErrProxyAddress, a, rule)
}
