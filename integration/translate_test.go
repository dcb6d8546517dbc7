package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/roce"
	"pncd/dataplane/tap"
	"pncd/integration/bed"
	"pncd/integration/lab"
	"pncd/internal/labtraffic"
	"pncd/proxyagent/message"
)

const inKernel = "  translate: kernel\n  translate_interfaces: [eth1, eth2]\n"

// takesXDP lets an interface of a node take what XDP sends from its veth peer: it needs a program of its own.
func takesXDP(t *testing.T, l *lab.Lab, node, iface string) {
	t.Helper()
	err := inNode(l, node, func() error {
		prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, Flags: unix.BPF_F_XDP_HAS_FRAGS, License: "Apache-2.0", Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R0, 2), asm.Return(), // XDP_PASS
		}})
		if err != nil {
			return err
		}
		defer prog.Close()
		l, err := netlink.LinkByName(iface)
		if err != nil {
			return err
		}
		x, err := link.AttachXDP(link.XDPOptions{Interface: l.Attrs().Index, Program: prog, Flags: link.XDPDriverMode})
		if err == nil {
			t.Cleanup(func() { _ = x.Close() }) // it may have gone with the interface
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wireCNPs keeps the CNPs that arrive at a host, octet by octet.
type wireCNPs struct {
	mu  sync.Mutex
	all [][]byte
}

func (c *wireCNPs) list() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([][]byte(nil), c.all...)
}

func captureCNPs(t *testing.T, b *bed.Bed, node string) *wireCNPs {
	t.Helper()
	c := &wireCNPs{}
	var ring *tap.Ring
	if err := inNode(b.Lab, node, func() (err error) {
		ring, err = tap.Open(tap.Config{Interface: "eth1"})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	inBackground(t, "tap at "+node, func(ctx context.Context) error {
		defer func() { _ = ring.Close() }()
		return ring.Run(ctx, func(f *tap.Frame) {
			var p roce.Packet
			if err := roce.ParseEthernet(f.Data, &p); err != nil || !p.IsCNP() {
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.all = append(c.all, bytes.Clone(p.IP))
		})
	})
	return c
}

// xdpAt shows the XDP program of an interface as the kernel's own tool does; empty without one.
func xdpAt(t *testing.T, b *bed.Bed, iface string) string {
	t.Helper()
	out, err := b.Exec(testContext(t), bed.Router, "ip", "link", "show", iface)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "xdp") {
		return ""
	}
	return string(out)
}

// passedOn sums what the kernel left to user space.
func passedOn(ctx context.Context, n *bed.Node) (sum uint64, err error) {
	r, err := n.Records.ListCounters(ctx, &pncv1.ListCountersRequest{})
	for _, c := range r.GetCounters() {
		if strings.HasPrefix(c.GetName(), "kernel-passed-on") {
			sum += c.GetValue()
		}
	}
	return sum, err
}

// The kernel translates what the congestion node notifies: each CNP at the sender is that of its record, octet by
// octet, counted once; the switch, a stop and a kill each end it.
func TestTranslatesInTheKernel(t *testing.T) {
	for _, family := range []int{4, 6} {
		t.Run(fmt.Sprintf("IPv%d", family), func(t *testing.T) {
			b, p := upBed(t, edited(t, "proxy.pncd.yaml", "  taps:", inKernel+"  taps:")), bed.PlanFor(family)
			takesXDP(t, b.Lab, bed.Sender, "eth1")
			seen := captureCNPs(t, b, bed.Sender)
			if err := b.Mark(testContext(t), true); err != nil {
				t.Fatal(err)
			}
			g, _ := generate(t, b, p, labtraffic.GeneratorConfig{Rate: 300})
			pair := g.Pairs()[0]
			waitLearned(t, b, p.Sender, p.Receiver, pair.PeerQPN, pair.LocalQPN)
			more := func(n int) {
				t.Helper()
				before := len(seen.list())
				wait(t, b, "CNPs", func(context.Context) error {
					if got := len(seen.list()) - before; got < n {
						return fmt.Errorf("%d CNPs", got)
					}
					return nil
				})
			}
			more(50)
			if err := b.Mark(testContext(t), false); err != nil {
				t.Fatal(err)
			}
			checkKernelTranslated(t, b, p, seen, pair.LocalQPN)
			checkKernelEnds(t, b, p, seen, more)
		})
	}
}

// checkKernelTranslated holds wire, counters, records and status against each other.
func checkKernelTranslated(t *testing.T, b *bed.Bed, p bed.Plan, seen *wireCNPs, qp uint32) {
	t.Helper()
	ctx := testContext(t)
	var l ledger
	wait(t, b, "as many CNPs as outcomes", func(ctx context.Context) (err error) {
		if l, err = ledgerOf(ctx, b.Proxy, "proxy"); err == nil && l.by["translated"] != uint64(len(seen.list())) {
			err = fmt.Errorf("%d translated, %d at the sender", l.by["translated"], len(seen.list()))
		}
		return err
	})
	up, err := passedOn(ctx, b.Proxy)
	if err != nil || l.received != l.sum || up+40 > l.by["translated"] {
		t.Errorf("%d received, outcomes %v, %d of them left to user space (%v)", l.received, nonzero(l.by), up, err)
	}
	want := map[string]bool{} // CNPs, by the records
	records := 0
	wait(t, b, "a record of each CNP", func(ctx context.Context) error {
		r, err := b.Proxy.Records.ListRecords(ctx, &pncv1.ListRecordsRequest{Filter: &pncv1.RecordFilter{Outcomes: []pncv1.Outcome{pncv1.Outcome_OUTCOME_PROXY_TRANSLATED}}})
		if err != nil {
			return err
		}
		clear(want)
		for _, x := range r.GetRecords() {
			tr := x.GetTranslation()
			c := roce.CNP{Src: p.Receiver, Dst: p.Sender, TOS: roce.DefaultCNPTOS, PKey: uint16(tr.GetEntry().GetPKey()), DestQP: tr.GetSourceQp(),
				SrcPort: message.EventPort(tr.GetReceipt()), IPID: uint16((tr.GetReceipt()-1)%0xFFFF) + 1}
			cnp, err := roce.AppendCNP(nil, &c)
			if err != nil || tr.GetSourceQp() != qp {
				return fmt.Errorf("record %v: %w", x, err)
			}
			want[string(cnp)] = true
		}
		if records = len(r.GetRecords()); uint64(records) != l.by["translated"] {
			return fmt.Errorf("%d records of %d", records, l.by["translated"])
		}
		return nil
	})
	for _, cnp := range seen.list() {
		if !want[string(cnp)] {
			t.Errorf("no record has the CNP %x", cnp)
		}
	}
	if len(want) != records {
		t.Errorf("%d records have %d receipt numbers", records, len(want))
	}
	s, err := b.Proxy.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	detail := ""
	for _, part := range s.GetParts() {
		if part.GetName() == "translate" {
			detail = part.GetDetail()
		}
	}
	if !strings.HasPrefix(detail, "kernel: XDP in the driver of eth1, XDP in the driver of eth2; ") {
		t.Errorf("status tells %q", detail)
	}
	programs := 0
	for _, o := range s.GetObjects() {
		if o.GetKind() == pncv1.HostObjectKind_HOST_OBJECT_KIND_BPF_PROGRAM && o.GetName() == "translate" {
			programs++
		}
	}
	if programs != 2 || xdpAt(t, b, "eth1") == "" || xdpAt(t, b, "eth2") == "" {
		t.Errorf("%d programs in the status, on the interfaces %q, %q", programs, xdpAt(t, b, "eth1"), xdpAt(t, b, "eth2"))
	}
}

// waitEvents waits until the congestion node has had so many more events, whatever became of them.
func waitEvents(t *testing.T, b *bed.Bed, n uint64) {
	t.Helper()
	before, err := ledgerOf(testContext(t), b.Congestion, "congestion-node")
	if err != nil {
		t.Fatal(err)
	}
	wait(t, b, "congestion", func(ctx context.Context) error {
		l, err := ledgerOf(ctx, b.Congestion, "congestion-node")
		if err == nil && l.received-before.received < n {
			err = fmt.Errorf("%d events", l.received-before.received)
		}
		return err
	})
}

// checkKernelEnds switches the mechanism, reloads, kills and stops.
func checkKernelEnds(t *testing.T, b *bed.Bed, p bed.Plan, seen *wireCNPs, more func(int)) {
	t.Helper()
	ctx := testContext(t)
	gone := func(when string) {
		t.Helper()
		if at1, at2 := xdpAt(t, b, "eth1"), xdpAt(t, b, "eth2"); at1 != "" || at2 != "" {
			t.Errorf("%s: a program is there still: %s%s", when, at1, at2)
		}
	}
	if _, err := b.Proxy.Control.Disable(ctx, &pncv1.DisableRequest{}); err != nil {
		t.Fatal(err)
	}
	gone("disabled")
	before := len(seen.list())
	if err := b.Mark(ctx, true); err != nil {
		t.Fatal(err)
	}
	waitEvents(t, b, 20)
	if n := len(seen.list()); n != before {
		t.Errorf("%d CNPs while disabled", n-before)
	}
	if _, err := b.Proxy.Control.Enable(ctx, &pncv1.EnableRequest{}); err != nil {
		t.Fatal(err)
	}
	more(20)
	reload := func(proxy string) error {
		for _, text := range edited(t, "proxy.pncd.yaml", "  taps:", proxy+"  taps:") {
			if err := os.WriteFile(b.ConfigPath("proxy.pncd.yaml"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err := b.Proxy.Control.Reload(ctx, &pncv1.ReloadRequest{})
		return err
	}
	if err := reload(""); err != nil {
		t.Fatal(err)
	}
	gone("in user space")
	more(20)
	takesXDP(t, b.Lab, bed.Router, "eth2")
	if err := reload(inKernel); err == nil || !strings.Contains(err.Error(), "eth2: another XDP program is on the interface") {
		t.Errorf("with another program there: %v", err)
	}
	if err := reload(strings.Replace(inKernel, "eth1, eth2", "eth1", 1)); err != nil {
		t.Fatal(err)
	}
	more(20) // all by user space: nothing comes in by eth1
	receipts := map[string]int{}
	for _, cnp := range seen.list() {
		receipts[string(cnp)]++
	}
	for cnp, n := range receipts {
		if n > 1 {
			t.Errorf("%d times the same CNP, receipt number and all: %x", n, cnp)
		}
	}
	pncd := b.Programs(bed.Proxy)
	pncd[0].Kill()
	<-pncd[0].Done()
	gone2 := xdpAt(t, b, "eth1")
	if gone2 != "" {
		t.Errorf("after the kill: %s", gone2)
	}
	again, err := b.Start(ctx, bed.Proxy, lab.Proc{Name: "again", Argv: []string{pncdBinary(t), "--config", "/etc/pncd/pncd.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, b, "the program is back", func(context.Context) error {
		if xdpAt(t, b, "eth1") == "" {
			return fmt.Errorf("no program")
		}
		return nil
	})
	if err := again.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if at := xdpAt(t, b, "eth1"); at != "" {
		t.Errorf("after the stop: %s", at)
	}
}
