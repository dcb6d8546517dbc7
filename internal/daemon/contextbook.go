package daemon

import (
	"maps"
	"slices"
	"sync"

	"pncd/dataplane/host"
	"pncd/internal/config"
	"pncd/proxyagent/translator"
)

// contextBook has the VPNs of every configuration so far that were on this host. Each has a number in the Source-QP
// map, which is never given to another, nor to the same name in another place: no flow of one is ever taken for a flow
// of another.
type contextBook struct {
	mu    sync.Mutex
	vpns  map[vpnKey]*vpn
	meant map[string]*vpn // by name, those in force
	names map[uint32]string
}

type vpnKey struct {
	name  string
	place host.Place
}

func newContextBook() *contextBook {
	return &contextBook{vpns: map[vpnKey]*vpn{}, meant: map[string]*vpn{}, names: map[uint32]string{0: ""}}
}

// number gives the number of a context, 0 that of the default one; false for one that was never on this host.
func (b *contextBook) number(name string) (uint32, bool) {
	if name == "" {
		return 0, true
	}
	v := b.named(name)
	if v == nil {
		return 0, false
	}
	return v.id, true
}

// named gives the VPN that a name means; nil for one that was never on this host.
func (b *contextBook) named(name string) *vpn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.meant[name]
}

// inUse lists the VPNs that names mean.
func (b *contextBook) inUse() []*vpn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.meant))
}

// name gives the name of the context with a number.
func (b *contextBook) name(id uint32) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.names[id]
}

// of gives the VPN of a configuration's context; nil for one that is not on this host.
func (b *contextBook) of(x *config.Context) *vpn {
	if !x.HasPlace() {
		return nil
	}
	key := vpnKey{x.Name, host.Place{Device: x.Device, Namespace: x.Namespace, Table: uint32(x.Table), Mark: uint32(x.Mark)}}
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.vpns[key]
	if v == nil {
		v = &vpn{name: x.Name, id: uint32(len(b.names)), place: key.place}
		b.vpns[key] = v
		b.names[v.id] = v.name
	}
	return v
}

// inForce makes the VPNs of a configuration those that their names mean.
func (b *contextBook) inForce(c *config.Config) {
	for i := range c.Contexts {
		if v := b.of(&c.Contexts[i]); v != nil {
			b.mu.Lock()
			b.meant[v.name] = v
			b.mu.Unlock()
		}
	}
}

// translated lists a configuration's VPNs as the translator has them.
func (b *contextBook) translated(c *config.Config) (out []translator.Context) {
	for i := range c.Contexts {
		if v := b.of(&c.Contexts[i]); v != nil {
			out = append(out, translator.Context{Name: v.name, ID: v.id, ServedPrefixes: c.Proxy.ServedIn(v.name), Local: v, Sender: v})
		}
	}
	return out
}
