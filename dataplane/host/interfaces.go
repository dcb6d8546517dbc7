package host

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

// Interface is an interface with its addresses.
type Interface struct {
	Link
	Addresses []netip.Prefix // sorted
}

func (i Interface) equal(o Interface) bool {
	return i.Index == o.Index && i.Kind == o.Kind && i.MTU == o.MTU && slices.Equal(i.MAC, o.MAC) && i.Up == o.Up &&
		i.Carrier == o.Carrier && slices.Equal(i.Addresses, o.Addresses)
}

// InterfacesConfig is what Interfaces needs to know.
type InterfacesConfig struct {
	// Namespace is the path of a network namespace; empty means the process's own.
	Namespace string
	// Names are the interfaces to follow at first.
	Names []string
	// OnChange is told the interfaces that exist, from the goroutine of Run: at first, and when any of
	// them changed. It must not change them.
	OnChange func(map[string]Interface)
}

// Interfaces follows interfaces by their names: one that vanishes and comes back is followed again.
type Interfaces struct {
	follower
	cfg InterfacesConfig

	mu    sync.Mutex
	names []string
	told  map[string]Interface
}

// NewInterfaces makes a follower of interfaces. It does nothing before Run.
func NewInterfaces(cfg InterfacesConfig, log logrus.FieldLogger) *Interfaces {
	f := &Interfaces{follower: newFollower(cfg.Namespace, log), cfg: cfg, names: slices.Clone(cfg.Names)}
	f.follower.round = f.round
	f.follower.relevant = func(m *syscall.NetlinkMessage) bool {
		switch m.Header.Type {
		case unix.RTM_NEWLINK, unix.RTM_DELLINK, unix.RTM_NEWADDR, unix.RTM_DELADDR:
			return true
		}
		return false
	}
	return f
}

// Follow changes which interfaces are followed. OnChange is told once more, whether anything else changed or not.
func (f *Interfaces) Follow(names []string) {
	f.mu.Lock()
	f.names, f.told = slices.Clone(names), nil
	f.mu.Unlock()
	f.poke()
}

func (f *Interfaces) round(h *Host) error {
	f.rounds.Add(1)
	f.mu.Lock()
	names := f.names
	f.mu.Unlock()
	links, err := h.Links()
	if err != nil {
		return fmt.Errorf("list interfaces: %w", err)
	}
	addrs, err := h.Addresses()
	if err != nil {
		return fmt.Errorf("list addresses: %w", err)
	}
	found := map[string]Interface{}
	for _, l := range links {
		if slices.Contains(names, l.Name) {
			found[l.Name] = Interface{Link: l}
		}
	}
	for _, a := range addrs {
		if i, ok := found[a.Interface]; ok {
			i.Addresses = append(i.Addresses, a.Prefix)
			found[a.Interface] = i
		}
	}
	for _, i := range found {
		slices.SortFunc(i.Addresses, netip.Prefix.Compare)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(names, f.names) {
		return nil // of names that were replaced meanwhile: the next round is due
	}
	if f.told != nil && maps.EqualFunc(found, f.told, Interface.equal) {
		return nil
	}
	f.told = found
	if f.cfg.OnChange != nil {
		f.cfg.OnChange(maps.Clone(found))
	}
	return nil
}
