package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	pncv1 "pncd/api/pnc/v1"
	"pncd/integration/bed"
	"pncd/integration/lab"
	"pncd/internal/labtraffic"
	"pncd/proxyagent/message"
)

// nrpLab is two VPNs with the same addresses over one proxy pe and one congestion node cn, and a host of the default
// context with the senders' address:
//
//	blues - pe - cn - bluer     VPN blue, a network namespace on both
//	greens - pe - cn - greenr   VPN green, on pe a table with a mark or a VRF device, on cn a network namespace
//	home - pe - cn              the default context, in which notifications travel
//
// Both VPNs have the same flows: addresses, ports and destination QPs; only the senders' own QPs differ.
type nrpLab struct {
	*igpLab
	pe   *bed.Node
	seen map[string]*cnps // by the sender's host
}

var (
	vpnSender   = netip.MustParseAddr("10.1.0.2")
	vpnReceiver = netip.MustParseAddr("10.2.0.2")
)

const (
	vpnQPs   = 4
	vpnBlue  = 0x1111 // the first Source QP
	vpnGreen = 0x2222
)

// vpnPE is the proxy's configuration; place is where green is, and proxy more lines of its section.
func vpnPE(place, proxy string) string {
	return fmt.Sprintf(`node: pe
enabled: true
contexts:
  - {name: blue, namespace: blue, taps: [eth1, eth2]}
  - {name: green, %s, taps: [eth3, eth4]}
  - {name: gone}
proxy:
  ipv4: 192.0.2.1
  taps: [eth6]
%s  accept_from: [192.0.2.0/24]
  senders:
    - {prefix: 10.1.0.0/24}
    - {prefix: 10.1.0.0/24, context: blue}
    - {prefix: 10.1.0.0/24, context: green}
  nrp:
    map:
      - {id: 100, context: blue}
      - {id: 200, context: green}
      - {id: 300, context: gone}
      - {id: 400, sender: 10.1.0.2, receiver: 10.2.0.2, source_qp: 0x777, context: green}
      - {id: 500, sender: 10.1.0.2, receiver: 10.2.0.2, source_qp: 0x888}
`, place, proxy)
}

const vpnCN = `node: cn
enabled: true
contexts:
  - {name: blue, namespace: blue}
  - {name: green, namespace: green}
static:
  - {context: blue, prefix: 10.1.0.0/24, proxy: 192.0.2.1}
  - {context: green, prefix: 10.1.0.0/24, proxy: 192.0.2.1}
congestion_node:
  source_ipv4: 192.0.2.2
  contexts:
    - {name: blue, nrp: 100, interfaces: [eth2]}
    - {name: green, nrp: 200, interfaces: [eth4]}
`

// inNamespace makes a network namespace of a node's with two of its interfaces.
func inNamespace(name, left, leftAddr, right, rightAddr, route string) []string {
	in := "ip -n " + name + " "
	return []string{
		"ip netns add " + name, "ip link set " + left + " netns " + name, "ip link set " + right + " netns " + name,
		in + "addr add " + leftAddr + " dev " + left, in + "addr add " + rightAddr + " dev " + right,
		in + "link set " + left + " up", in + "link set " + right + " up",
		in + "route add " + route, "ip netns exec " + name + " sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'",
	}
}

const closesTable = "ip route add unreachable default metric 4278198272 table 100"

// greenTable puts green into table 100 of pe, where a mark leads, and green's interfaces; the main table has none of it.
var greenTable = []string{
	"ip addr add 10.1.0.1/24 dev eth3", "ip addr add 10.3.0.1/24 dev eth4",
	"ip route del 10.1.0.0/24 dev eth3", "ip route del 10.3.0.0/24 dev eth4",
	"ip route add 10.1.0.0/24 dev eth3 table 100", "ip route add 10.3.0.0/24 dev eth4 table 100",
	"ip route add 10.2.0.0/24 via 10.3.0.2 dev eth4 table 100", closesTable,
	"ip rule add fwmark 0x64 lookup 100 priority 100", "ip rule add iif eth3 lookup 100 priority 101", "ip rule add iif eth4 lookup 100 priority 102",
}

var greenVRF = []string{
	"ip link add vrf-green type vrf table 100", "ip link set vrf-green up", "ip link set eth3 master vrf-green", "ip link set eth4 master vrf-green",
	"ip addr add 10.1.0.1/24 dev eth3", "ip addr add 10.3.0.1/24 dev eth4",
	"ip route add 10.2.0.0/24 via 10.3.0.2 dev eth4 table 100", closesTable,
}

func upVPN(t *testing.T, place, proxy string, green []string) *nrpLab {
	t.Helper()
	t.Parallel()
	l := &nrpLab{seen: map[string]*cnps{}, igpLab: &igpLab{
		bgpLab: &bgpLab{t: t}, igp: igp{name: "vpn"}, dir: t.TempDir(), conns: map[string]*grpc.ClientConn{}, killed: map[string][]*lab.Process{},
	}}
	host := func(name, addr, gateway string) igpNode {
		return igpNode{name: name, image: "debian", exec: []string{"ip addr add " + addr + "/24 dev eth1", "ip route add default via " + gateway}}
	}
	pe := append(inNamespace("blue", "eth1", "10.1.0.1/24", "eth2", "10.3.0.1/24", "10.2.0.0/24 via 10.3.0.2"), green...)
	pe = append(pe, "ip addr add 192.0.2.1/24 dev eth5", "ip addr add 10.1.0.9/24 dev eth6")
	cn := append(inNamespace("blue", "eth1", "10.3.0.2/24", "eth2", "10.2.0.1/24", "10.1.0.0/24 via 10.3.0.1"),
		inNamespace("green", "eth3", "10.3.0.2/24", "eth4", "10.2.0.1/24", "10.1.0.0/24 via 10.3.0.1")...)
	cn = append(cn, "ip addr add 192.0.2.2/24 dev eth5")
	l.build([]igpNode{
		{name: "pe", image: "pncd", forwards: true, exec: pe, conf: vpnPE(place, proxy)},
		{name: "cn", image: "pncd", forwards: true, exec: cn, conf: vpnCN},
		host("blues", "10.1.0.2", "10.1.0.1"), host("bluer", "10.2.0.2", "10.2.0.1"),
		host("greens", "10.1.0.2", "10.1.0.1"), host("greenr", "10.2.0.2", "10.2.0.1"), host("home", "10.1.0.2", "10.1.0.9"),
	}, [2]string{"pe:eth1", "blues:eth1"}, [2]string{"pe:eth2", "cn:eth1"}, [2]string{"cn:eth2", "bluer:eth1"},
		[2]string{"pe:eth3", "greens:eth1"}, [2]string{"pe:eth4", "cn:eth3"}, [2]string{"cn:eth4", "greenr:eth1"},
		[2]string{"pe:eth5", "cn:eth5"}, [2]string{"pe:eth6", "home:eth1"})
	l.pe = &bed.Node{Name: "pe", Records: pncv1.NewRecordServiceClient(l.dial("pe"))}
	for _, name := range []string{"blues", "greens", "home"} {
		w, err := labtraffic.NewWatcher(l.Namespace(name), "eth1")
		if err != nil {
			t.Fatal(err)
		}
		c := &cnps{}
		l.seen[name] = c
		inBackground(t, "watching CNPs at "+name, func(ctx context.Context) error {
			return w.Watch(ctx, func(s labtraffic.SeenCNP) error {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.seen = append(c.seen, s)
				return nil
			})
		})
	}
	return l
}

// congest begins marked traffic in a VPN, whose sender's own QPs begin with one, and gives its end.
func (l *nrpLab) congest(name string, first uint32) (stop func(), pairs []labtraffic.Pair) {
	l.t.Helper()
	g, err := labtraffic.NewGenerator(labtraffic.GeneratorConfig{
		Rate:  400,
		Flows: labtraffic.FlowConfig{QPs: vpnQPs, LocalQPN: first, PeerQPN: 0xA22, Ports: labtraffic.PortsUnique, Seed: 7, CEShare: 1},
		Local: labtraffic.Host{Netns: l.Namespace(name + "s"), Addr: vpnSender}, Peer: labtraffic.Host{Netns: l.Namespace(name + "r"), Addr: vpnReceiver},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return inBackground(l.t, "traffic in "+name, g.Run), g.Pairs()
}

// only checks that a host got CNPs for these QPs and no other.
func (l *nrpLab) only(name string, qps ...uint32) {
	l.t.Helper()
	l.eventually("CNPs at "+name, func() string {
		got, err := l.seen[name].check(vpnReceiver, vpnSender, qps...)
		if err != nil {
			l.t.Fatalf("%s: %v", name, err)
		}
		if got != len(qps) {
			_, text := pncctl(l.t, l, "pe", "records", "--limit", "3")
			_, flows := pncctl(l.t, l, "pe", "flows")
			_, status := pncctl(l.t, l, "pe", "status")
			return fmt.Sprintf("%d of %d QPs got one\n%s%s%s", got, len(qps), text, flows, status)
		}
		return ""
	})
}

// notify sends one notification of format 2 from the congestion node's address.
func (l *nrpLab) notify(nrp uint32, port uint16) {
	l.t.Helper()
	n := message.Notification2{Src: vpnSender, Dst: vpnReceiver, SrcPort: port, DstPort: 4791, Proto: 17, NRP: nrp}
	b, err := n.Append(nil)
	if err == nil {
		err = inNode(l.Lab, "cn", func() error {
			c, err := net.Dial("udp4", "192.0.2.1:1022")
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write(b)
			return err
		})
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// counted waits until an outcome of pe was counted so often.
func (l *nrpLab) counted(o pncv1.Outcome, want uint64) {
	l.t.Helper()
	l.eventually(o.String(), func() string {
		if got, err := outcome(l.ctx, l.pe, o); err != nil || got < want {
			return fmt.Sprint(got, " of ", want, err)
		}
		return ""
	})
}

// forget drops the CNPs seen so far.
func (l *nrpLab) forget() {
	for _, c := range l.seen {
		c.mu.Lock()
		c.seen = nil
		c.mu.Unlock()
	}
}

func qpsFrom(first uint32) (out []uint32) {
	for i := range uint32(vpnQPs) {
		out = append(out, first+i)
	}
	return out
}

func (l *nrpLab) isolated() {
	const translated, sendError = pncv1.Outcome_OUTCOME_PROXY_TRANSLATED, pncv1.Outcome_OUTCOME_PROXY_SEND_ERROR
	t := l.t
	stopBlue, pairs := l.congest("blue", vpnBlue)
	l.only("blues", qpsFrom(vpnBlue)...)
	l.only("greens")
	stopGreen, same := l.congest("green", vpnGreen)
	l.only("greens", qpsFrom(vpnGreen)...)
	l.only("blues", qpsFrom(vpnBlue)...)
	l.only("home")
	for i := range pairs {
		if pairs[i].LocalPort != same[i].LocalPort || pairs[i].PeerQPN != same[i].PeerQPN || pairs[i].LocalQPN == same[i].LocalQPN {
			t.Fatalf("the VPNs' flows differ in more than the Source QP: %+v, %+v", pairs[i], same[i])
		}
	}
	if _, text := pncctl(t, l, "pe", "flows", "10.1.0.2", "10.2.0.2", "0xa22", "--context", "green"); !strings.Contains(text, "0x2222") || !strings.Contains(text, "green") {
		t.Errorf("the flow of green:\n%s", text)
	}
	if _, text := pncctl(t, l, "pe", "flows", "--context", "blue"); !strings.Contains(text, "0x1111") || strings.Contains(text, "0x2222") {
		t.Errorf("the flows of blue:\n%s", text)
	}
	for node, want := range map[string]string{"pe": "context green; nrp 200", "cn": "context blue; nrp 100"} {
		if _, text := pncctl(t, l, node, "records"); !strings.Contains(text, want) {
			t.Errorf("records of %s have no %q:\n%s", node, want, text)
		}
	}
	stopBlue()
	stopGreen()
	var last uint64
	l.eventually("all is still", func() string {
		got, err := outcome(l.ctx, l.pe, translated)
		if err != nil || got != last {
			last = got
			return fmt.Sprint(got, err)
		}
		return ""
	})

	// By the NRP map to a Source QP, in a VPN and in the default context; and what the map can't answer.
	l.forget()
	l.notify(400, 50000)
	l.notify(500, 50000)
	l.notify(999, 50000)
	l.notify(300, 50000)
	l.only("greens", 0x777)
	l.only("home", 0x888)
	l.only("blues")
	l.counted(pncv1.Outcome_OUTCOME_PROXY_NRP_UNKNOWN, 1)
	l.counted(pncv1.Outcome_OUTCOME_PROXY_VPN_UNKNOWN, 1)
	if status, text := pncctl(t, l, "pe", "nrp", "set", "999", "--context", "blue"); status != 0 {
		t.Fatal(text)
	}
	l.notify(999, pairs[0].LocalPort)
	l.only("blues", vpnBlue)
	l.only("greens", 0x777)
	l.only("home", 0x888)
	if status, text := pncctl(t, l, "pe", "nrp", "set", "100", "--context", "green"); status != 1 || !strings.Contains(text, "belongs to the configuration") {
		t.Errorf("%d: %s", status, text)
	}

	// A table that packets can leave is no VPN: nothing is sent into it until it is closed again.
	l.run("pe", append([]string{"ip", "route", "del"}, strings.Fields("unreachable default metric 4278198272 table 100")...)...)
	l.eventually("green is not open", func() string {
		if _, text := pncctl(t, l, "pe", "status"); !strings.Contains(text, "table 100 has no IPv4 default route") {
			return text
		}
		return ""
	})
	before, err := outcome(l.ctx, l.pe, sendError)
	if err != nil {
		t.Fatal(err)
	}
	l.notify(400, 50000)
	l.counted(sendError, before+1)
	l.run("pe", strings.Fields(closesTable)...)
	l.eventually("green is open again", func() string {
		if _, text := pncctl(t, l, "pe", "status"); strings.Contains(text, "table 100 has no") {
			return text
		}
		return ""
	})
	l.forget()
	l.notify(400, 50000)
	l.only("greens", 0x777)

	// Without a place green is a VPN that pe does not have.
	path := filepath.Join(l.dir, "pe.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	next := strings.Replace(string(text), "    - {prefix: 10.1.0.0/24, context: green}\n", "", 1)
	begin := strings.Index(next, "{name: green,")
	end := begin + strings.Index(next[begin:], "\n")
	l.write("pe.yaml", next[:begin]+"{name: green}"+next[end:])
	if status, text := pncctl(t, l, "pe", "reload"); status != 0 || !strings.Contains(text, "contexts[green]") {
		t.Fatalf("%d: %s", status, text)
	}
	unknown, err := outcome(l.ctx, l.pe, pncv1.Outcome_OUTCOME_PROXY_VPN_UNKNOWN)
	if err != nil {
		t.Fatal(err)
	}
	l.forget()
	l.notify(400, 50000)
	l.counted(pncv1.Outcome_OUTCOME_PROXY_VPN_UNKNOWN, unknown+1)
	for name := range l.seen {
		l.only(name)
	}
}

// Two VPNs with the same addresses, by network namespace and by table with mark: each CNP arrives in its own, and in no
// other.
func TestVPNsWithTheSameAddressesNeverMeet(t *testing.T) {
	needLab(t)
	upVPN(t, "table: 100, mark: 0x64", "", greenTable).isolated()
}

func TestVPNOnAVRFDevice(t *testing.T) {
	needLab(t)
	needVRF(t)
	upVPN(t, "device: vrf-green", "", greenVRF).isolated()
}

// needVRF skips where the kernel has no VRF devices.
func needVRF(t *testing.T) {
	t.Helper()
	out, err := exec.Command("unshare", "-n", "ip", "link", "add", "vrf0", "type", "vrf", "table", "4242").CombinedOutput()
	if err != nil {
		t.Skipf("the kernel has no VRF devices: %v: %s", err, out)
	}
}

// vpnInKernel lets the kernel take what comes in by eth5 and send to green's senders, behind eth3.
const vpnInKernel = "  translate: kernel\n  translate_interfaces: [eth3, eth5]\n"

// In the kernel likewise: it sends into the VPN that has a table here, by that one alone, and leaves the other to user space.
func TestVPNsWithTheSameAddressesNeverMeetInTheKernel(t *testing.T) {
	needLab(t)
	upVPN(t, "table: 100, mark: 0x64", vpnInKernel, greenTable).inKernel()
}

func (l *nrpLab) inKernel() {
	t := l.t
	takesXDP(t, l.Lab, "greens", "eth1")
	stopBlue, _ := l.congest("blue", vpnBlue)
	stopGreen, _ := l.congest("green", vpnGreen)
	l.eventually("decisions of the kernel", func() string {
		counted, err := ledgerOf(l.ctx, l.pe, "proxy")
		up, err2 := passedOn(l.ctx, l.pe)
		if err := errors.Join(err, err2); err != nil {
			return err.Error()
		}
		if decided := counted.received - up; decided < 100 {
			return fmt.Sprintf("%d of %d", decided, counted.received)
		}
		return ""
	})
	l.only("blues", qpsFrom(vpnBlue)...)
	l.only("greens", qpsFrom(vpnGreen)...)
	l.only("home")
	stopBlue()
	stopGreen()
	l.eventually("as many CNPs as outcomes", func() string {
		now, err := ledgerOf(l.ctx, l.pe, "proxy")
		if got := l.seen["blues"].count() + l.seen["greens"].count(); err != nil || now.by["translated"] != uint64(got) || now.sum != now.received {
			return fmt.Sprintf("%d translated, %d CNPs, %d received, %d outcomes, %v", now.by["translated"], got, now.received, now.sum, err)
		}
		return ""
	})
}

func TestVPNOnAVRFDeviceInTheKernel(t *testing.T) {
	needLab(t)
	needVRF(t)
	upVPN(t, "device: vrf-green", vpnInKernel, greenVRF).inKernel()
}
