package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// RemoveLeft removes what an earlier process has left of its taps in the network namespace of the calling thread, and says
// what, for people: its filters, with the qdiscs that it made for them, and what it pinned below root. With keepPins that
// stays, for Open to take it over.
//
// Nothing is removed while another process holds the pins, which may be alive: the error wraps ErrPinsHeld. Other errors
// name what is left, and the capability that is missing.
func RemoveLeft(root string, keepPins bool) (removed []string, err error) {
	nl, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("rtnetlink: %w", err)
	}
	defer nl.Close()
	filters, err := filtersLeft(nl)
	there := pinsThere(root)
	pinned := there && !keepPins
	if len(filters) == 0 && !pinned {
		return nil, err
	}
	p, perr := OpenPins(root)
	if perr != nil && (there || errors.Is(perr, ErrPinsHeld)) {
		return nil, errors.Join(err, fmt.Errorf("left are %d filters and what is pinned: %w", len(filters), byOwner(perr)))
	}
	// Without pins there is nothing to hold, and so nobody who could be asked.
	for _, f := range filters {
		name := fmt.Sprintf("filter %s of %s", filterName, interfaceName(f.LinkIndex))
		switch e := (&filterHook{nl: nl, filter: f}).remove(); {
		case errors.Is(e, unix.EPERM):
			err = errors.Join(err, fmt.Errorf("%s is left: CAP_NET_ADMIN is missing: %w", name, e))
		case e != nil:
			err = errors.Join(err, fmt.Errorf("%s is left: %w", name, e))
		default:
			removed = append(removed, name)
		}
	}
	if p == nil {
		return removed, err
	}
	if pinned {
		gone, e := p.removeAll()
		removed, err = append(removed, gone...), errors.Join(err, e)
	}
	return removed, errors.Join(err, p.Close())
}

// pinsThere says whether something may be pinned for the calling thread's network namespace.
func pinsThere(root string) bool {
	name, err := namespaceName()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(root, name))
	return err == nil
}

// byOwner says what is missing where a folder is somebody else's.
func byOwner(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("its owner or CAP_DAC_OVERRIDE is needed: %w", err)
	}
	return err
}

// removeAll removes all versions, and says what of, for people. None is open here.
func (p *Pins) removeAll() (removed []string, err error) {
	all, err := os.ReadDir(p.dir)
	if err != nil {
		return nil, byOwner(err)
	}
	for _, e := range all {
		dir := filepath.Join(p.dir, e.Name())
		name := "pinned in " + dir + programsIn(dir)
		if e := clearPins(dir); e != nil {
			err = errors.Join(err, fmt.Errorf("%s is left: %w", name, byOwner(e)))
			continue
		}
		removed = append(removed, name)
	}
	return removed, err
}

// programsIn names the interfaces that a version's programs are on.
func programsIn(dir string) string {
	var names []string
	all, _ := os.ReadDir(dir) // for people only
	for _, e := range all {
		if i, _, ok := parseLinkPin(e.Name()); ok {
			names = append(names, interfaceName(i))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", with programs on " + strings.Join(names, ", ")
}

func interfaceName(index int) string {
	if i, err := net.InterfaceByIndex(index); err == nil {
		return i.Name
	}
	return fmt.Sprintf("interface %d", index)
}
