package daemon

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/igp"
	"pncd/igp/backoff"
	"pncd/igp/ospf/auth"
	"pncd/igp/ospf/iface"
	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/neighbor"
	"pncd/igp/ospf/packet"
	"pncd/igp/ospf/speaker"
	"pncd/internal/config"
	"pncd/pnc"
)

const ospfFile = `node: leaf1
ospfv2:
  router_id: 192.0.2.1
  accept_proxies: [192.0.2.0/24]
  carrier: tlv-flags
  flag_mask: 0x04
  reoriginate: true
  areas: [{id: 1, type: nssa}]
  links:
    - interface: ospf0
      area: 1
      type: broadcast
      transmit_delay: 3s
      keys:
        - {id: 1, algorithm: hmac-sha-256, password: first, bind_source: true}
        - {id: 2, algorithm: md5, password_file: FILE}
ospfv3:
  router_id: 192.0.2.1
  graceful_restart_helper: false
  links: [{interface: ospf0, instance: 7, keys: [{algorithm: hmac-sha-1, password: x, swap_protocol_id: true}]}]
`

func ospfConfig(t *testing.T, edit func(*config.OSPF)) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("second\nignored\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse([]byte(strings.Replace(ospfFile, "FILE", file, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(cfg.OSPFv2)
	}
	return cfg
}

func TestOSPFSettings(t *testing.T) {
	cfg := ospfConfig(t, nil)
	got, err := ospfSettings(cfg.OSPFv2)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != packet.V2 || got.Router.String() != "192.0.2.1" || got.Carrier != (marks.Carrier{TLVFlags: 4, Bit: 2}) || !got.Reoriginate || got.NoHelp ||
		got.Areas[0] != (speaker.AreaConfig{ID: 1, Kind: speaker.NSSA}) {
		t.Errorf("%+v", got)
	}
	x := got.Links[0]
	if x.Name != "ospf0" || x.Area != 1 || !x.Broadcast || x.TransmitDelay != 3 || x.Dead != 40*time.Second {
		t.Errorf("link %+v", x)
	}
	first := auth.Key{ID: 1, Algorithm: auth.HMACSHA256, Secret: "first", BindSource: true}
	second := auth.Key{ID: 2, Algorithm: auth.MD5, Secret: "second"}
	if c := x.Authentication; c.Send != first || len(c.Accept) != 2 || c.Accept[1] != second {
		t.Errorf("keys %+v", c)
	}
	got, err = ospfSettings(cfg.OSPFv3)
	if err != nil {
		t.Fatal(err)
	}
	if x := got.Links[0]; got.Version != packet.V3 || !got.NoHelp || x.Instance != 7 || x.Broadcast || !x.Authentication.Send.SwapProtocolID {
		t.Errorf("%+v", got)
	}
	for what, edit := range map[string]func(*config.OSPF){
		"ospfv2: keys of link ospf0: password_file of key 1":   func(o *config.OSPF) { o.Links[0].Keys[1].PasswordFile += ".none" },
		"17 octets, a secret for MD5 has at most 16 (RFC 2328": func(o *config.OSPF) { writeKey(t, o.Links[0].Keys[1].PasswordFile, strings.Repeat("x", 17)) },
	} {
		if _, err := ospfSettings(ospfConfig(t, edit).OSPFv2); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %s", err, what)
		}
	}
}

func writeKey(t *testing.T, file, secret string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What isn't configured is what RFC 2328 and the speaker have as defaults.
func TestTheConfigurationsDefaultsAreOSPFs(t *testing.T) {
	cfg, err := config.Parse([]byte("node: leaf1\nospfv2: {router_id: 192.0.2.1, links: [{interface: ospf0}]}\nospfv3: {router_id: 192.0.2.1, links: [{interface: ospf0}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range cfg.OSPFs() {
		got, err := ospfSettings(o)
		if err != nil {
			t.Fatal(err)
		}
		want := speaker.Config{
			Version: packet.Version(o.Version()), Router: got.Router, Carrier: marks.Carrier{Bit: 2}, SPF: backoff.Default,
			MinLSInterval: 5 * time.Second, MinLSArrival: time.Second, Refresh: 30 * time.Minute, AckDelay: time.Second,
			Links: []speaker.LinkConfig{{Name: "ospf0", Hello: iface.DefaultHello, Dead: neighbor.DefaultDead, Retransmit: neighbor.DefaultRetransmit, TransmitDelay: 1, MaxNeighbors: iface.DefaultMaxNeighbors}},
		}.WithDefaults()
		if got := got.WithDefaults(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nwant %+v", got, want)
		}
	}
}

func TestWhatOfOSPFCanBeReloaded(t *testing.T) {
	old := ospfConfig(t, nil).OSPFv2
	for name, tc := range map[string]struct {
		edit    func(*config.OSPF)
		restart string // what is refused
	}{
		"nothing":        {func(*config.OSPF) {}, ""},
		"keys":           {func(o *config.OSPF) { o.Links[0].Keys = o.Links[0].Keys[:1] }, ""},
		"advertise":      {func(o *config.OSPF) { o.Advertise = false }, ""},
		"accept_proxies": {func(o *config.OSPF) { o.AcceptProxies = nil }, ""},
		"a link more":    {func(o *config.OSPF) { o.Links = append(o.Links, config.OSPFLink{Interface: "ospf1"}) }, ""},
		"area":           {func(o *config.OSPF) { o.Links[0].Area = 2 }, ""},
		"area type":      {func(o *config.OSPF) { o.Areas[0].Type = "stub" }, ""},
		"timers":         {func(o *config.OSPF) { o.Timers.Refresh.Duration = time.Minute }, ""},
		"helper":         {func(o *config.OSPF) { o.GracefulRestartHelper = false }, ""},
		"reoriginate":    {func(o *config.OSPF) { o.Reoriginate = false }, ""},
		"router_id":      {func(o *config.OSPF) { o.RouterID.Addr = netip.MustParseAddr("192.0.2.2") }, "ospfv2.router_id: 192.0.2.1 -> 192.0.2.2"},
		"carrier": {func(o *config.OSPF) { o.Carrier, o.FlagMask = config.CarrierExtFlags, 0 },
			"ospfv2.carrier: tlv-flags -> ext-flags; ospfv2.flag_mask: 4 -> 0"},
		"flag":     {func(o *config.OSPF) { o.Flag = 9 }, "ospfv2.flag: 2 -> 9"},
		"max_lsas": {func(o *config.OSPF) { o.MaxLSAs = 1000 }, "ospfv2.max_lsas: 131072 -> 1000"},
	} {
		next := ospfConfig(t, tc.edit).OSPFv2
		if got := strings.Join(checkOSPF("ospfv2", old, next), "; "); got != tc.restart {
			t.Errorf("%s: refused is %q, want %q", name, got, tc.restart)
		}
	}
	if len(checkOSPF("ospfv2", nil, old)) == 0 || len(checkOSPF("ospfv2", old, nil)) == 0 || len(checkOSPF("ospfv2", nil, nil)) != 0 {
		t.Error("the section as a whole")
	}
	// What the check lets pass the speaker takes; what it refuses the speaker refuses, too.
	was, err := ospfSettings(old)
	if err != nil {
		t.Fatal(err)
	}
	m, err := speaker.New(was, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*config.OSPF){
		"taken":   func(o *config.OSPF) { o.Reoriginate, o.Links[0].Area, o.Areas[0].Type = false, 2, "stub" },
		"refused": func(o *config.OSPF) { o.Flag = 9 },
	} {
		next, err := ospfSettings(ospfConfig(t, edit).OSPFv2)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Reconfigure(time.Now(), next); (err == nil) != (name == "taken") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func quietDaemon(t *testing.T, cfg *config.Config) *Daemon {
	t.Helper()
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	d, err := New(cfg, "", log)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWhatOSPFLearnsIsInTheTable(t *testing.T) {
	d := quietDaemon(t, ospfConfig(t, nil))
	learned := func(prefix, originator, proxy string, area, cost uint32) igp.Learned {
		return igp.Learned{Prefix: netip.MustParsePrefix(prefix), Originator: originator, Area: area, Cost: cost, P: true, Proxy: netip.MustParseAddr(proxy)}
	}
	d.learned(ospfv2Protocol)([]igp.Learned{
		learned("10.1.0.0/24", "192.0.2.7", "192.0.2.7", 0, 30), learned("10.1.0.0/24", "192.0.2.7", "192.0.2.8", 1, 20), // two areas of one border router
		learned("10.2.0.0/24", "192.0.2.7", "198.51.100.1", 0, 30),
	})
	d.learned(ospfv3Protocol)([]igp.Learned{learned("2001:db8:1::/48", "192.0.2.7", "2001:db8::7", 0, 10)})
	reach := map[netip.Addr]pnc.Reach{}
	for _, p := range d.table.Proxies() {
		reach[p] = pnc.Reach{Reachable: true}
	}
	d.table.SetReachability(time.Now(), reach)
	resolve := func(sender string) string {
		r := d.table.Resolve("", netip.MustParseAddr(sender), 0)
		if r.Reason == pnc.ReasonFound {
			return r.Proxy.String()
		}
		return r.Reason.String()
	}
	for sender, want := range map[string]string{
		"10.1.0.1": "192.0.2.8", "10.2.0.1": "no-proxy", "2001:db8:1::1": "2001:db8::7",
	} {
		if got := resolve(sender); got != want {
			t.Errorf("%s: %s, want %s", sender, got, want)
		}
	}
	var details []string
	for _, e := range d.table.Rejected() {
		details = append(details, e.Detail)
	}
	if got := strings.Join(details, " "); got != "ospfv2.accept_proxies has no prefix with 198.51.100.1" {
		t.Errorf("rejected: %s", got)
	}
	d.learned(ospfv2Protocol)([]igp.Learned{{Prefix: netip.MustParsePrefix("10.1.0.0/24"), Originator: "192.0.2.7", Area: 1, Gone: true}})
	if got := resolve("10.1.0.1"); got != "192.0.2.7" {
		t.Errorf("after the one of area 1 is gone: %s", got)
	}
}

// ads takes what a speaker is told to mark.
type ads struct {
	igpSpeaker
	now []string
}

func (a *ads) Advertise(list []igp.Advertisement) {
	a.now = nil
	for _, x := range list {
		a.now = append(a.now, x.Prefix.String()+" "+x.Proxy.String())
	}
}

func TestEachVersionMarksItsFamily(t *testing.T) {
	cfg, err := config.Parse([]byte(`node: leaf1
isis: {net: 49.0001.1921.6800.1001.00}
ospfv2: {router_id: 192.0.2.1}
ospfv3: {router_id: 192.0.2.1}
proxy:
  ipv4: 192.0.2.1
  ipv6: "2001:db8::1"
  taps: [eth0]
  accept_from: [192.0.2.0/24]
  senders:
    - {prefix: 10.1.0.0/24}
    - {prefix: 10.2.0.0/24, proxy: "2001:db8::1"}
    - {prefix: 10.3.0.0/24, proxy: 192.0.2.99}
    - {prefix: "2001:db8:1::/48"}
    - {prefix: "2001:db8:2::/48", proxy: 192.0.2.1}
`))
	if err != nil {
		t.Fatal(err)
	}
	d := quietDaemon(t, cfg)
	told := map[string]*ads{}
	for _, p := range d.igps {
		told[p.name] = &ads{}
		p.speaker = told[p.name]
	}
	d.senders.own = announcedHere(cfg, nil)
	d.setMarking(true)
	for name, want := range map[string]string{
		"isis":   "10.1.0.0/24 192.0.2.1, 10.2.0.0/24 2001:db8::1, 2001:db8:1::/48 2001:db8::1, 2001:db8:2::/48 192.0.2.1",
		"ospfv2": "10.1.0.0/24 192.0.2.1",
		"ospfv3": "2001:db8:1::/48 2001:db8::1",
	} {
		if got := strings.Join(told[name].now, ", "); got != want {
			t.Errorf("%s marks %s, want %s", name, got, want)
		}
	}
	for _, p := range d.igps {
		if want := map[string]int{"isis": 0, "ospfv2": 1, "ospfv3": 1}[p.name]; p.notMarked != want {
			t.Errorf("%s: %d senders are not marked, want %d", p.name, p.notMarked, want)
		}
	}
	d.setMarking(false)
	for name, a := range told {
		if len(a.now) > 0 {
			t.Errorf("%s still marks %v", name, a.now)
		}
	}
}

func TestOSPFSpeaksWithAnAddressOfItsFamily(t *testing.T) {
	list := []netip.Prefix{netip.MustParsePrefix("192.0.2.10/31"), netip.MustParsePrefix("198.51.100.1/24"), netip.MustParsePrefix("2001:db8::1/64"), netip.MustParsePrefix("fe80::1/64")}
	for v, want := range map[packet.Version]string{packet.V2: "192.0.2.10/31", packet.V3: "fe80::1/64"} {
		if got := ospfAddress(v, list); got.String() != want {
			t.Errorf("%s: %s, want %s", v, got, want)
		}
	}
	if got := ospfAddress(packet.V3, list[:3]); got.IsValid() {
		t.Errorf("a global address was taken: %s", got)
	}
}
