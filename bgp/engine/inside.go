package engine

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/netip"
	"sync"
)

// GoBGP decodes what a peer sends in a goroutine of its own, where a panic would end the process, and
// doesn't let anyone in between. So the connections with the peers are package relay's, and GoBGP has
// a connection over loopback in place of each. It knows a peer by an address of 127/8, which means
// nothing outside of this file: here, and nowhere else, the two are put in each other's place.

// insideFirst is the first address given to a peer. The host may use those in front of it.
var insideFirst = netip.AddrFrom4([4]byte{127, 64, 0, 1})

// insideRest is how many released addresses wait before the first of them is given out again, so that
// something late about a session isn't taken for the next one's. More wouldn't do: GoBGP leaves a key
// for each address on its listener, and the kernel bounds those.
const insideRest = 8

var errNoInside = errors.New("no loopback address is left")

// inside holds which address of 127/8 stands for which peer.
type inside struct {
	key string // the TCP MD5 key of all connections over loopback

	mu    sync.RWMutex
	peers map[netip.Addr]netip.Addr // by inside address
	next  netip.Addr
	free  []netip.Addr // the longest released first
}

func newInside() *inside {
	var secret [32]byte
	rand.Read(secret[:])
	return &inside{key: hex.EncodeToString(secret[:]), peers: map[netip.Addr]netip.Addr{}, next: insideFirst}
}

// take gives a peer an address.
func (i *inside) take(peer netip.Addr) (netip.Addr, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	a := i.next
	switch {
	case len(i.free) > insideRest:
		a, i.free = i.free[0], i.free[1:]
	case !a.IsLoopback():
		return netip.Addr{}, errNoInside
	default:
		i.next = a.Next()
	}
	i.peers[a] = peer
	return a, nil
}

func (i *inside) release(a netip.Addr) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, ok := i.peers[a]; ok {
		delete(i.peers, a)
		i.free = append(i.free, a)
	}
}

// real gives the peer that GoBGP means with an address. It isn't valid when there is none.
func (i *inside) real(text string) netip.Addr {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.peers[a]
}

// translate gives a text for GoBGP's log or API: the peer's address in place of its address inside.
func (i *inside) translate(text string) string {
	if a := i.real(text); a.IsValid() {
		return a.String()
	}
	return text
}

// hide gives a text for a request to GoBGP: the address inside in place of the peer's own.
func (i *inside) hide(text string) string {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return text
	}
	i.mu.RLock()
	defer i.mu.RUnlock()
	for at, peer := range i.peers {
		if peer == a {
			return at.String()
		}
	}
	return text
}
