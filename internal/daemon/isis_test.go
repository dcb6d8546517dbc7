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
	"pncd/igp/isis/adjacency"
	"pncd/igp/isis/auth"
	"pncd/igp/isis/packet"
	"pncd/igp/isis/speaker"
	"pncd/internal/config"
	"pncd/pnc"
)

const isisFile = `node: leaf1
isis:
  net: 49.0001.1921.6800.1001.00
  areas: ["49.0002"]
  level: level-1-2
  accept_proxies: [192.0.2.0/24]
  level_2_keys:
    - {id: 1, algorithm: hmac-sha-256, password: first}
    - {algorithm: hmac-md5, password_file: FILE}
  circuits:
    - {interface: isis0, type: broadcast, level: level-2, padding: never, priority: 3}
`

func isisConfig(t *testing.T, edit func(*config.ISIS)) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("second\nignored\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse([]byte(strings.Replace(isisFile, "FILE", file, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(cfg.ISIS)
	}
	return cfg
}

func TestISISSettings(t *testing.T) {
	got, err := isisSettings(isisConfig(t, nil), "leaf1")
	if err != nil {
		t.Fatal(err)
	}
	first := auth.Key{ID: 1, Algorithm: auth.HMACSHA256, Secret: "first"}
	second := auth.Key{Algorithm: auth.HMACMD5, Secret: "second"}
	if c := got.Authentication[packet.Level2]; c.Send != first || len(c.Accept) != 2 || c.Accept[1] != second {
		t.Errorf("keys %+v", c)
	}
	if c := got.Circuits[0]; !c.LAN || c.Levels != packet.Level2 || c.Priority != 3 || c.Hello != 10*time.Second {
		t.Errorf("circuit %+v", c)
	}
	if got.System.String() != "1921.6800.1001" || len(got.Areas) != 2 || got.Hostname != "leaf1" || got.Levels != packet.Level12 || got.Flag != 7 {
		t.Errorf("%+v", got)
	}
	if _, err := isisSettings(isisConfig(t, func(s *config.ISIS) { s.Level2Keys[1].PasswordFile += ".none" }), "leaf1"); err == nil || !strings.Contains(err.Error(), "level_2_keys: password_file of key 1") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestTheConfigurationsDefaultsAreTheSpeakers(t *testing.T) {
	cfg, err := config.Parse([]byte("node: leaf1\nisis:\n  net: 49.0001.1921.6800.1001.00\n  circuits: [{interface: isis0}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := isisSettings(cfg, "leaf1")
	if err != nil {
		t.Fatal(err)
	}
	want := speaker.Config{System: got.System, Areas: got.Areas, Levels: got.Levels, Hostname: got.Hostname, Flag: packet.FlagProxy,
		Authentication: got.Authentication, Circuits: []speaker.CircuitConfig{{
			Name: "isis0", Levels: got.Levels, Padding: adjacency.PadUntilUp, Hello: adjacency.DefaultHello, Multiple: adjacency.DefaultMultiple,
		}}}.WithDefaults()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestWhatOfISISCanBeReloaded(t *testing.T) {
	old := isisConfig(t, nil).ISIS
	for name, tc := range map[string]struct {
		edit    func(*config.ISIS)
		restart string // what is refused
	}{
		"nothing":        {func(*config.ISIS) {}, ""},
		"keys":           {func(s *config.ISIS) { s.Level1Keys, s.Circuits[0].Keys = s.Level2Keys, s.Level2Keys }, ""},
		"advertise":      {func(s *config.ISIS) { s.Advertise = false }, ""},
		"accept_proxies": {func(s *config.ISIS) { s.AcceptProxies = nil }, ""},
		"hello":          {func(s *config.ISIS) { s.Circuits[0].Hello.Duration = time.Second }, ""},
		"a circuit more": {func(s *config.ISIS) { s.Circuits = append(s.Circuits, config.ISISCircuit{Interface: "isis1"}) }, ""},
		"another one":    {func(s *config.ISIS) { s.Circuits[0].Interface, s.Circuits[0].Type = "isis1", "point-to-point" }, ""},
		"net":            {func(s *config.ISIS) { s.NET = "49.0001.1921.6800.1002.00" }, "isis.net: 49.0001.1921.6800.1001.00 -> 49.0001.1921.6800.1002.00"},
		"areas":          {func(s *config.ISIS) { s.Areas = nil }, "isis.areas: [49.0002] -> []"},
		"level":          {func(s *config.ISIS) { s.Level = "level-2" }, "isis.level: level-1-2 -> level-2"},
		"flag":           {func(s *config.ISIS) { s.Flag = 9 }, "isis.flag: 7 -> 9"},
		"topology":       {func(s *config.ISIS) { s.MultiTopology = true }, "isis.multi_topology: false -> true"},
		"max_lsps":       {func(s *config.ISIS) { s.MaxLSPs = 1000 }, "isis.max_lsps: 65536 -> 1000"},
		"type":           {func(s *config.ISIS) { s.Circuits[0].Type = "point-to-point" }, "isis.circuits[isis0].type: broadcast -> point-to-point"},
		"circuit level":  {func(s *config.ISIS) { s.Circuits[0].Level = "level-1" }, "isis.circuits[isis0].level: level-2 -> level-1"},
	} {
		next := isisConfig(t, tc.edit).ISIS
		if got := strings.Join(checkISIS(old, next), "; "); got != tc.restart {
			t.Errorf("%s: refused is %q, want %q", name, got, tc.restart)
		}
	}
	if len(checkISIS(nil, old)) == 0 || len(checkISIS(old, nil)) == 0 || len(checkISIS(nil, nil)) != 0 {
		t.Error("the section as a whole")
	}
}

func TestWhatISISLearnsIsInTheTable(t *testing.T) {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	d, err := New(isisConfig(t, nil), "", log)
	if err != nil {
		t.Fatal(err)
	}
	learned := func(prefix, originator, proxy string, cost uint32) igp.Learned {
		l := igp.Learned{Prefix: netip.MustParsePrefix(prefix), Originator: originator, Level: 2, Cost: cost}
		if proxy != "" {
			l.P = true
			l.Proxy, _ = netip.ParseAddr(proxy)
		}
		return l
	}
	d.learned(isisProtocol)([]igp.Learned{
		learned("10.1.0.0/24", "a", "192.0.2.1", 30), learned("10.1.0.0/24", "b", "192.0.2.2", 20),
		learned("10.1.0.128/25", "a", "", 30), learned("10.2.0.0/24", "a", "198.51.100.1", 30), learned("10.3.0.0/24", "a", "none", 30),
	})
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
		"10.1.0.1":   "192.0.2.2", // the nearer originator
		"10.1.0.129": "no-proxy",  // longer, without the flag
		"10.2.0.1":   "no-proxy",  // not one of accept_proxies
		"10.3.0.1":   "no-proxy",  // no address
		"10.4.0.1":   "no-route",
	} {
		if got := resolve(sender); got != want {
			t.Errorf("%s: %s, want %s", sender, got, want)
		}
	}
	var reasons []string
	for _, e := range d.table.Rejected() {
		reasons = append(reasons, e.Reason.String())
	}
	if strings.Join(reasons, " ") != "proxy-not-accepted invalid-proxy-address" {
		t.Errorf("rejected: %v", reasons)
	}
	d.learned(isisProtocol)([]igp.Learned{{Prefix: netip.MustParsePrefix("10.1.0.0/24"), Originator: "b", Level: 2, Gone: true}})
	if got := resolve("10.1.0.1"); got != "192.0.2.1" {
		t.Errorf("after the nearer one is gone: %s", got)
	}
}

func TestTLVsForAReader(t *testing.T) {
	prefix, err := packet.Prefix{Prefix: netip.MustParsePrefix("10.1.0.0/24"), Metric: 0xFE000001, SubTLVs: packet.TLVs{
		{Type: 4, Value: []byte{1}}, {Type: 11, Value: []byte{192, 0, 2, 1}}, {Type: 3, Value: []byte{0}}}}.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	list, line := isisTLV(packet.FlagProxy, packet.TLV{Type: packet.TLVExtendedIPReach, Value: prefix})
	if line != "" || len(list) != 1 || !list[0].P || list[0].Flags != "01" || list[0].SourceRouterIds[0] != "192.0.2.1" || list[0].OtherSubTlvs[0] != 3 {
		t.Errorf("%v %q", list, line)
	}
	for want, tlv := range map[string]packet.TLV{
		"areas: 49.0001": packet.AreasTLV(packet.Area{0x49, 0, 1}),
		"IS reachability: 0000.0000.0002.00 (metric 10)": {Type: 22, Value: []byte{0, 0, 0, 0, 0, 2, 0, 0, 0, 10, 0}},
		"host name: r1":          {Type: 137, Value: []byte("r1")},
		"protocols: IPv4":        {Type: 129, Value: []byte{0xCC}},
		"authentication":         {Type: 10, Value: []byte{54, 1, 2, 3}},
		"TE router ID: 10.0.0.1": {Type: 134, Value: []byte{10, 0, 0, 1}},
		"TLV 250: 0102":          {Type: 250, Value: []byte{1, 2}},
		"TLV 135: isis: offset 0: prefix entry: 1 octets are left, at least 5 are needed": {Type: 135, Value: []byte{1}},
	} {
		if _, got := isisTLV(packet.FlagProxy, tlv); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
