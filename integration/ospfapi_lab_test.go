package integration

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	pncdigp "pncd/igp" // the labs have an igp of their own
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/ospfapi"
	"pncd/igp/ospf/ospfapi/learner"
	"pncd/igp/ospf/packet"
	"pncd/integration/lab"
)

// ospfAPILab is FRR r1 - FRR r2 on a LAN in area 0. r1's ospfd has the API, and a client reads it.
type ospfAPILab struct {
	*igpLab
	ospfd  *lab.Process // of r1, with the API
	client *ospfapi.Client

	mu      sync.Mutex
	learned map[netip.Prefix]pncdigp.Learned // by prefix: no two routers announce the same here
}

// upOSPFAPI brings up both routers, the ospfd of r1 without its configuration, and the client.
func upOSPFAPI(t *testing.T) *ospfAPILab {
	t.Helper()
	l := &ospfAPILab{learned: map[netip.Prefix]pncdigp.Learned{}, igpLab: newIGPLab(t, igp{name: "ospfapi", daemons: []string{"ospfd"}, routes: []string{"show ip route ospf", "show ip ospf route"}})}
	link := ospfLink{name: "eth1", lan: true}
	l.build([]igpNode{
		ospfRouter{n: 1, links: []ospfLink{link}}.node("frr", "10.9.0.1/24"),
		ospfRouter{n: 2, links: []ospfLink{link}}.node("frr", "10.9.0.2/24"),
	}, [2]string{"r1:eth1", "r2:eth1"})
	l.kill("r1", "ospfd")
	l.startOSPF()
	l.read()
	return l
}

// startOSPF starts ospfd of r1, with the API and without its configuration.
func (l *ospfAPILab) startOSPF() {
	l.t.Helper()
	l.ospfd = l.start("r1", "/usr/lib/frr/ospfd", "-A", "127.0.0.1", "--log", "stdout", "-a")
	l.eventually("ospfd of r1", func() string {
		if out, err := l.Exec(l.ctx, "r1", "vtysh", "-d", "ospfd", "-c", "show version"); err != nil {
			return err.Error() + strings.TrimSpace(string(out))
		}
		return ""
	})
}

// configureOSPF gives ospfd of r1 its configuration, as vtysh does at boot.
func (l *ospfAPILab) configureOSPF() {
	l.t.Helper()
	l.eventually("ospfd of r1 to take its configuration", func() string {
		if out, err := l.Exec(l.ctx, "r1", "vtysh", "-b"); err != nil {
			return err.Error() + strings.TrimSpace(string(out))
		}
		out, err := l.Exec(l.ctx, "r1", "vtysh", "-d", "ospfd", "-c", "show running-config")
		if err != nil || !strings.Contains(string(out), "router ospf") {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
}

// alive fails the test when the ospfd that has the API has ended.
func (l *ospfAPILab) alive() {
	l.t.Helper()
	if ended(l.ospfd) {
		l.t.Fatal("the client brought ospfd down")
	}
}

// read starts the client in r1.
func (l *ospfAPILab) read() {
	l.t.Helper()
	log := logrus.New()
	log.SetOutput(l.t.Output())
	c, err := ospfapi.NewClient(ospfapi.Config{
		Learner: learner.Config{Keepalive: time.Second, Hold: 2 * time.Second, Carrier: marks.Carrier{Bit: 2}},
		Dial: func(ctx context.Context, e ospfapi.Endpoints, avoid []uint64) (link *ospfapi.Link, err error) {
			nerr := inNode(l.Lab, "r1", func() error {
				link, err = ospfapi.Dial(ctx, e, avoid)
				return nil
			})
			if nerr != nil {
				return nil, nerr
			}
			return link, err
		},
	}, l.learn, log)
	if err != nil {
		l.t.Fatal(err)
	}
	l.client = c
	inBackground(l.t, "reading the OSPF API", c.Run)
}

func (l *ospfAPILab) learn(list []pncdigp.Learned) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range list {
		if x.Gone {
			delete(l.learned, x.Prefix)
		} else {
			l.learned[x.Prefix] = x
		}
	}
}

// knows waits until a prefix is learned with the P flag and this proxy; with none, until it is not known at all.
func (l *ospfAPILab) knows(when, prefix, proxy string) {
	l.t.Helper()
	l.eventually(fmt.Sprintf("%s: %s has the proxy %q", when, prefix, proxy), func() string {
		l.alive()
		l.mu.Lock()
		defer l.mu.Unlock()
		x, known := l.learned[netip.MustParsePrefix(prefix)]
		if known != (proxy != "") || known && (!x.P || x.Proxy.String() != proxy || x.Originator != "10.255.0.2" || x.Cost == 0) {
			return fmt.Sprintf("%+v", l.learned)
		}
		return ""
	})
}

// learnedNothing fails the test when something is still learned.
func (l *ospfAPILab) learnedNothing() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.learned) > 0 {
		l.t.Errorf("still learned: %+v", l.learned)
	}
}

func (l *ospfAPILab) status() ospfapi.Status {
	l.t.Helper()
	st, err := l.client.Status(l.ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	return st
}

// state waits for a state of the client.
func (l *ospfAPILab) state(want learner.State) {
	l.t.Helper()
	l.eventually("the client is "+want.String(), func() string {
		l.alive()
		if st := l.status(); st.State != want {
			return fmt.Sprintf("%s, %v", st.State, st.Error)
		}
		return ""
	})
}

// shownLSA are the fields of an LSA's header as vtysh shows it.
var shownLSA = regexp.MustCompile(`(?s)LS age: (\d+).*?Link State ID: (\S+).*?Advertising Router: (\S+).*?LS Seq Number: (\S+).*?Checksum: 0x([0-9a-f]+)`)

// routerHas is what r1 says that it has, of the types that are mirrored.
func (l *ospfAPILab) routerHas() (list []string) {
	l.t.Helper()
	for kind, name := range map[packet.LSType]string{packet.V2Router: "router", packet.V2Network: "network", packet.V2Summary: "summary", packet.V2OpaqueArea: "opaque-area"} {
		text := l.vtysh("r1", "show ip ospf database "+name)
		for _, m := range shownLSA.FindAllStringSubmatch(text, -1) {
			if m[1] == "3600" {
				continue // it ends, and is only kept until all neighbours know
			}
			list = append(list, fmt.Sprintf("%d/%s/%s %s %s", kind, m[2], m[3], m[4], m[5]))
		}
	}
	slices.Sort(list)
	return list
}

// mirrorHas is what the client has, as routerHas says it.
func (l *ospfAPILab) mirrorHas() (list []string) {
	l.t.Helper()
	db, err := l.client.Database(l.ctx, packet.Backbone)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range db {
		list = append(list, fmt.Sprintf("%d/%s/%s %08x %04x", e.Type, e.ID, e.Adv, uint32(e.Sequence), e.Checksum))
	}
	slices.Sort(list)
	return list
}

// mirrors waits until the client has exactly what the router has, and that includes LSAs whose keys begin so.
func (l *ospfAPILab) mirrors(when string, includes ...string) {
	l.t.Helper()
	l.eventually(when+": the mirror is the router's database", func() string {
		l.alive()
		router, mirror := l.routerHas(), l.mirrorHas()
		if !slices.Equal(router, mirror) {
			return fmt.Sprintf("the router has\n%s\nthe client has\n%s\n%+v", strings.Join(router, "\n"), strings.Join(mirror, "\n"), l.status())
		}
		for _, key := range includes {
			if !slices.ContainsFunc(mirror, func(s string) bool { return strings.HasPrefix(s, key+" ") }) {
				return fmt.Sprintf("%s is missing:\n%s", key, strings.Join(mirror, "\n"))
			}
		}
		return ""
	})
}
