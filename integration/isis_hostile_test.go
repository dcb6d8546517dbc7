package integration

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/lab"
)

// An attacker on the segment of pncd pa and FRR r1 sends PDUs in the name of both: malformed, forged, recorded
// and changed ones. Recorded are only those of the time in which the adjacency was up: neither RFC 5304 nor RFC
// 5310 knows a hello of a life before from one of today.

const (
	hostileMaxLSPs = 2000
	// hostileMemory is what the attack may add to pncd's memory: a database of hostileMaxLSPs, 1,024 frames that
	// wait, of 1,500 octets at most, and what the garbage collector leaves of all that came.
	hostileMemoryKiB = 64 << 10
	// hostileRate is how many PDUs are sent in a second at most: it's about what is in them, not about the wire.
	hostileRate = 8000
)

func TestISISHostile(t *testing.T) {
	for _, v := range []struct {
		lan, secret bool
		pdus        int
	}{{true, true, 100_000}, {false, true, 100_000}, {true, false, 40_000}, {false, false, 40_000}} {
		t.Run(fmt.Sprintf("lan=%v authentication=%v", v.lan, v.secret), func(t *testing.T) { hostileISIS(t, v.lan, v.secret, v.pdus) })
	}
}

func hostileISIS(t *testing.T, lan, secret bool, pdus int) {
	l := upHostile(t, lan, secret)
	l.eventually("the domain is up", l.unhealthy)
	const seed = 20261
	t.Logf("seed %d", seed)
	l.run("sw", "ip", "link", "set", "p3", "type", "bridge_slave", "learning", "off") // what is for pncd alone gets there,
	l.run("sw", "ip", "link", "set", "p1", "type", "bridge_slave", "flood", "off")    // and nowhere else
	a := l.newAttacker(t, "evil", seed, lan, secret)
	l.vtysh("r1", "configure terminal", "interface eth2", "isis metric 20") // a new LSP
	l.changeSender()                                                        // and one of pa
	l.eventually("PDUs are recorded", a.missing)
	l.eventually("the domain is as it was", l.unhealthy)

	recorded := a.freeze()
	kinds := slices.DeleteFunc(slices.Clone(hostileKinds), func(k hostileKind) bool { return !secret && !k.plain })
	pid := l.Programs("pa")[0].Pid()
	since, flaps, databases, memory := l.neighbor("pa").GetSince().AsTime(), l.flaps(), l.databases(), residentKiB(t, pid)
	before, heard, dropped := l.quiet(a)
	begin := time.Now()
	for i := range pdus {
		a.from, a.to = [][6]byte{a.router, a.leaf}[a.rng.IntN(2)], a.group
		k := kinds[i%len(kinds)]
		if err := a.send(k.make(a)); err != nil {
			t.Fatalf("%s: %v", k.name, err)
		}
		if ahead := time.Duration(i)*time.Second/hostileRate - time.Since(begin); ahead > 10*time.Millisecond {
			time.Sleep(ahead)
		}
	}
	took := time.Since(begin)
	var counted string
	l.eventually("every PDU is accounted for", func() string {
		after, now, wire := l.quiet(a)
		received, outcomes := total(after.GetReceived())-total(before.GetReceived()), after.GetUsed()-before.GetUsed()+total(after.GetDropped())-total(before.GetDropped())
		// A link whose queue is full drops frames before pncd could count them.
		for end := range wire {
			wire[end] -= dropped[end]
		}
		lost, wanted := after.GetQueueOverflow()-before.GetQueueOverflow(), uint64(pdus)+now-heard
		counted = fmt.Sprintf("%d recorded; sent %d of %d kinds, and %d by the router; received %d, lost %d and on the links %v; used or dropped %d: %v; %v",
			recorded, pdus, len(kinds), now-heard, received, lost, wire, outcomes, after.GetDropped(), after.GetLevels()[0].GetCounters())
		got := received + lost + wire["sw:p2"] + wire["evil:eth1"]
		if received != outcomes || got < wanted || got > wanted+wire["sw:p3"] { // sw:p3: of what pncd heard and the attacker didn't
			return counted
		}
		return ""
	})
	t.Log(counted)
	grown := residentKiB(t, pid) - memory
	t.Logf("figure: %d PDUs in %s; memory grew by %d KiB from %d", pdus, took.Round(time.Millisecond), grown, memory)
	if grown > hostileMemoryKiB {
		t.Errorf("memory grew by %d KiB", grown)
	}
	l.eventually("the domain is what it was", func() string {
		if now := l.databases(); !maps.Equal(now, databases) {
			return fmt.Sprintf("%v, before %v", now, databases)
		}
		return l.unhealthy()
	})
	l.resolves("10.7.0.2", igpProxy)
	if n := l.neighbor("pa"); !n.GetSince().AsTime().Equal(since) {
		t.Errorf("pncd lost the adjacency: %v", n)
	}
	if now := l.flaps(); now != flaps {
		t.Errorf("FRR lost an adjacency: before\n%s\nnow\n%s", flaps, now)
	}
	if now := l.Programs("pa")[0].Pid(); now != pid {
		t.Errorf("pncd is another process")
	}
	for _, node := range slices.Concat(l.routers, l.leaves) {
		for _, p := range l.Programs(node) {
			if ended(p) {
				t.Errorf("%s: %s has ended", node, p.Name())
			}
		}
	}
}

// upHostile is pncd pa and FRR r1 on a segment with the attacker, FRR r2 behind r1, and pncd pb, which learns,
// behind r2.
func upHostile(t *testing.T, lan, secret bool) *isisLab {
	l := newISISLab(t)
	o := isisOptions{
		lan: lan, circuit: " isis csnp-interval 1\n isis hello-multiplier 10\n",
		keys: fmt.Sprintf("  max_lsps: %d\n", hostileMaxLSPs), hellos: "      multiplier: 10\n",
	}
	if secret {
		o.circuit += " isis password md5 hellokey\n"
		o.router = " domain-password md5 domainkey authenticate snp validate\n"
		o.keys += "  level_2_keys: [{algorithm: hmac-md5, password: domainkey}]\n"
		o.hellos += "      keys: [{algorithm: hmac-md5, password: hellokey}]\n"
	}
	l.build([]igpNode{
		{name: "sw", image: "bridge"}, {name: "evil", image: "debian"},
		{name: "r1", image: "frr", conf: o.frr(1, "eth1", "eth2"), exec: []string{"ip addr add 10.255.0.1/32 dev lo", "ip addr add 10.9.0.1/24 dev eth1", "ip addr add 10.9.2.1/24 dev eth2"}},
		{name: "r2", image: "frr", conf: o.frr(2, "eth1", "eth2"), exec: []string{"ip addr add 10.255.0.2/32 dev lo", "ip addr add 10.9.2.2/24 dev eth1", "ip addr add 10.9.3.2/24 dev eth2"}},
		{name: "pa", image: "pncd", conf: o.pncd("0010", igpProxyConf("10.1.0.0/24")), exec: []string{"ip addr add 10.9.0.10/24 dev eth1", "ip addr add " + igpProxy + "/32 dev lo"}},
		{name: "pb", image: "pncd", conf: o.pncd("0011", "node: pb\n"), exec: []string{"ip addr add 10.9.3.11/24 dev eth1", "ip route add " + igpProxy + "/32 via 10.9.3.2"}},
	}, [2]string{"r1:eth1", "sw:p1"}, [2]string{"pa:eth1", "sw:p2"}, [2]string{"evil:eth1", "sw:p3"}, [2]string{"r1:eth2", "r2:eth1"}, [2]string{"r2:eth2", "pb:eth1"})
	return l
}

// unhealthy says what is wrong in the domain.
func (l *isisLab) unhealthy() string {
	l.t.Helper()
	for _, r := range l.routers {
		text := l.vtysh(r, "show isis database")
		for _, lsp := range []string{"r1.00-00", "r2.00-00", "pa.00-00", "pb.00-00"} {
			if !strings.Contains(text, lsp) {
				return r + ": no " + lsp + ": " + text
			}
		}
	}
	for r, route := range map[string]string{"r1": "10.255.0.2/32", "r2": "10.255.0.1/32"} {
		if text := l.vtysh(r, "show ip route isis"); !strings.Contains(text, route) {
			return r + ": no route for " + route + ": " + text
		}
	}
	for _, leaf := range l.leaves {
		if n := l.neighbor(leaf); n.GetState() != "up" || l.isis(leaf).GetLevels()[0].GetReachable() == 0 {
			return leaf + ": " + fmt.Sprint(n)
		}
	}
	return ""
}

// databases lists the LSPs that each system has: those that live in FRR's.
func (l *isisLab) databases() map[string]string {
	l.t.Helper()
	out := map[string]string{}
	for _, r := range l.routers {
		var ids []string
		for _, m := range regexp.MustCompile(`(?m)^(\S+\.\d\d-\d\d) `).FindAllStringSubmatch(l.vtysh(r, "show isis database"), -1) {
			ids = append(ids, m[1])
		}
		slices.Sort(ids)
		out[r] = strings.Join(ids, " ")
	}
	for _, leaf := range l.leaves {
		var ids []string
		for _, lsp := range l.lsps(leaf, 2, "") {
			ids = append(ids, lsp.GetId())
		}
		out[leaf] = strings.Join(ids, " ")
	}
	return out
}

// quiet reads pa's counters at a moment in which nobody sends, how much the router has sent, and what ends of
// links have dropped.
func (l *isisLab) quiet(a *attacker) (*pncv1.GetIsisResponse, uint64, map[string]uint64) {
	l.t.Helper()
	var st *pncv1.GetIsisResponse
	var heard uint64
	l.eventually("the segment is quiet", func() string {
		heard, st = a.heard.Load(), l.isis("pa")
		idle := a.idle.Load()
		l.eventually("nothing is heard", func() string {
			if a.idle.Load() == idle {
				return "frames all the time"
			}
			return ""
		})
		// What one has and the other has not yet would show now.
		again := l.isis("pa")
		if now := a.heard.Load(); now != heard || total(again.GetReceived()) != total(st.GetReceived()) || again.GetQueueOverflow() != st.GetQueueOverflow() {
			return fmt.Sprintf("the router sent %d, and then %d", heard, now)
		}
		return ""
	})
	wire := map[string]uint64{}
	for _, end := range []string{"evil:eth1", "sw:p2", "sw:p3"} {
		node, name, _ := strings.Cut(end, ":")
		wire[end] = must(strconv.ParseUint(strings.TrimSpace(l.run(node, "cat", "/sys/class/net/"+name+"/statistics/tx_dropped")), 10, 64))
	}
	return st, heard, wire
}

func total(counters map[string]uint64) (n uint64) {
	for _, c := range counters {
		n += c
	}
	return n
}

// flaps is what FRR's routers say of how often their adjacencies were lost.
func (l *isisLab) flaps() string {
	l.t.Helper()
	var out []string
	for _, r := range l.routers {
		found := regexp.MustCompile(`(?m)Adjacency flaps: \d+`).FindAllString(l.vtysh(r, "show isis neighbor detail"), -1)
		if len(found) == 0 {
			l.t.Fatal("FRR counts no flaps")
		}
		out = append(out, r+": "+strings.Join(found, ", "))
	}
	return strings.Join(out, "\n")
}

// ended says whether a program has.
func ended(p *lab.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// residentKiB is the memory that a process has (proc(5), VmRSS).
func residentKiB(t *testing.T, pid int) int {
	t.Helper()
	text := string(must(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))))
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindStringSubmatch(text)
	if m == nil {
		t.Fatal(text)
	}
	return must(strconv.Atoi(m[1]))
}
