package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/igp/ospf/packet"
)

// An attacker is on the network of pncd pb and FRR r1, who authenticate each other, and in another area beside pb alone,
// where nothing is authenticated: there it plays two routers that pb is full with, and says what routers may and what
// they mustn't. The areas are the boundary: what the attacker says in its own is believed, as far as it is well
// formed and can be reached, and nothing of it may get into the other one.
//
// Everything malformed is for pncd alone.

const (
	// ospfHostileShots is how many packets each version sends, beside what its routers have to say.
	ospfHostileShots = 140_000
	// ospfHostileRate is how many packets of a version are sent in a second at most: it's about what is in them.
	ospfHostileRate = 5000
	// ospfHostileMemoryKiB is what the attack may add to pncd's memory: of each version three databases of 2 MiB, 1,024
	// packets that wait, of 64 KiB at most, and what the garbage collector leaves of all that came.
	ospfHostileMemoryKiB = 160 << 10
	// ospfHostileGoroutines is what may come and go without the attack: calls of this test.
	ospfHostileGoroutines = 20
)

func TestOSPFHostile(t *testing.T) {
	l := upOSPFHostile(t)
	l.eventually("r1 is full with both leaves", l.hostileNeighbors)
	attacks := []*ospfAttack{l.newOSPFAttack(t, packet.V2), l.newOSPFAttack(t, packet.V3)}
	l.vtysh("r1", "configure terminal", "interface eth2", "ip ospf cost 20", "ipv6 ospf6 cost 20") // a new LSA
	l.reload("pb", l.hostileLeaf(7))                                                               // and another mark
	l.eventually("the domain is up", l.hostileUnhealthy)
	pid := l.Programs("pb")[0].Pid()

	l.attack(attacks, "prepare", (*ospfAttack).prepare)
	since, changes, databases := l.hostileSince(), l.stateChanges(), l.hostileDatabases()
	goroutines, memory := l.goroutines("pb"), residentKiB(t, pid)
	begin := time.Now()
	l.attack(attacks, "attack", (*ospfAttack).shoot)
	took := time.Since(begin)
	l.attack(attacks, "account", (*ospfAttack).account)

	grown, now := residentKiB(t, pid)-memory, l.goroutines("pb")
	t.Logf("figure: 2 x %d packets in %s; memory grew by %d KiB from %d; %d goroutines, %d before", ospfHostileShots, took.Round(time.Millisecond), grown, memory, now, goroutines)
	if grown > ospfHostileMemoryKiB {
		t.Errorf("memory grew by %d KiB", grown)
	}
	if now > goroutines+ospfHostileGoroutines {
		t.Errorf("%d goroutines, %d before", now, goroutines)
	}
	l.eventually("the domain is what it was", func() string {
		if now := l.hostileDatabases(); !maps.Equal(now, databases) {
			return fmt.Sprintf("%v, before %v", now, databases)
		}
		return l.hostileUnhealthy()
	})
	if now := l.hostileSince(); !maps.Equal(now, since) {
		t.Errorf("adjacencies ended: %v, before %v", now, since)
	}
	if now := l.stateChanges(); now != changes {
		t.Errorf("FRR's adjacencies changed: before\n%s\nnow\n%s", changes, now)
	}
	if l.Programs("pb")[0].Pid() != pid || ended(l.Programs("pb")[0]) {
		t.Error("pncd is another process")
	}
}

// hostileLAN is the network's type for each version: both kinds are attacked.
var hostileLAN = map[packet.Version]string{packet.V2: "point-to-point", packet.V3: "broadcast"}

var ospfHostileKeys = map[packet.Version]string{
	packet.V2: "[{id: 1, algorithm: md5, password: secret}]",
	packet.V3: "[{id: 1, algorithm: hmac-sha-256, password: secret6, swap_protocol_id: true}]",
}

// hostileConf is the configuration of a leaf that marks the prefixes that end in n.
func hostileConf(name string, id, n int, links func(v packet.Version) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "node: %s\nenabled: true\ntelemetry: {listen: 127.0.0.1:9479}\n", name)
	fmt.Fprintf(&b, "proxy:\n  ipv4: 10.255.0.%d\n  ipv6: \"2001:db8:ffff::%d\"\n  taps: [lo]\n  accept_from: [10.0.0.0/8, \"2001:db8::/32\"]\n  senders:\n", id, id)
	fmt.Fprintf(&b, "    - {prefix: 10.%d.0.0/24, proxy: 10.255.0.%d}\n    - {prefix: \"2001:db8:%d::/48\", proxy: \"2001:db8:ffff::%d\"}\n", n, id, n, id)
	for _, v := range []packet.Version{packet.V2, packet.V3} {
		fmt.Fprintf(&b, "ospfv%d:\n  router_id: 10.254.0.%d\n  max_lsas: %d\n  timers: {min_ls_interval: 200ms, min_ls_arrival: 100ms, ack_delay: 200ms, spf: 100ms, spf_second: 50ms}\n  links:\n%s", v, id, hostileMaxLSAs, links(v))
	}
	return b.String()
}

func hostileLink(name, area, kind, more string) string {
	return fmt.Sprintf("    - {interface: %s, area: %s, type: %s, hello: 1s, dead: 20s, retransmit: 2s%s}\n", name, area, kind, more)
}

// hostileLeaf is the configuration of pb with the marks that end in n.
func (l *ospfLab) hostileLeaf(n int) string {
	return hostileConf("pb", 12, n, func(v packet.Version) string {
		return hostileLink("eth1", "0.0.0.0", hostileLAN[v], ", keys: "+ospfHostileKeys[v]) +
			hostileLink("eth2", "0.0.0.1", "broadcast", fmt.Sprintf(", max_neighbors: %d", hostileMaxNeighbors))
	})
}

// upOSPFHostile is pncd pb and FRR r1 on a segment with the attacker, pncd pa behind r1, and the attacker beside pb.
func upOSPFHostile(t *testing.T) *ospfLab {
	l := newOSPFLab(t)
	pb := l.hostileLeaf(6)
	pa := hostileConf("pa", 11, 1, func(packet.Version) string { return hostileLink("eth1", "0.0.0.0", "point-to-point", "") })
	const dead = " ip ospf dead-interval 20\n ipv6 ospf6 dead-interval 20\n"
	auth := [2]ospfAuth{
		{frr: " ip ospf authentication message-digest\n ip ospf message-digest-key 1 md5 secret\n"},
		{keys: "key chain k6\n key 1\n  key-string secret6\n  cryptographic-algorithm hmac-sha-256\n exit\nexit\n", frr: " ipv6 ospf6 authentication keychain k6\n"},
	}
	r1 := ospfRouter{n: 1, links: []ospfLink{
		{name: "eth1", lan: true, v2: auth[0], v3: auth[1], extra: dead + " ip ospf network point-to-point\n"},
		{name: "eth2", extra: dead},
	}}.node("frr", "10.9.0.1/24", "10.9.2.1/24")
	r1.exec = append(r1.exec, "ip addr add 2001:db8:9::1/64 dev eth1 nodad", "ip addr add 2001:db8:9:2::1/64 dev eth2 nodad")
	leaf := func(name, conf string, id int, peer, via, via6 string, more ...string) igpNode {
		return igpNode{name: name, image: "pncd", conf: conf, exec: append(more,
			fmt.Sprintf("ip addr add 10.255.0.%d/32 dev lo", id), fmt.Sprintf("ip addr add 2001:db8:ffff::%d/128 dev lo", id),
			fmt.Sprintf("ip route add 10.255.0.%s/32 via %s", peer, via), fmt.Sprintf("ip route add 2001:db8:ffff::%s/128 via %s", peer, via6))}
	}
	l.build([]igpNode{
		{name: "sw", image: "bridge"}, {name: "evil", image: "debian", exec: []string{"ip link set eth2 mtu 1500"}}, r1,
		leaf("pa", pa, 11, "12", "10.9.2.1", "2001:db8:9:2::1", "ip addr add 10.9.2.10/24 dev eth1", "ip addr add 2001:db8:9:2::10/64 dev eth1 nodad"),
		leaf("pb", pb, 12, "11", "10.9.0.1", "2001:db8:9::1", "ip addr add 10.9.0.10/24 dev eth1", "ip addr add 2001:db8:9::10/64 dev eth1 nodad", "ip link set eth2 mtu 1500", "sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.eth2.rp_filter=0", "ip addr add 10.66.255.17/16 dev eth2"),
	}, [2]string{"r1:eth1", "sw:p1"}, [2]string{"pb:eth1", "sw:p2"}, [2]string{"evil:eth1", "sw:p3"}, [2]string{"r1:eth2", "pa:eth1"}, [2]string{"evil:eth2", "pb:eth2"})
	// What is for pncd gets to pncd and to the attacker, and not to the router.
	l.run("sw", "ip", "link", "set", "p1", "type", "bridge_slave", "flood", "off")
	for _, port := range []string{"p2", "p3"} {
		l.run("sw", "ip", "link", "set", port, "type", "bridge_slave", "learning", "off", "fdb_flush")
	}
	return l
}

// hostileNeighbors says what is wrong with r1's adjacencies.
func (l *ospfLab) hostileNeighbors() string {
	l.t.Helper()
	for _, show := range []string{"show ip ospf neighbor", "show ipv6 ospf6 neighbor"} {
		if text := l.vtysh("r1", show); strings.Count(text, "Full") != 2 {
			return "r1: " + text
		}
	}
	return ""
}

// hostileUnhealthy says what is wrong in the domain.
func (l *ospfLab) hostileUnhealthy() string {
	l.t.Helper()
	if wrong := l.hostileNeighbors(); wrong != "" {
		return wrong
	}
	for _, q := range [][3]string{
		{"pb", "10.1.0.2", "10.255.0.11"}, {"pb", "2001:db8:1::2", "2001:db8:ffff::11"},
		{"pa", "10.7.0.2", "10.255.0.12"}, {"pa", "2001:db8:7::2", "2001:db8:ffff::12"},
	} {
		ctx, cancel := context.WithTimeout(l.ctx, 5*time.Second)
		r, err := pncv1.NewCapabilityServiceClient(l.dial(q[0])).Resolve(ctx, &pncv1.ResolveRequest{Sender: q[1]})
		cancel()
		if err != nil || r.GetProxy() != q[2] {
			return fmt.Sprintf("%s resolves %s to %s %s: %v", q[0], q[1], r.GetProxy(), r.GetReason(), err)
		}
	}
	return ""
}

// hostileRouter reads pb's router of a version.
func (l *ospfLab) hostileRouter(node string, v packet.Version) (*pncv1.OspfRouter, error) {
	ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
	defer cancel()
	st, err := pncv1.NewOspfServiceClient(l.dial(node)).GetOspf(ctx, &pncv1.GetOspfRequest{Version: uint32(v)})
	if err != nil {
		return nil, err
	}
	if len(st.GetRouters()) != 1 {
		return nil, fmt.Errorf("%s: %v", node, st)
	}
	return st.GetRouters()[0], nil
}

// hostileSince is since when pb is full with r1 and with the attacker's steady router.
func (l *ospfLab) hostileSince() map[string]string {
	l.t.Helper()
	out := map[string]string{}
	for _, v := range []packet.Version{packet.V2, packet.V3} {
		r := must(l.hostileRouter("pb", v))
		for _, x := range r.GetLinks() {
			for _, n := range x.GetNeighbors() {
				if id := n.GetRouterId(); id == "10.255.0.1" || id == steadyID.String() {
					out[fmt.Sprintf("OSPFv%d %s", v, id)] = n.GetState() + n.GetSince().AsTime().String()
				}
			}
		}
	}
	return out
}

// stateChanges is how often the states of FRR's neighbours have changed.
func (l *ospfLab) stateChanges() string {
	l.t.Helper()
	v2 := regexp.MustCompile(`\d+ state changes`).FindAllString(l.vtysh("r1", "show ip ospf neighbor detail"), -1)
	v3 := regexp.MustCompile(`\d+ .*state change|State Full.*`).FindAllString(l.vtysh("r1", "show ipv6 ospf6 neighbor detail"), -1)
	if len(v2) == 0 || len(v3) == 0 {
		l.t.Fatalf("FRR counts no changes: %v, %v", v2, v3)
	}
	return strings.Join(v2, ", ")
}

// hostileDatabases lists the LSAs of the backbone at the leaves, and the Extended Prefix LSAs of the domain's scope at
// r1, which is to get none.
func (l *ospfLab) hostileDatabases() map[string]string {
	l.t.Helper()
	out := map[string]string{}
	for _, leaf := range l.leaves {
		ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
		list := must(pncv1.NewOspfServiceClient(l.dial(leaf)).ListLsas(ctx, &pncv1.ListLsasRequest{Area: "0.0.0.0"}))
		cancel()
		var keys []string
		for _, x := range list.GetLsas() {
			if x.GetScope() != "area" { // a leaf keeps what is for the attacker's network alone
				continue
			}
			keys = append(keys, fmt.Sprintf("%d %s %s %s", x.GetVersion(), x.GetTypeName(), x.GetId(), x.GetRouter()))
		}
		out[leaf] = strings.Join(keys, "; ")
	}
	out["r1"] = strings.Join(regexp.MustCompile(`(?m)^7\..*$`).FindAllString(l.vtysh("r1", "show ip ospf database opaque-as"), -1), "; ")
	return out
}

// goroutines is how many a leaf has.
func (l *ospfLab) goroutines(node string) int {
	l.t.Helper()
	text := l.run(node, "bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/9479; printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3; cat <&3`)
	m := regexp.MustCompile(`(?m)^go_goroutines (\d+)`).FindStringSubmatch(text)
	if m == nil {
		l.t.Fatal("no go_goroutines among the metrics of ", node)
	}
	return must(strconv.Atoi(m[1]))
}

// attack runs a phase of both versions beside each other.
func (l *ospfLab) attack(attacks []*ospfAttack, what string, phase func(*ospfAttack, context.Context) error) {
	l.t.Helper()
	errs := make([]error, len(attacks))
	var wait sync.WaitGroup
	for i, x := range attacks {
		wait.Go(func() { errs[i] = phase(x, l.ctx) })
	}
	wait.Wait()
	for i, x := range attacks {
		l.t.Logf("%s: %s: %s", what, x.v, x.said)
		if errs[i] != nil {
			l.t.Errorf("%s: %s: %v", what, x.v, errs[i])
		}
	}
	if l.t.Failed() {
		l.t.FailNow()
	}
}

// ospfAttack is the attack of a version; one goroutine at a time uses it.
type ospfAttack struct {
	*ospfAttacker
	l            *ospfLab
	inner, outer *ospfWire
	inners       []ospfKind
	before       *pncv1.OspfRouter
	drops        map[string]uint64 // of the links' ends, before
	said         string
	err          error
}

func (l *ospfLab) newOSPFAttack(t *testing.T, v packet.Version) *ospfAttack {
	t.Helper()
	x := &ospfAttack{l: l, inner: openOSPFWire(t, l.Namespace("evil"), "eth2", v), outer: openOSPFWire(t, l.Namespace("evil"), "eth1", v), inners: slices.Concat(ospfPacketKinds, ospfLSAKinds)}
	mac := func(node, name string) [6]byte {
		return [6]byte(must(net.ParseMAC(strings.TrimSpace(l.run(node, "cat", "/sys/class/net/"+name+"/address")))))
	}
	address := func(name string) netip.Prefix {
		out := l.run("pb", "ip", "-o", map[packet.Version]string{packet.V2: "-4", packet.V3: "-6"}[v], "addr", "show", "dev", name, "scope", map[packet.Version]string{packet.V2: "global", packet.V3: "link"}[v])
		return netip.MustParsePrefix(strings.Fields(out)[3])
	}
	x.inner.leaf, x.outer.leaf, x.outer.router = mac("pb", "eth2"), mac("pb", "eth1"), mac("r1", "eth1")
	in := address("eth2")
	x.inner.leafAt, x.outer.leafAt = in.Addr(), address("eth1").Addr()
	x.ospfAttacker = newOSPFAttacker(v, 20263, 1, packet.ID(0x0AFE000C), in.Addr(), in.Masked(), func(s ospfShot) { x.fire(x.inner, s) })
	for _, p := range x.players { // nobody answers who has these addresses
		l.run("pb", "ip", "neigh", "replace", p.at.String(), "lladdr", net.HardwareAddr(x.inner.mac[:]).String(), "dev", "eth2", "nud", "permanent")
	}
	x.begin(time.Now())
	return x
}

func (x *ospfAttack) fire(w *ospfWire, s ospfShot) { x.err = errors.Join(x.err, w.send(s)) }

// work hears what there is, and says what routers have to.
func (x *ospfAttack) work(record bool) error {
	now := time.Now()
	err := x.inner.hear(func(from [6]byte, s ospfShot) {
		if from == x.inner.leaf {
			x.hear(now, s.from, s.to, s.payload)
		}
	})
	err = errors.Join(err, x.overhear(record))
	x.tick(now)
	return errors.Join(err, x.err)
}

// overhear counts what the router says to pncd, and records what both say.
func (x *ospfAttack) overhear(record bool) error {
	return x.outer.hear(func(from [6]byte, s ospfShot) {
		if from == x.outer.router && (s.to == x.group() || s.to == x.outer.leafAt) {
			x.outer.heard++
		}
		if record && (from == x.outer.router || from == x.outer.leaf) {
			x.record(s)
		}
	})
}

// until works until there is nothing wrong any more, for a minute at most.
func (x *ospfAttack) until(ctx context.Context, record bool, every time.Duration, wrong func() string) error {
	var last string
	next := time.Now()
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		if err := x.work(record); err != nil {
			return err
		}
		if time.Now().Before(next) {
			continue
		}
		if last = wrong(); last == "" {
			return nil
		}
		next = time.Now().Add(every)
	}
	return fmt.Errorf("waited in vain: %s", last)
}

// prepare brings up the players' adjacencies, and records what r1 and pb say.
func (x *ospfAttack) prepare(ctx context.Context) error {
	err := x.until(ctx, true, 10*time.Millisecond, func() string {
		for _, p := range x.players {
			if !p.full() {
				return p.id.String() + " is not full"
			}
		}
		return x.missing()
	})
	x.said = fmt.Sprintf("%d recorded", len(x.recorded))
	return err
}

// missing names what isn't recorded yet.
func (x *ospfAttack) missing() string {
	if n := len(x.recorded); n < 12 {
		return fmt.Sprintf("only %d packets", n)
	}
	for _, router := range []packet.ID{0x0AFF0001, x.victim} {
		for _, typ := range []packet.Type{packet.TypeHello, packet.TypeUpdate, packet.TypeAck} {
			if !slices.ContainsFunc(x.recorded, func(s ospfShot) bool {
				return len(s.payload) > x.v.HeaderLen() && packet.PeekType(s.payload) == typ && packet.PeekRouter(s.payload) == router
			}) {
				return fmt.Sprintf("nothing of type %s of %s", typ, router)
			}
		}
	}
	return ""
}

// shoot is the attack: a packet of five is for the outer network.
func (x *ospfAttack) shoot(ctx context.Context) error {
	if err := x.baseline(ctx); err != nil {
		return err
	}
	begin := time.Now()
	for i := range ospfHostileShots {
		w, k := x.inner, x.kind(i-i/5, x.inners)
		if i%5 == 4 {
			w, k = x.outer, ospfOuterKinds[i/5%len(ospfOuterKinds)]
		}
		if x.fire(w, k.make(x.ospfAttacker)); x.err != nil {
			return fmt.Errorf("%s: %w", k.name, x.err)
		}
		if err := x.pace(ctx, i, begin); err != nil {
			return err
		}
	}
	x.shaky().feigns = false
	x.said = time.Since(begin).Round(time.Millisecond).String()
	return ctx.Err()
}

// pace keeps to the rate, and behind pncd: what is lost on the way is no test of it.
func (x *ospfAttack) pace(ctx context.Context, i int, begin time.Time) error {
	if i%16 != 0 {
		return nil
	}
	for {
		if err := x.work(false); err != nil {
			return err
		}
		if time.Since(begin) >= time.Duration(i)*time.Second/ospfHostileRate || ctx.Err() != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if i%512 != 0 {
		return nil
	}
	return x.until(ctx, false, 5*time.Millisecond, func() string {
		now, err := x.l.hostileRouter("pb", x.v)
		if err != nil {
			return err.Error()
		}
		done := total(now.GetReceived()) - total(x.before.GetReceived()) + now.GetQueueOverflow() - x.before.GetQueueOverflow()
		if ahead := int64(x.inner.shots+x.outer.shots) - int64(done); ahead > 1024 {
			return fmt.Sprintf("pncd is %d packets behind", ahead)
		}
		return ""
	})
}

// ospfHostileEnds are those of links where packets for pncd can be lost.
var ospfHostileEnds = []string{"evil:eth1", "evil:eth2", "sw:p2", "sw:p3"}

func (x *ospfAttack) linkDrops() (map[string]uint64, error) {
	out := map[string]uint64{}
	for _, end := range ospfHostileEnds {
		node, name, _ := strings.Cut(end, ":")
		text, err := x.l.Exec(x.l.ctx, node, "cat", "/sys/class/net/"+name+"/statistics/tx_dropped")
		if err != nil {
			return nil, err
		}
		if out[end], err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// baseline waits for a moment in which pncd has counted all that was sent, and begins to count.
func (x *ospfAttack) baseline(ctx context.Context) (err error) {
	if x.drops, err = x.linkDrops(); err != nil {
		return err
	}
	return x.still(ctx, func(now *pncv1.OspfRouter) string {
		x.before = now
		x.inner.shots, x.inner.silent, x.outer.shots, x.outer.silent, x.outer.heard = 0, 0, 0, 0, 0
		return ""
	})
}

// still reads pncd's counters between two moments in which nothing was sent or heard, until f has nothing against them.
func (x *ospfAttack) still(ctx context.Context, f func(*pncv1.OspfRouter) string) error {
	var last *pncv1.OspfRouter
	var at uint64
	return x.until(ctx, false, 150*time.Millisecond, func() string {
		now, err := x.l.hostileRouter("pb", x.v)
		if err != nil {
			return err.Error()
		}
		if err := x.overhear(false); err != nil {
			return err.Error()
		}
		seen := x.inner.shots + x.outer.shots + x.outer.heard
		same := last != nil && seen == at && total(last.GetReceived()) == total(now.GetReceived()) && last.GetQueueOverflow() == now.GetQueueOverflow()
		was := last
		last, at = now, seen
		if !same {
			return fmt.Sprintf("packets all the time: %v, then %v", was, now)
		}
		return f(now)
	})
}

// account holds that each packet is counted: by its type, and as used or dropped.
func (x *ospfAttack) account(ctx context.Context) error {
	err := x.still(ctx, func(now *pncv1.OspfRouter) string {
		drops, err := x.linkDrops()
		if err != nil {
			return err.Error()
		}
		lost := now.GetQueueOverflow() - x.before.GetQueueOverflow()
		for end, n := range drops {
			lost += n - x.drops[end]
		}
		received := total(now.GetReceived()) - total(x.before.GetReceived())
		outcomes := now.GetUsed() - x.before.GetUsed() + total(now.GetDropped()) - total(x.before.GetDropped())
		sent := x.inner.shots + x.outer.shots + x.outer.heard
		x.said = fmt.Sprintf("sent %d inside, %d outside, %d by the router, and %d that pncd doesn't hear; received %d, lost %d, used or dropped %d: %v; %v; %v",
			x.inner.shots, x.outer.shots, x.outer.heard, x.inner.silent+x.outer.silent, received, lost, outcomes, now.GetReceived(), now.GetDropped(), now.GetCounters())
		if received != outcomes || received > sent || received+lost < sent {
			return x.said
		}
		return ""
	})
	return err
}
