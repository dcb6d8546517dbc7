package speaker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logs "github.com/sirupsen/logrus/hooks/test"

	"pncd/dataplane/tap/taptest"
	"pncd/igp"
	"pncd/igp/backoff"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
	"pncd/internal/testwait"
)

// host is a speaker at one end of a wire, in its namespace.
type host struct {
	*Speaker
	w      *wire
	link   string
	config Config
	log    *logs.Hook
	stop   func() // waits until Run has returned

	mu      sync.Mutex
	learned map[netip.Prefix]igp.Learned
}

// host begins to run a speaker whose link is down.
func (w *wire) host(router packet.ID, n *taptest.NS, link string) *host {
	w.Helper()
	log, hook := logs.NewNullLogger()
	h := &host{w: w, link: link, log: hook, learned: map[netip.Prefix]igp.Learned{}, config: Config{
		Version: w.v, Router: router, Carrier: marks.Carrier{Bit: 2}, AckDelay: 100 * time.Millisecond,
		MinLSInterval: 100 * time.Millisecond, MinLSArrival: time.Nanosecond, // no waits for retransmissions
		Links: []LinkConfig{{Name: link, Hello: time.Second, Dead: 4 * time.Second, Retransmit: time.Second}},
		SPF:   backoff.Config{Initial: 50 * time.Millisecond, Second: 100 * time.Millisecond, Max: time.Second},
	}}
	var err error
	h.Speaker, err = NewSpeaker(h.config, h.learn, log)
	w.ok(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Do(func() error { return h.Run(ctx) }) }() // Run opens the sockets, so it must be inside
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	})
	w.Cleanup(h.stop)
	return h
}

func (h *host) learn(all []igp.Learned) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range all {
		if l.Gone {
			delete(h.learned, l.Prefix)
		} else {
			h.learned[l.Prefix] = l
		}
	}
}

func (h *host) knows(p netip.Prefix) (igp.Learned, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, ok := h.learned[p]
	return l, ok
}

// up tells that the interface is up, with an address.
func (h *host) up(n *taptest.NS, address netip.Addr) Link {
	h.w.Helper()
	bits := map[packet.Version]int{packet.V2: 24, packet.V3: 64}[h.w.v]
	l := Link{Up: true, Index: h.w.index(n, h.link), MTU: 1500, Address: netip.PrefixFrom(address, bits)}
	h.w.ok(h.LinkChanged(h.w.Context(), h.link, l))
	return l
}

func (h *host) status() Status {
	h.w.Helper()
	st, err := h.Status(h.w.Context())
	h.w.ok(err)
	return st
}

// full says what is missing until the only neighbour is fully adjacent.
func (h *host) full() string {
	ns := h.status().Links[0].Neighbors
	if len(ns) != 1 || ns[0].State != neighbor.Full {
		return fmt.Sprintf("%s: neighbours %+v", h.link, ns)
	}
	return ""
}

// mark is a prefix of the wire's version to mark.
func (w *wire) mark() igp.Advertisement {
	if w.v == packet.V2 {
		return igp.Advertisement{Prefix: netip.MustParsePrefix("10.7.0.0/24"), Proxy: netip.MustParseAddr("10.7.0.1")}
	}
	return igp.Advertisement{Prefix: netip.MustParsePrefix("2001:db8:7::/64"), Proxy: netip.MustParseAddr("2001:db8:7::1")}
}

func TestTwoSpeakersLearnFromEachOther(t *testing.T) {
	eachVersion(t, func(w *wire) {
		a, b := w.host(1, w.a, "va"), w.host(2, w.b, "vb")
		mark := w.mark()
		a.Advertise([]igp.Advertisement{mark})
		a.up(w.a, w.va)
		b.up(w.b, w.vb)
		for _, h := range []*host{a, b} {
			testwait.UntilRight(t, h.full)
		}
		testwait.UntilRight(t, func() string {
			l, ok := b.knows(mark.Prefix)
			if !ok || !l.P || l.Originator != "0.0.0.1" || l.Proxy != mark.Proxy {
				return fmt.Sprintf("learned %+v", l)
			}
			return ""
		})
		db, err := b.Database(w.Context())
		w.ok(err)
		own, others := 0, 0
		for _, l := range db {
			if l.Own {
				own++
			} else {
				others++
			}
		}
		if own == 0 || others < 2 { // its router LSA, and what marks the prefix
			w.Errorf("the database has %d own LSAs and %d others", own, others)
		}
		if st := b.status(); st.QueueOverflow+st.SendErrors+st.Drops[DropMalformed]+st.Drops[DropChecksum]+st.Drops[DropAuthentication] != 0 {
			w.Errorf("overflow %d, send errors %d, drops %v", st.QueueOverflow, st.SendErrors, st.Drops)
		}
		b.mu.Lock()
		clear(b.learned)
		b.mu.Unlock()
		w.ok(b.Replay(w.Context()))
		testwait.Until(t, "a replay tells of the prefix once more", func() bool { _, ok := b.knows(mark.Prefix); return ok })

		a.stop()
		for _, e := range a.log.AllEntries() {
			if e.Level <= logrus.WarnLevel { // it was not by the end of its patience that it stopped
				w.Errorf("logged: %s", e.Message)
			}
		}
		testwait.Until(t, "what was marked is gone with a clean stop", func() bool { _, ok := b.knows(mark.Prefix); return !ok })
		if _, err := a.Status(w.Context()); !errors.Is(err, ErrStopped) {
			w.Errorf("a question after the end: %v", err)
		}
	})
}

func TestASpeakerFollowsItsInterface(t *testing.T) {
	eachVersion(t, func(w *wire) {
		a, b := w.host(1, w.a, "va"), w.host(2, w.b, "vb")
		a.up(w.a, w.va)
		up := b.up(w.b, w.vb)
		testwait.UntilRight(t, b.full)
		has := func() (is bool) {
			w.ok(b.shell.Ask(w.Context(), func(time.Time) { is = b.shell.HasLink("vb") }))
			return is
		}

		without := up
		without.Address = netip.Prefix{}
		w.ok(b.LinkChanged(w.Context(), "vb", without))
		if has() {
			w.Error("a socket for a link without an address")
		}
		b.up(w.b, w.vb)
		if !has() {
			w.Error("no socket for a link that can be used again")
		}
		bad := up
		bad.Index = 1 << 20
		if err := b.LinkChanged(w.Context(), "vb", bad); err == nil || !strings.HasPrefix(err.Error(), w.v.String()+": vb: ") {
			w.Errorf("an interface that is not there: %v", err)
		}
		if has() || b.status().Links[0].Link.Up {
			w.Error("the link is up without a socket")
		}
		b.up(w.b, w.vb)
		testwait.UntilRight(t, b.full)

		larger := up
		larger.MTU = 9000
		w.ok(b.LinkChanged(w.Context(), "vb", larger))
		if why := b.full(); why != "" || !has() {
			w.Errorf("another MTU ended the adjacency: %s", why)
		}
		w.ok(b.LinkChanged(w.Context(), "no such link", up))

		next := b.config
		next.Router = 9
		if err := b.Reconfigure(w.Context(), next); err == nil {
			w.Error("the router ID changed")
		}
		if why := b.full(); why != "" {
			w.Error(why)
		}
		a.stop() // while there is somebody to acknowledge
		next = b.config
		next.Links = nil
		w.ok(b.Reconfigure(w.Context(), next))
		if has() || len(b.status().Links) != 0 {
			w.Error("a link that was taken away has a socket")
		}
	})
}

func TestASpeakerTakesNoConfigurationThatIsWrong(t *testing.T) {
	if _, err := NewSpeaker(Config{Version: packet.V2}, nil, logrus.New()); err == nil || !strings.Contains(err.Error(), "router ID") {
		t.Errorf("%v", err)
	}
}
