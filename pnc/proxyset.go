package pnc

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
)

// proxyIndex numbers the proxies of a snapshot; zero is none.
type proxyIndex uint32

const noProxy proxyIndex = 0

// proxyState is what a snapshot knows about one proxy address.
type proxyState struct {
	addr  netip.Addr
	seed  uint64 // from the address alone, for rendezvous hashing
	reach Reach
	known bool // reach was told
}

// proxySet numbers the proxy addresses and keeps what is known of their reachability, so that a
// change of it costs as much as there are proxies, not prefixes.
//
// The slice of states is shared with snapshots. Appending to it is safe (a snapshot sees its own
// length only); an element that a snapshot may see is changed in a copy.
type proxySet struct {
	index     map[netip.Addr]proxyIndex
	states    []proxyState
	refs      []uint32     // routes by proxy
	free      []proxyIndex // numbers to use again
	unused    []proxyIndex // reached zero references since the last publish
	published int          // elements of states that a snapshot may see; zero after a copy
	changed   bool         // the set of addresses changed
}

func (p *proxySet) init() {
	p.index = map[netip.Addr]proxyIndex{}
	p.states = make([]proxyState, 1)
	p.refs = make([]uint32, 1)
}

// acquire counts one more route with this proxy and gives its number.
func (p *proxySet) acquire(addr netip.Addr) proxyIndex {
	if i, ok := p.index[addr]; ok {
		p.refs[i]++
		return i
	}
	state := proxyState{addr: addr, seed: proxySeed(addr)}
	var i proxyIndex
	if n := len(p.free); n > 0 {
		i = p.free[n-1]
		p.free = p.free[:n-1]
		*p.writable(i) = state
	} else {
		i = proxyIndex(len(p.states))
		p.states = append(p.states, state)
		p.refs = append(p.refs, 0)
	}
	p.refs[i] = 1
	p.index[addr] = i
	p.changed = true
	return i
}

// release counts one route less. The number is free only after the next publish, so that a route
// which moves within a batch keeps what is known of its proxy.
func (p *proxySet) release(i proxyIndex) {
	if i == noProxy {
		return
	}
	if p.refs[i]--; p.refs[i] == 0 {
		p.unused = append(p.unused, i)
	}
}

// setReach reports whether it changed anything.
func (p *proxySet) setReach(addr netip.Addr, r Reach) bool {
	i, ok := p.index[addr]
	if !ok || p.states[i].known && p.states[i].reach == r {
		return false
	}
	s := p.writable(i)
	s.reach, s.known = r, true
	return true
}

func (p *proxySet) writable(i proxyIndex) *proxyState {
	if int(i) < p.published {
		p.states = slices.Clone(p.states)
		p.published = 0
	}
	return &p.states[i]
}

// publish gives the states for a snapshot.
func (p *proxySet) publish() []proxyState {
	for _, i := range p.unused {
		addr := p.states[i].addr
		if p.refs[i] == 0 && p.index[addr] == i {
			delete(p.index, addr)
			p.free = append(p.free, i)
			p.changed = true
		}
	}
	p.unused = p.unused[:0]
	p.published = len(p.states)
	return p.states
}

func (p *proxySet) takeChanged() bool {
	c := p.changed
	p.changed = false
	return c
}

func (p *proxySet) addrs() []netip.Addr {
	return slices.SortedFunc(maps.Keys(p.index), netip.Addr.Compare)
}

// proxySeed depends on the address alone, so that every node and every run shares flows alike.
func proxySeed(addr netip.Addr) uint64 {
	b := addr.As16()
	return mix(binary.BigEndian.Uint64(b[:8]) ^ mix(binary.BigEndian.Uint64(b[8:])))
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood, 2014): every input bit changes every
// output bit with a probability near one half.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
