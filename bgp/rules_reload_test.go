package bgp

import (
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// What a changed configuration does to sessions.
const (
	anew      = "anew"    // that session ends and begins again
	replay    = "replay"  // its routes are looked at again, no session is touched
	untouched = "nothing" // no session is touched, no route looked at again
	restart   = "restart" // refused: the program has to start again
)

// touched names the neighbours whose sessions were touched, and whether routes were looked at again.
func touched(asked []string) (sessions []string, replayed bool) {
	for _, s := range asked {
		verb, rest, _ := strings.Cut(s, " ")
		switch verb {
		case "add", "remove":
			if !slices.Contains(sessions, rest) {
				sessions = append(sessions, rest)
			}
		case "replay":
			replayed = true
		}
	}
	slices.Sort(sessions)
	return sessions, replayed
}

// Every field of a neighbour's configuration, changed alone on one of two neighbours.
func TestReloadTouchesOnlyTheSessionThatChanged(t *testing.T) {
	no := false
	changes := map[string]struct {
		edit func(*NeighborConfig)
		want string
	}{
		"Address":            {func(n *NeighborConfig) { n.Address = addr("192.0.2.77") }, anew},
		"Port":               {func(n *NeighborConfig) { n.Port = 1179 }, anew},
		"PeerAS":             {func(n *NeighborConfig) { n.PeerAS = 65009 }, anew},
		"LocalAS":            {func(n *NeighborConfig) { n.LocalAS = 65001 }, anew},
		"Description":        {func(n *NeighborConfig) { n.Description = "rack 7" }, untouched},
		"Passive":            {func(n *NeighborConfig) { n.Passive = true }, anew},
		"Password":           {func(n *NeighborConfig) { n.Password = "secret" }, anew},
		"TTLMin":             {func(n *NeighborConfig) { n.TTLMin = 255 }, anew},
		"EBGPMultihop":       {func(n *NeighborConfig) { n.PeerAS, n.EBGPMultihop = 65009, 3 }, anew},
		"HoldTime":           {func(n *NeighborConfig) { n.HoldTime = 30 * time.Second }, anew},
		"Keepalive":          {func(n *NeighborConfig) { n.Keepalive = 5 * time.Second }, anew},
		"ConnectRetry":       {func(n *NeighborConfig) { n.ConnectRetry = 5 * time.Second }, anew},
		"LocalAddress":       {func(n *NeighborConfig) { n.LocalAddress = addr("192.0.2.1") }, anew},
		"Families":           {func(n *NeighborConfig) { n.Families = []Family{IPv4Unicast, IPv4VPN} }, anew},
		"AddPath":            {func(n *NeighborConfig) { n.AddPath = true }, anew},
		"GracefulRestart":    {func(n *NeighborConfig) { n.GracefulRestart = true }, anew},
		"LongLivedRestart":   {func(n *NeighborConfig) { n.GracefulRestart, n.LongLivedRestart = true, time.Hour }, anew},
		"AcceptEBGP":         {func(n *NeighborConfig) { n.PeerAS, n.AcceptEBGP = 65009, true }, anew},
		"SendNHC":            {func(n *NeighborConfig) { n.SendNHC = &no }, anew},
		"Border":             {func(n *NeighborConfig) { n.PeerAS, n.Border = 65009, true }, anew},
		"ImportPrefixes":     {func(n *NeighborConfig) { n.ImportPrefixes = PrefixList{{Prefix: pfx}} }, replay},
		"ExportPrefixes":     {func(n *NeighborConfig) { n.ExportPrefixes = PrefixList{{Prefix: pfx}} }, anew},
		"RequireCommunities": {func(n *NeighborConfig) { n.RequireCommunities = []Community{community("1:2")} }, replay},
		"AcceptProxies":      {func(n *NeighborConfig) { n.AcceptProxies = prefixes("10.0.0.0/8") }, replay},
		"AcceptFrom":         {func(n *NeighborConfig) { n.AcceptFrom = prefixes("10.0.0.0/8") }, replay},
		"MaxPrefixes":        {func(n *NeighborConfig) { n.MaxPrefixes = 7 }, anew},
		"Shutdown":           {func(n *NeighborConfig) { n.Shutdown = "maintenance" }, anew},
		"AllowOwnAS":         {func(n *NeighborConfig) { n.AllowOwnAS = 1 }, anew},
	}
	for i := range reflect.TypeFor[NeighborConfig]().NumField() {
		if f := reflect.TypeFor[NeighborConfig]().Field(i); f.IsExported() && changes[f.Name].edit == nil {
			t.Errorf("what does a change of NeighborConfig.%s touch?", f.Name)
		}
	}
	for name, tt := range changes {
		t.Run(name, func(t *testing.T) {
			r := run(t, sound())
			before, next := len(r.f.log()), sound()
			was := next.Neighbors[0].Address
			tt.edit(&next.Neighbors[0])
			if err := r.Reconfigure(next); err != nil {
				t.Fatal(err)
			}
			sessions, replayed := touched(r.f.log()[before:])
			var want []string
			if tt.want == anew {
				want = []string{was.String()}
				if is := next.Neighbors[0].Address; is != was {
					want = append(want, is.String())
				}
			}
			if !slices.Equal(sessions, want) || replayed != (tt.want == replay) {
				t.Errorf("sessions %v touched, routes looked at again: %v; want %s: %v", sessions, replayed, tt.want, r.f.log()[before:])
			}
			// The same once more is no change.
			before = len(r.f.log())
			if err := r.Reconfigure(next); err != nil || len(r.f.log()) != before {
				t.Errorf("the same again: %v, asked %v", err, r.f.log()[before:])
			}
		})
	}
}

// Every field outside of the neighbours.
func TestReloadOfTheRestTouchesNoSession(t *testing.T) {
	changes := map[string]struct {
		edit func(*Config)
		want string
	}{
		"RouterID":        {func(c *Config) { c.RouterID = addr("192.0.2.88") }, restart},
		"AS":              {func(c *Config) { c.AS = 65001 }, restart},
		"ListenPort":      {func(c *Config) { c.ListenPort = 1179 }, restart},
		"ListenAddresses": {func(c *Config) { c.ListenAddresses = []netip.Addr{addr("192.0.2.1")} }, restart},
		"GobgpSocket":     {func(c *Config) { c.GobgpSocket = "/run/pncd/other.sock" }, restart},
		"LocalAddress":    {func(c *Config) { c.LocalAddress = addr("192.0.2.1") }, anew}, // of the IPv4 neighbour alone
		"Context":         {func(c *Config) { c.Context = "green" }, untouched},
		"Originate":       {func(c *Config) { c.Originate = nil }, untouched},
		"Contexts":        {func(c *Config) { c.Contexts[1].Import = append(c.Contexts[1].Import, c.Contexts[0].Export...) }, replay},
		"Communities":     {func(c *Config) { c.Communities = []Community{community("1:2")} }, untouched},
		"PreferLocalPref": {func(c *Config) { c.PreferLocalPref = 300 }, untouched},
		"PNCCode":         {func(c *Config) { c.PNCCode = 65401 }, untouched},
		"AcceptProxies":   {func(c *Config) { c.AcceptProxies = prefixes("10.0.0.0/8") }, untouched}, // from the table itself
		"AcceptFrom":      {func(c *Config) { c.AcceptFrom = prefixes("10.0.0.0/8") }, untouched},
		"Ranges": {func(c *Config) {
			c.Ranges = []RangeConfig{{Prefix: prefixes("198.18.0.0/24")[0], Neighbor: NeighborConfig{PeerAS: 65000}}}
		}, untouched}, // TestReloadOfRangesTouchesWhatChanged has the sessions of ranges
		"Stations": {func(c *Config) { c.Stations = []Station{{Address: netip.MustParseAddrPort("192.0.2.1:11019")}} }, untouched},
		"Descr":    {func(c *Config) { c.Descr = "another build" }, untouched}, // never changes while the program runs
		"Own":      {func(c *Config) { c.Own = []netip.Addr{addr("192.0.2.1")} }, untouched},
		"Restart":  {func(c *Config) { c.Restart.Deferral = 90 * time.Second }, restart},
	}
	for i := range reflect.TypeFor[Config]().NumField() {
		if name := reflect.TypeFor[Config]().Field(i).Name; name != "Neighbors" && changes[name].edit == nil {
			t.Errorf("what does a change of Config.%s touch?", name)
		}
	}
	for name, tt := range changes {
		t.Run(name, func(t *testing.T) {
			r := run(t, soundVPN(t))
			before, next := len(r.f.log()), soundVPN(t)
			tt.edit(&next)
			err := r.Reconfigure(next)
			if errors.Is(err, ErrRestart) != (tt.want == restart) || err != nil && tt.want != restart {
				t.Fatal(err)
			}
			sessions, replayed := touched(r.f.log()[before:])
			want := 0
			if tt.want == anew {
				want = 1
			}
			if len(sessions) != want || replayed != (tt.want == replay) {
				t.Errorf("sessions %v touched, routes looked at again: %v; want %s", sessions, replayed, tt.want)
			}
		})
	}
}

// Each part of a context's policy.
func TestReloadOfAContextsPolicyTouchesNoSession(t *testing.T) {
	for name, tt := range map[string]struct {
		edit   func(*ContextConfig)
		replay bool
	}{
		"ImportPrefixes":     {func(c *ContextConfig) { c.ImportPrefixes = PrefixList{{Prefix: pfx}} }, true},
		"RequireCommunities": {func(c *ContextConfig) { c.RequireCommunities = []Community{community("1:2")} }, true},
		"AcceptProxies":      {func(c *ContextConfig) { c.AcceptProxies = prefixes("10.0.0.0/8") }, true},
		"AcceptFrom":         {func(c *ContextConfig) { c.AcceptFrom = prefixes("10.0.0.0/8") }, true},
		"ExportPrefixes":     {func(c *ContextConfig) { c.ExportPrefixes = PrefixList{{Prefix: pfx}} }, false},
		"Communities":        {func(c *ContextConfig) { c.Communities = []Community{community("1:2")} }, false},
		"RD":                 {func(c *ContextConfig) { c.RD[7]++ }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, soundVPN(t))
			before, next := len(r.f.log()), soundVPN(t)
			tt.edit(&next.Contexts[0])
			if err := r.Reconfigure(next); err != nil {
				t.Fatal(err)
			}
			if sessions, replayed := touched(r.f.log()[before:]); len(sessions) != 0 || replayed != tt.replay {
				t.Errorf("sessions %v touched, routes looked at again: %v", sessions, replayed)
			}
		})
	}
}
