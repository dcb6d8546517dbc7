package kernel

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"pncd/dataplane/tap/taptest"
	"pncd/internal/testwait"
)

// clsact is what is on the clsact qdisc of an interface.
func clsact(t *testing.T, ns *taptest.NS, name string) (qdisc bool, filters []string) {
	t.Helper()
	err := ns.Do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		all, err := netlink.QdiscList(l)
		if err != nil {
			return err
		}
		for _, q := range all {
			qdisc = qdisc || q.Type() == "clsact"
		}
		list, err := netlink.FilterList(l, netlink.HANDLE_MIN_INGRESS)
		for _, f := range list {
			if b, ok := f.(*netlink.BpfFilter); ok {
				filters = append(filters, b.Name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return qdisc, filters
}

func addClsact(t *testing.T, ns *taptest.NS, name string) {
	t.Helper()
	if err := ns.Do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.QdiscAdd(clsactOf(l.Attrs().Index))
	}); err != nil {
		t.Fatal(err)
	}
}

// addFilter adds a filter as others add theirs: first priority, first handle.
func addFilter(t *testing.T, ns *taptest.NS, name, filter string, prog *ebpf.Program) {
	t.Helper()
	if err := ns.Do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		f := filterOf(l.Attrs().Index, 1)
		f.Name, f.Fd = filter, prog.FD()
		return netlink.FilterAdd(f)
	}); err != nil {
		t.Fatal(err)
	}
}

func TestClsactLeavesWhatWasThere(t *testing.T) {
	const theirFilter = "theirs"
	for name, tc := range map[string]struct {
		qdisc bool
		left  []string // of filters
	}{
		"nothing": {false, nil}, "qdisc": {true, nil}, "qdisc and filter": {true, []string{theirFilter}},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := taptest.Pair(t)
			k := need(t, Config{Mode: Clsact, MaxFlows: 1024, RingSize: 1 << 16})
			if tc.qdisc {
				addClsact(t, a, "va")
			}
			for _, f := range tc.left {
				addFilter(t, a, "va", f, k.progs[0])
			}
			at := attach(t, k, a, "va")
			want := append([]string{filterName}, tc.left...) // ours sees what others drop
			if qdisc, filters := clsact(t, a, "va"); !qdisc || !slices.Equal(filters, want) || at.Check() != nil {
				t.Errorf("attached: %v %v, %v; want %v", qdisc, filters, at.Check(), want)
			}
			if err := at.Close(); err != nil {
				t.Fatal(err)
			}
			if qdisc, filters := clsact(t, a, "va"); qdisc != tc.qdisc || !slices.Equal(filters, tc.left) {
				t.Errorf("left %v %v", qdisc, filters)
			}
		})
	}
}

func TestFilterOfAnEarlierProcessIsReplacedOrRemoved(t *testing.T) {
	a, b := taptest.Pair(t)
	in := taptest.NeedInjector(t, b, "vb")
	c := Config{Mode: Clsact, MaxFlows: 1024, RingSize: 1 << 16, Interval: time.Hour}
	dead := need(t, c)
	attach(t, dead, a, "va").watch.close()
	clear(dead.attached) // it was killed: its filter stays
	next := need(t, c)
	at := attach(t, next, a, "va")
	if err := in.Send(frameOf(t, spec(writeOnly, 1))); err != nil {
		t.Fatal(err)
	}
	was, err1 := dead.Counters()
	is, err2 := next.Counters()
	if _, filters := clsact(t, a, "va"); len(filters) != 1 || was.Packets != 0 || is.Packets != 1 || errors.Join(err1, err2) != nil {
		t.Errorf("filters %v, %d packets at the old one, %d at the new one", filters, was.Packets, is.Packets)
	}
	// Somebody else's change is noticed.
	if err := a.Do(func() error { return netlink.FilterDel(filterOf(at.IfIndex(), onOurQdisc)) }); err != nil {
		t.Fatal(err)
	}
	if err := at.Check(); !errors.Is(err, ErrDetached) {
		t.Errorf("removed by somebody: %v", err)
	}
	if err := at.Close(); err != nil {
		t.Errorf("close of one that is gone: %v", err)
	}
	if qdisc, _ := clsact(t, a, "va"); qdisc {
		t.Error("the qdisc stayed")
	}
	attach(t, next, a, "va").watch.close()
	clear(next.attached)
	if gone, err := left(t, a, taptest.BPFFS(t), true); err != nil || !slices.Equal(gone, []string{"filter pncd of va"}) {
		t.Fatal(gone, err)
	}
	if qdisc, filters := clsact(t, a, "va"); qdisc || len(filters) != 0 {
		t.Errorf("left: %v %v", qdisc, filters)
	}
}

func TestCountersAreByInterface(t *testing.T) {
	for _, mode := range []Mode{TCX, XDP, Clsact} {
		t.Run(mode.String(), func(t *testing.T) {
			a, b := taptest.Pair(t)
			if err := taptest.Veth(a, "wa", b, "wb"); err != nil {
				t.Fatal(err)
			}
			k := need(t, Config{Mode: mode, MaxFlows: 1024, RingSize: 1 << 16, Interval: time.Hour})
			v, w := attach(t, k, a, "va"), attach(t, k, a, "wa")
			send := func(name string, psns ...uint32) {
				t.Helper()
				in := taptest.NeedInjector(t, b, name)
				for _, psn := range psns {
					if err := in.Send(frameOf(t, spec(writeOnly, psn))); err != nil {
						t.Fatal(err)
					}
				}
			}
			count := func(a *Attachment, want uint64) {
				t.Helper()
				if c, downs, err := a.Counters(); err != nil || c.Packets != want || downs != 0 {
					t.Errorf("%s: %d packets, %d downs, %v; want %d", a.Interface(), c.Packets, downs, err, want)
				}
			}
			send("vb", 1, 2)
			send("wb", 3)
			count(v, 2)
			count(w, 1)
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			count(v, 2) // also when it is closed
			closed := v
			v = attach(t, k, a, "va")
			count(v, 0) // since it was attached
			if c, err := k.Counters(); err != nil || c.Packets != 3 || c.Told() == 0 {
				t.Errorf("%+v, %v", c, err)
			}
			if err := b.SetLink("wb", false); err != nil {
				t.Fatal(err)
			}
			waitDowns(t, w, 1)
			if err := b.SetLink("wb", true); err != nil {
				t.Fatal(err)
			}
			if err := a.WaitUp("wa"); err != nil {
				t.Fatal(err)
			}
			if err := a.SetLink("wa", false); err != nil {
				t.Fatal(err)
			}
			waitDowns(t, w, 2)
			if err := w.Check(); err != nil {
				t.Error(err)
			}
			send("vb", 4)
			if err := k.Close(); err != nil {
				t.Fatal(err)
			}
			count(closed, 2)
			count(v, 1)
			if c, downs, err := w.Counters(); err != nil || c.Packets != 1 || downs != 2 {
				t.Errorf("closed with the tap: %d packets, %d downs, %v", c.Packets, downs, err)
			}
		})
	}
}

func waitDowns(t *testing.T, a *Attachment, want uint64) {
	t.Helper()
	testwait.UntilRight(t, func() string {
		if _, downs, err := a.Counters(); err != nil || downs != want {
			return fmt.Sprintf("%d downs, want %d; %v", downs, want, err)
		}
		return ""
	})
}
