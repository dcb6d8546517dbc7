package daemon

import (
	"fmt"
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
	vpns  map[string]*vpn   // by name and place
	ids   map[string]uint32 // by name, the one in force
	names map[uint32]string
}

func newContextBook() *contextBook {
	return &contextBook{vpns: map[string]*vpn{}, ids: map[string]uint32{"": 0}, names: map[uint32]string{0: ""}}
}

// number gives the number of a context; false for one that was never on this host.
func (b *contextBook) number(name string) (uint32, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, ok := b.ids[name]
	return id, ok
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
	place := host.Place{Device: x.Device, Namespace: x.Namespace, Table: uint32(x.Table), Mark: uint32(x.Mark)}
	key := fmt.Sprintf("%s %+v", x.Name, place)
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.vpns[key]
	if v == nil {
		v = &vpn{name: x.Name, id: uint32(len(b.names)), place: place}
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
			b.ids[v.name] = v.id
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
