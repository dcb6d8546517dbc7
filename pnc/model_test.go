package pnc

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// model is the rules written down a second time, as plainly as possible: a list of routes.
type model struct {
	cfg    Config
	routes map[RouteID]Route
	reach  map[netip.Addr]Reach
}

func newModel(cfg Config) *model {
	return &model{cfg: cfg, routes: map[RouteID]Route{}, reach: map[netip.Addr]Reach{}}
}

func (m *model) apply(us []Update) {
	for _, u := range us {
		u.Route.Prefix = u.Route.Prefix.Masked()
		if u.Withdraw {
			delete(m.routes, u.Route.ID())
		} else {
			m.routes[u.Route.ID()] = u.Route
		}
	}
	for a := range m.reach {
		if !slices.ContainsFunc(m.list(), func(r Route) bool { return r.Believed() && r.Proxy == a }) {
			delete(m.reach, a) // the table forgets what it has no route for
		}
	}
}

func (m *model) setReach(reach map[netip.Addr]Reach) {
	for _, r := range m.list() {
		if s, ok := reach[r.Proxy]; ok && r.Believed() {
			m.reach[r.Proxy] = s
		}
	}
}

func (m *model) list() []Route {
	var l []Route
	for _, r := range m.routes {
		l = append(l, r)
	}
	return l
}

func (m *model) place(s Source) int {
	order := append(slices.Clone(m.cfg.Preference), SourceStatic, SourceBGP, SourceISIS, SourceOSPF)
	return slices.Index(order, s)
}

// merit is smaller for the better of two believed routes.
func (m *model) merit(r Route) [3]int {
	v := [3]int{m.place(r.Source)}
	switch {
	case r.Source == SourceBGP && !r.Best:
		v[1] = 1
	case r.Source != SourceBGP:
		v[2] = int(r.Metric)
	}
	return v
}

// resolve gives the reason and the proxies that may be the answer.
func (m *model) resolve(context string, sender netip.Addr) (Reason, []netip.Addr) {
	if context != "" && !slices.Contains(m.cfg.Contexts, context) {
		return ReasonContextUnknown, nil
	}
	var matching []Route
	hideAbove := 999
	for _, r := range m.list() {
		if r.Context != context || !r.Prefix.Contains(sender) {
			continue
		}
		matching = append(matching, r)
		refused := r.Prefix.Bits() == 0 && !m.cfg.AllowDefault
		if r.Source == SourceStatic && r.Override && !refused {
			hideAbove = min(hideAbove, r.Prefix.Bits())
		}
	}
	matching = slices.DeleteFunc(matching, func(r Route) bool {
		return r.Source != SourceStatic && r.Prefix.Bits() > hideAbove
	})
	if len(matching) == 0 {
		return ReasonNoRoute, nil
	}
	longest := 0
	for _, r := range matching {
		longest = max(longest, r.Prefix.Bits())
	}
	matching = slices.DeleteFunc(matching, func(r Route) bool { return r.Prefix.Bits() != longest })
	if longest == 0 && !m.cfg.AllowDefault {
		return ReasonDefaultRouteRefused, nil
	}
	believed := slices.DeleteFunc(matching, func(r Route) bool { return !r.Believed() })
	if len(believed) == 0 {
		return ReasonNoProxy, nil
	}
	compare := func(a, b Route) int {
		ma, mb := m.merit(a), m.merit(b)
		if c := slices.Compare(ma[:], mb[:]); c != 0 {
			return c
		}
		return a.Proxy.Compare(b.Proxy)
	}
	slices.SortFunc(believed, compare)
	var usable []Route
	for _, r := range believed {
		if s := m.reach[r.Proxy]; s.Reachable && !s.Self {
			usable = append(usable, r)
		}
	}
	if len(usable) == 0 {
		if m.reach[believed[0].Proxy].Self {
			return ReasonSelfProxy, nil
		}
		return ReasonProxyUnreachable, nil
	}
	answers := []netip.Addr{usable[0].Proxy}
	if m.cfg.Share == ShareHash {
		for _, r := range usable[1:] {
			if m.merit(r) == m.merit(usable[0]) {
				answers = append(answers, r.Proxy)
			}
		}
	}
	return ReasonFound, answers
}

// world draws from few prefixes and proxies, so that everything meets everything.
type world struct{ *rand.Rand }

func (w world) prefix() netip.Prefix {
	if w.IntN(4) == 0 {
		a := netip.AddrFrom16([16]byte{0x20, 1, byte(w.IntN(2)), 0, byte(w.IntN(2)) << 7})
		return netip.PrefixFrom(a, []int{0, 16, 24, 32, 33, 64, 128}[w.IntN(7)]).Masked()
	}
	a := netip.AddrFrom4([4]byte{10, byte(w.IntN(3)), byte(w.IntN(3)) << 6, byte(w.IntN(4))})
	return netip.PrefixFrom(a, []int{0, 1, 8, 15, 16, 17, 24, 31, 32}[w.IntN(9)]).Masked()
}

func (w world) sender() netip.Addr {
	if w.IntN(4) == 0 {
		return netip.AddrFrom16([16]byte{0x20, 1, byte(w.IntN(2)), 0, byte(w.IntN(2)) << 7})
	}
	return netip.AddrFrom4([4]byte{10, byte(w.IntN(4)), byte(w.IntN(3)) << 6, byte(w.IntN(4))})
}

func (w world) proxy() netip.Addr {
	if w.IntN(5) == 0 {
		return netip.AddrFrom16([16]byte{0x20, 2, 15: byte(w.IntN(3))})
	}
	return netip.AddrFrom4([4]byte{198, 51, 100, byte(w.IntN(6))})
}

func (w world) context() string { return []string{"", "", "red", "blue"}[w.IntN(4)] }

func (w world) update() Update {
	u := Update{Withdraw: w.IntN(3) == 0, Route: Route{
		Context: w.context(), Prefix: w.prefix(), Source: Sources()[w.IntN(4)],
		PathID: uint32(w.IntN(2)), Best: w.IntN(2) == 0, Metric: uint32(w.IntN(2)),
	}}
	if u.Route.Source == SourceStatic {
		u.Route.Override = w.IntN(4) == 0
	}
	if w.IntN(4) > 0 {
		u.Route.Proxy = w.proxy()
		if w.IntN(8) == 0 {
			u.Route.Disregarded = DisregardNextHopMismatch
		}
	}
	return u
}

func (w world) reaches() map[netip.Addr]Reach {
	reach := map[netip.Addr]Reach{}
	for range w.IntN(6) {
		reach[w.proxy()] = Reach{Reachable: w.IntN(4) > 0, Self: w.IntN(6) == 0}
	}
	return reach
}

func (w world) config() Config {
	cfg := Config{AllowDefault: w.IntN(2) == 0, Share: Share(w.IntN(2))}
	if w.IntN(2) == 0 {
		cfg.Preference = []Source{Sources()[w.IntN(4)], Sources()[w.IntN(4)]}
	}
	if w.IntN(3) > 0 {
		cfg.Contexts = []string{"red"}
	}
	return cfg
}

// checkAgainst compares many answers, and the counts.
func checkAgainst(t *testing.T, m *model, tb *Table, w world, n int) {
	t.Helper()
	for range n {
		context, sender := w.context(), w.sender()
		got := tb.Resolve(context, sender, w.Uint64())
		reason, answers := m.resolve(context, sender)
		if got.Reason != reason || reason == ReasonFound && !slices.Contains(answers, got.Proxy) ||
			reason != ReasonFound && got.Proxy.IsValid() {
			t.Fatalf("Resolve(%q, %s) = %s %s, the model says %s %v\nconfig %+v\nroutes %+v\nreach %+v",
				context, sender, got.Reason, got.Proxy, reason, answers, m.cfg, m.list(), m.reach)
		}
	}
	capabilities := 0
	proxies := map[netip.Addr]bool{}
	for _, r := range m.list() {
		if r.Believed() {
			capabilities++
			proxies[r.Proxy] = true
		}
	}
	if n, c := tb.Snapshot().Len(); n != len(m.routes) || c != capabilities {
		t.Fatalf("%d routes, %d capabilities; the model has %d, %d", n, c, len(m.routes), capabilities)
	}
	if got := tb.Proxies(); len(got) != len(proxies) {
		t.Fatalf("proxies %v, the model has %v", got, proxies)
	}
}

// frozen is what a snapshot answered when it was taken.
type frozen struct {
	snapshot *Snapshot
	senders  []netip.Addr
	answers  []string
}

func freeze(s *Snapshot, w world) frozen {
	f := frozen{snapshot: s}
	for range 20 {
		f.senders = append(f.senders, w.sender())
	}
	f.answers = f.ask()
	return f
}

func (f frozen) ask() (answers []string) {
	for i, sender := range f.senders {
		for _, context := range []string{"", "red", "blue"} {
			r := f.snapshot.Resolve(context, sender, uint64(i))
			answers = append(answers, fmt.Sprint(r.Reason, r.Proxy, r.Version))
			for _, c := range f.snapshot.Candidates(context, sender) {
				answers = append(answers, fmt.Sprint(*c))
			}
		}
	}
	return answers
}

func TestResolveAgreesWithTheModel(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for seed := range uint64(rounds) {
		w := world{rand.New(rand.NewPCG(seed, 1))}
		cfg := w.config()
		m, tb := newModel(cfg), New(cfg)
		var old []frozen
		for step := range 60 {
			var us []Update
			for range 1 + w.IntN([]int{1, 4, 60}[w.IntN(3)]) {
				us = append(us, w.update())
			}
			m.apply(us)
			tb.Apply(t0, us...)
			if w.IntN(2) == 0 {
				reach := w.reaches()
				m.setReach(reach)
				tb.SetReachability(t0, reach)
			}
			if w.IntN(10) == 0 {
				m.cfg = w.config()
				tb.Reconfigure(t0, m.cfg)
			}
			checkAgainst(t, m, tb, w, 40)
			if step%10 == 0 {
				old = append(old, freeze(tb.Snapshot(), w))
			}
		}
		for _, f := range old {
			if got := f.ask(); !slices.Equal(got, f.answers) {
				t.Fatalf("seed %d: the snapshot of version %d changed", seed, f.snapshot.Version())
			}
		}
	}
}

// FuzzTable lets the input choose the updates; the model says what must come out.
func FuzzTable(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"))
	f.Add(make([]byte, 200))
	f.Fuzz(func(t *testing.T, in []byte) {
		w := world{rand.New(&bytesSource{in: in})}
		cfg := w.config()
		m, tb := newModel(cfg), New(cfg)
		for range min(len(in)/8, 40) {
			us := []Update{w.update(), w.update()}
			m.apply(us)
			tb.Apply(t0, us...)
			reach := w.reaches()
			m.setReach(reach)
			tb.SetReachability(t0, reach)
		}
		checkAgainst(t, m, tb, world{rand.New(rand.NewPCG(1, 2))}, 50)
	})
}

// bytesSource is a rand.Source that gives the input, then a mix of where it is.
type bytesSource struct {
	in  []byte
	pos uint64
}

func (b *bytesSource) Uint64() uint64 {
	b.pos++
	if len(b.in) == 0 {
		return mix(b.pos)
	}
	x := uint64(b.in[0])
	b.in = b.in[1:]
	return mix(x)
}
