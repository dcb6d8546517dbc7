package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/ipv4"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/internal/labtraffic"
	"pncd/proxyagent/message"
)

// The storm's limits. Notifications for few Source QPs come faster than the window and reach the limit of each; those
// for many reach that of all. The limits leave a machine with more to do than it can time to be late in.
const (
	stormQPs    = 160
	stormFew    = 10
	stormWindow = 10 * time.Millisecond
	stormPerQP  = 20
	stormTotal  = 2000
	stormBurst  = 200
	stormRecord = 4096
	stormLate   = 100 * time.Millisecond // for a second of a Source QP to begin behind the one before
)

// stormTime is how long each storm lasts: PNCD_STORM, as in 60s.
func stormTime(t *testing.T) time.Duration {
	text := os.Getenv("PNCD_STORM")
	if text == "" {
		return 3 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("PNCD_STORM: %v", err)
	}
	return d
}

// stormBed is the lab with an IS-IS adjacency beside the BGP sessions, between pncd and FRR on the proxy router, and
// with short hold timers.
func stormBed(t *testing.T) *bed.Bed {
	needFRR(t, "isisd")
	daemons := filepath.Join(t.TempDir(), "daemons")
	if err := os.WriteFile(daemons, []byte("bgpd=yes\nisisd=yes\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	timers := "      connect_retry: 1s\n      hold_time: 9s\n      keepalive: 3s\n"
	files := edited(t, "proxy.pncd.yaml",
		"      connect_retry: 1s\n      add_path: true\n    - ", timers+"      add_path: true\n    - ",
		"      connect_retry: 1s\n      add_path: true\nproxy", timers+"      add_path: true\nproxy",
		"proxy:\n", fmt.Sprintf("evidence: {records: %d}\n"+`isis:
  net: 49.0001.0000.0000.0010.00
  level: level-2
  circuits:
    - interface: isis0
      type: point-to-point
      hello: 1s
      veth: {peer: isis-r, addresses: [10.9.4.10/24], peer_addresses: [10.9.4.2/24]}
proxy:
  emit: packet
  pace: {window: %s, per_qp: %d, total: %d, burst: %d}
`, stormRecord, stormWindow, stormPerQP, stormTotal, stormBurst))
	for name, text := range edited(t, "proxy.frr.conf", "router bgp", `interface isis-r
 ip router isis 1
 isis network point-to-point
 isis circuit-type level-2-only
 isis hello-interval 1
 isis hello-multiplier 3
exit
router isis 1
 net 49.0001.0000.0000.0001.00
 is-type level-2-only
exit
router bgp`) {
		files[name] = text
	}
	for name, text := range edited(t, "path.clab.yml", "        - proxy.frr.conf:/etc/frr/frr.conf\n",
		"        - proxy.frr.conf:/etc/frr/frr.conf\n        - "+daemons+":/etc/frr/daemons\n") {
		files[name] = text
	}
	return upBedAlone(t, files)
}

// sessions are the routing sessions of the proxy's pncd, and since when each is up.
func sessions(ctx context.Context, b *bed.Bed) (string, error) {
	list, err := b.Proxy.Control.ListNeighbors(ctx, &pncv1.ListNeighborsRequest{})
	if err != nil {
		return "", err
	}
	out := ""
	for _, n := range list.GetNeighbors() {
		if n.GetState() != "established" {
			return "", fmt.Errorf("neighbour %s is %s", n.GetAddress(), n.GetState())
		}
		out += fmt.Sprint(n.GetAddress(), " flaps ", n.GetFlaps(), " since ", n.GetSince().AsTime(), "; ")
	}
	i, err := b.Proxy.ISIS.GetIsis(ctx, &pncv1.GetIsisRequest{})
	if err != nil {
		return "", err
	}
	for _, c := range i.GetCircuits() {
		for _, n := range c.GetNeighbors() {
			if n.GetState() == "up" {
				return out + fmt.Sprint("IS-IS ", n.GetSystemId(), " since ", n.GetSince().AsTime()), nil
			}
		}
	}
	return "", fmt.Errorf("no IS-IS adjacency: %v", i.GetCircuits())
}

// countArrived counts notifications that reach the proxy router's own IP, behind all queues but the socket's.
func countArrived(t *testing.T, b *bed.Bed) func() uint64 {
	t.Helper()
	const rules = `nft 'add table inet storm; add counter inet storm arrived; add chain inet storm in { type filter hook input priority 100; }; add rule inet storm in udp dport 1021 counter name arrived'`
	if out, err := b.Exec(testContext(t), bed.Router, "sh", "-c", rules); err != nil {
		t.Fatalf("nft: %v: %s", err, out)
	}
	return func() uint64 {
		t.Helper()
		out, err := b.Exec(testContext(t), bed.Router, "nft", "-j", "list", "counter", "inet", "storm", "arrived")
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Nftables []struct {
				Counter struct {
					Packets uint64 `json:"packets"`
				} `json:"counter"`
			} `json:"nftables"`
		}
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatalf("nft: %v: %s", err, out)
		}
		var n uint64
		for _, o := range answer.Nftables {
			n += o.Counter.Packets
		}
		return n
	}
}

// storm sends notifications, in turn, from the congestion node: rate of them a second, or with 0 as many as it can.
func storm(b *bed.Bed, notifications [][]byte, rate int, last time.Duration) (sent int, err error) {
	const batch = 64
	msgs := make([]ipv4.Message, batch)
	err = inNode(b.Lab, bed.Congestion, func() error {
		p := bed.PlanFor(4)
		c, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.Congestion, 0)), net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.Proxy, 1021)))
		if err != nil {
			return err
		}
		defer c.Close()
		out := ipv4.NewPacketConn(c)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		begin := time.Now()
		for now := begin; now.Sub(begin) < last; now = time.Now() {
			n := batch
			if rate > 0 {
				if n = min(batch, int(now.Sub(begin).Seconds()*float64(rate))-sent); n <= 0 {
					<-tick.C
					continue
				}
			}
			for i := range n {
				msgs[i].Buffers = [][]byte{notifications[(sent+i)%len(notifications)]}
			}
			done, err := out.WriteBatch(msgs[:n], 0)
			if err != nil {
				return err
			}
			sent += done
		}
		return nil
	})
	return sent, err
}

// slowed lets the proxy's pncd run for a quarter of the time only: as much as it then can read comes several times.
func slowed(t *testing.T, b *bed.Bed) (stop func()) {
	t.Helper()
	pncd := b.Programs(bed.Proxy)[0]
	return inBackground(t, "slowing pncd", func(ctx context.Context) error {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			var err error
			switch i % 4 {
			case 0:
				err = pncd.Signal(syscall.SIGSTOP)
			case 3:
				err = pncd.Signal(syscall.SIGCONT)
			}
			if err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return pncd.Signal(syscall.SIGCONT)
			case <-tick.C:
			}
		}
	})
}

var residentLine = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// resident is what the proxy's pncd holds in memory, in kB.
func resident(t *testing.T, b *bed.Bed) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.Programs(bed.Proxy)[0].Pid()))
	if err != nil {
		t.Fatal(err)
	}
	m := residentLine.FindSubmatch(text)
	if m == nil {
		t.Fatalf("no VmRSS in %s", text)
	}
	kb, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kb
}

// stormPhase is one storm and what came of it.
type stormPhase struct {
	name string
	qps  int
	rate int // notifications a second; 0: as many as can be sent

	arrived  uint64
	grew     map[string]uint64 // outcomes
	took     time.Duration     // until the last was sent, and a little more
	end      time.Time         // of the storm
	perQP    map[uint32][]pacedCNP
	known    float64 // share of the CNPs whose records came
	resident int     // kB, afterwards
}

// run sends the notifications, and waits until each that arrived has its outcome, and each CNP has come.
func (ph *stormPhase) run(t *testing.T, b *bed.Bed, notifications [][]byte, arrived func() uint64, seen *cnps, records *receipts, before ledger) ledger {
	t.Helper()
	begin, cnps, came := time.Now(), seen.count(), arrived()
	stop := func() {}
	if ph.rate == 0 {
		stop = slowed(t, b)
	}
	sent, err := storm(b, notifications[:ph.qps], ph.rate, stormTime(t))
	ph.end = time.Now()
	stop()
	if err != nil {
		t.Fatalf("%s: %v", ph.name, err)
	}
	ph.took = time.Since(begin)
	var l ledger
	wait(t, b, ph.name+": the counts to meet", func(ctx context.Context) (err error) {
		if l, err = ledgerOf(ctx, b.Proxy, "proxy"); err != nil {
			return err
		}
		if got, sum := l.received, l.sum; got != arrived() || got != sum || uint64(seen.count()) != l.by["translated"] {
			return fmt.Errorf("%d arrived, %d received, %d outcomes, %d CNPs seen: %v", arrived(), got, sum, seen.count(), nonzero(l.by))
		}
		return nil
	})
	ph.arrived, ph.grew = arrived()-came, map[string]uint64{}
	for outcome, n := range l.by {
		ph.grew[outcome] = n - before.by[outcome]
	}
	ph.perQP, ph.known = records.bySourceQP(t, seen, cnps)
	ph.resident = resident(t, b)
	t.Logf("%s: %d sent in %s, %d arrived, %v; records of %.0f %% of the CNPs; %d kB",
		ph.name, sent, ph.took.Round(time.Millisecond), ph.arrived, nonzero(ph.grew), 100*ph.known, ph.resident)
	return l
}

// check holds the CNPs to the limits, and the limits to what they allow.
func (ph *stormPhase) check(t *testing.T) {
	t.Helper()
	translated := ph.grew["translated"]
	if limit := uint64(ph.took.Seconds()*stormTotal) + stormBurst; translated > limit {
		t.Errorf("%s: %d CNPs in %s, the limit is %d", ph.name, translated, ph.took, limit)
	}
	for qp, list := range ph.perQP {
		if err := checkWindows(list); err != nil {
			t.Errorf("%s: QP 0x%06x: %v", ph.name, qp, err)
		}
		if limit := stormPerQP * (int(ph.took.Seconds()) + 2); len(list) > limit { // the storm begins and ends within a second of the QP's
			t.Errorf("%s: %d CNPs for QP 0x%06x in %s, the limit is %d", ph.name, len(list), qp, ph.took, limit)
		}
	}
	switch {
	case ph.rate == 0:
		if lost := ph.grew["receive-overflow"]; lost < ph.arrived/2 || translated == 0 {
			t.Errorf("%s: %d of %d were lost, %d translated", ph.name, lost, ph.arrived, translated)
		}
		return // a watcher may be too slow for its records
	case ph.qps == stormFew:
		if len(ph.perQP) != stormFew || ph.grew["paced"] == 0 {
			t.Errorf("%s: CNPs for %d QPs, %d paced", ph.name, len(ph.perQP), ph.grew["paced"])
		}
		for qp, list := range ph.perQP {
			if err := checkSeconds(list, ph.end); err != nil {
				t.Errorf("%s: QP 0x%06x: %v", ph.name, qp, err)
			}
		}
	default:
		if want := uint64(stormTime(t).Seconds() * stormTotal * 9 / 10); translated < want || ph.grew["rate-limited"] == 0 {
			t.Errorf("%s: %d CNPs in %s, %d at least are allowed; %d rate-limited", ph.name, translated, ph.took, want, ph.grew["rate-limited"])
		}
	}
	if ph.known < 0.9 {
		t.Errorf("%s: records of %.0f %% of the CNPs came", ph.name, 100*ph.known)
	}
}

// Notifications at twice the rate limit, for few Source QPs and for many, and then as many as this machine can send,
// which is more than twice of what pncd gets the time to read: each has one outcome, those dropped by the kernel
// included, and at most one CNP; each Source QP and all together get what their rate allows; routing sessions stay up
// and memory is what it was.
func TestAStormIsCountedPacedAndHarmsNoSession(t *testing.T) {
	b, p := stormBed(t), bed.PlanFor(4)
	seen, records := watchCNPs(t, b, bed.Sender), watchReceipts(t, b)
	g, _ := generate(t, b, p, labtraffic.GeneratorConfig{Rate: 300, Flows: labtraffic.FlowConfig{QPs: stormQPs, CM: true}})
	var notifications [][]byte
	for _, pair := range g.Pairs() {
		waitLearned(t, b, p.Sender, p.Receiver, pair.PeerQPN, pair.LocalQPN)
		n := message.Notification{Src: p.Sender, Dst: p.Receiver, SrcPort: pair.LocalPort, DstPort: 4791, Proto: 17, DestQP: pair.PeerQPN}
		text, err := n.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		notifications = append(notifications, text)
	}
	var up string
	wait(t, b, "routing sessions", func(ctx context.Context) (err error) { up, err = sessions(ctx, b); return err })
	arrived := countArrived(t, b)
	var all ledger
	memory := 0
	for _, ph := range []stormPhase{
		{name: "twice the rate limit, few QPs", qps: stormFew, rate: 2 * stormTotal},
		{name: "twice the rate limit", qps: stormQPs, rate: 2 * stormTotal},
		{name: "more than can be read", qps: stormQPs},
	} {
		all = ph.run(t, b, notifications, arrived, seen, records, all)
		ph.check(t)
		if memory > 0 && ph.resident > memory+memory/4 {
			t.Errorf("%s: %d kB are resident, %d before", ph.name, ph.resident, memory)
		}
		memory = max(memory, ph.resident)
		if after, err := sessions(testContext(t), b); err != nil || after != up {
			t.Errorf("%s: sessions are %s, %v; they were %s", ph.name, after, err, up)
		}
	}
	frames, err := b.Proxy.Counter(testContext(t), "sender", "frames")
	if err != nil || frames < all.by["translated"]*9/10 {
		t.Errorf("%d of %d CNPs went as frames, %v", frames, all.by["translated"], err)
	}
}
