package integration

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pncd/igp/ospf/ospfapi"
	"pncd/igp/ospf/ospfapi/learner"
)

// LSAs that r1 has while it is full with r2: their router LSAs, that of the LAN, whose DR may be either, and r2's
// Router Information and Extended Prefix LSAs.
var ospfAPIFull = []string{"1/10.255.0.1/10.255.0.1", "1/10.255.0.2/10.255.0.2", "10/4.0.0.0/10.255.0.2", "10/7.0.0.1/10.255.0.2"}

func TestOSPFAPIMirrorsTheRouter(t *testing.T) {
	l := upOSPFAPI(t)
	l.state(learner.Probing) // without an OSPF instance the daemon would crash when it is asked for more
	l.configureOSPF()
	l.state(learner.Synced)
	l.mirrors("full", ospfAPIFull...)
	if db := l.mirrorHas(); !slices.ContainsFunc(db, func(s string) bool { return strings.HasPrefix(s, "2/") }) {
		t.Errorf("no network LSA:\n%s", strings.Join(db, "\n"))
	}
	if id := l.status().RouterID.String(); id != "10.255.0.1" {
		t.Errorf("router ID %s", id)
	}

	before := l.routerHas()
	l.vtysh("r2", "configure terminal", "interface eth1", "ip ospf cost 77")
	l.eventually("r2 announces another cost", func() string {
		if slices.Equal(before, l.routerHas()) {
			return "not yet"
		}
		return ""
	})
	l.mirrors("another cost", ospfAPIFull...)

	marked := l.marked("10.1.0.0/24", "192.0.2.9")
	l.send(marked)
	l.mirrors("a marked prefix", append(slices.Clone(ospfAPIFull), "10/7.0.0.99/10.255.0.2")...)
	l.knows("marked", "10.1.0.0/24", "192.0.2.9")
	l.flush(marked)
	l.eventually("r1 forgets the LSA", func() string {
		if db := strings.Join(l.routerHas(), "\n"); strings.Contains(db, "10/7.0.0.99/") {
			return db
		}
		return ""
	})
	l.mirrors("the mark is gone", ospfAPIFull...)
	l.knows("flushed", "10.1.0.0/24", "")
	if text := l.vtysh("r1", "show ip ospf database opaque-link"); strings.Contains(text, "255.0.0.0") {
		t.Errorf("a probe was taken for an LSA:\n%s", text)
	}
	if st := l.status(); st.Counters.Connections != 1 || len(st.Counters.Dropped) != 0 {
		t.Errorf("%+v", st.Counters)
	}
}

func TestOSPFAPIAfterTheDaemonWasKilled(t *testing.T) {
	l := upOSPFAPI(t)
	l.configureOSPF()
	l.mirrors("full", ospfAPIFull...)
	l.send(l.marked("10.1.0.0/24", "192.0.2.9"))
	l.knows("marked", "10.1.0.0/24", "192.0.2.9")

	l.ospfd.Kill()
	l.eventually("nothing is believed any more", func() string {
		if st := l.status(); st.State != learner.Down || st.Believed || len(l.mirrorHas()) > 0 {
			return st.State.String()
		}
		return ""
	})
	l.learnedNothing()
	l.startOSPF()
	l.state(learner.Probing)
	l.configureOSPF()
	l.state(learner.Synced)
	l.mirrors("full again", ospfAPIFull...)
	l.send(l.marked("10.1.0.0/24", "192.0.2.9"))
	l.knows("marked again", "10.1.0.0/24", "192.0.2.9")
	if st := l.status(); !st.Believed || st.Counters.Syncs != 2 {
		t.Errorf("%+v", st)
	}
}

// FRR 8.4.4's ospfd crashes at the first connection after its instance is gone, even when there is another.
func TestOSPFAPIDoesNotCallADaemonThatLostItsInstance(t *testing.T) {
	l := upOSPFAPI(t)
	l.configureOSPF()
	l.mirrors("full", ospfAPIFull...)
	l.vtysh("r1", "configure terminal", "no router ospf")
	l.eventually("the client doesn't call", func() string {
		if st := l.status(); st.State != learner.Down || !errors.Is(st.Error, ospfapi.ErrEnded) {
			return st.State.String()
		}
		return ""
	})
	l.configureOSPF()
	l.eventually("r1 is full again", func() string {
		l.alive()
		if text := l.vtysh("r1", "show ip ospf neighbor"); !strings.Contains(text, "Full") {
			return text
		}
		return ""
	})
	if st := l.status(); !errors.Is(st.Error, ospfapi.ErrEnded) || st.Counters.Connections != 1 {
		t.Errorf("%+v", st)
	}

	if err := l.ospfd.Stop(); err != nil {
		t.Errorf("ospfd's end: %v", err)
	}
	l.startOSPF()
	l.configureOSPF()
	l.mirrors("after a restart", ospfAPIFull...)
}

func TestOSPFAPIDoesNotBelieveARouterThatIsNotReachable(t *testing.T) {
	l := upOSPFAPI(t)
	l.configureOSPF()
	l.mirrors("full", ospfAPIFull...)
	l.send(l.marked("10.1.0.0/24", "192.0.2.9"))
	l.knows("marked", "10.1.0.0/24", "192.0.2.9")
	l.run("r2", "ip", "link", "set", "eth1", "down") // its LSAs stay in r1's database for an hour
	l.knows("r2 is not reachable", "10.1.0.0/24", "")
	for who, has := range map[string][]string{"router": l.routerHas(), "client": l.mirrorHas()} {
		if !slices.ContainsFunc(has, func(s string) bool { return strings.HasPrefix(s, "10/7.0.0.99/10.255.0.2 ") }) {
			t.Fatalf("the %s has forgotten the LSA, so the test shows nothing:\n%s", who, strings.Join(has, "\n"))
		}
	}
}
