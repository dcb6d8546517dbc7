package bgp

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// soundVPN announces one prefix of each family in a VPN.
func soundVPN(t testing.TB) Config {
	c, label := sound(), uint32(1001)
	c.Contexts = []ContextConfig{
		{Name: "blue", RD: distinguisher(t, "192.0.2.1:1"), Export: []RouteTarget{target(t, "65000:9100")}, Label: &label},
		importing(t, "red", "65000:200"),
	}
	c.Originate = []OriginateConfig{
		{Context: "blue", Prefix: prefix("203.0.113.0/24"), Proxy: addr("192.0.2.7"), NextHop: addr("198.51.100.1")},
		{Context: "blue", Prefix: prefix("2001:db8:7::/48"), Proxy: addr("192.0.2.7"), NextHop: addr("2001:db8::1")},
	}
	return c
}

func TestAWrongVPNNamesTheFieldAndTheRule(t *testing.T) {
	if err := soundVPN(t).Validate(); err != nil {
		t.Fatal(err)
	}
	low := uint32(15)
	for want, edit := range map[string]func(*Config){
		"needs a name":                         func(c *Config) { c.Contexts[0].Name = "" },
		"context red: is configured":           func(c *Config) { c.Contexts[0].Name = "red" },
		"label 15 must be":                     func(c *Config) { c.Contexts[0].Label = &low },
		"no such context":                      func(c *Config) { c.Originate[0].Context = "green" },
		"needs a route dist":                   func(c *Config) { c.Contexts[0].RD = RD{} },
		"exports to no":                        func(c *Config) { c.Contexts[0].Export = nil },
		"needs a label":                        func(c *Config) { c.Contexts[0].Label = nil },
		"host bits":                            func(c *Config) { c.Originate[0].Prefix = prefix("203.0.113.1/24") },
		"proxy":                                func(c *Config) { c.Originate[0].Proxy = addr("0.0.0.0") },
		"beyond its link":                      func(c *Config) { c.Originate[0].NextHop = addr("fe80::1") },
		"originate needs one":                  func(c *Config) { c.Originate[0].NextHop = netip.Addr{} },
		"imports no route target":              func(c *Config) { c.Originate[0].Mode, c.Originate[0].NextHop = ModePath, netip.Addr{} },
		"the prefix is IPv4":                   func(c *Config) { c.Originate[0].NextHop = addr("2001:db8::1") },
		"in context blue: is configured twice": func(c *Config) { c.Originate[1] = c.Originate[0] },
		"vpnv6-unicast, once each":             func(c *Config) { c.Neighbors[0].Families = []Family{IPv4VPN, IPv4VPN} },
	} {
		c := soundVPN(t)
		edit(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestVPNAnnouncementsHaveNHCWithoutRDAndWithoutPartial(t *testing.T) {
	c, err := soundVPN(t).complete()
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t)
	d.o = newOriginator(c)
	if got := d.plan(); len(got.announce)+len(got.withdraw) != 0 {
		t.Errorf("off: %+v", got)
	}
	d.o.setEnabled(true)
	got := d.plan()
	if len(got.announce) != 2 {
		t.Fatalf("%+v", got)
	}
	for _, a := range got.announce {
		want := []string{"40010100", "d01000080002fde80000238c", "c02710" + "00018004c6336401" + "ff780004c0000207"}
		if a.Prefix.Addr().Is6() {
			want[2] = "c0271c" + "0002801020010db8000000000000000000000001" + "ff780004c0000207"
		}
		var got []string
		for _, attr := range a.Attributes {
			got = append(got, hex.EncodeToString(attr))
		}
		if !slices.Equal(got, want) || a.VPN.RD.String() != "192.0.2.1:1" || a.VPN.Label != 1001 || a.NotTo.IsValid() {
			t.Errorf("%s: %v, want %v; %+v", a.Prefix, got, want, a.VPN)
		}
	}

	// Another label is another announcement, another RD another route, another target a change.
	label := uint32(1002)
	c.Contexts = slices.Clone(c.Contexts)
	c.Contexts[0].Label = &label
	d.o.configure(c)
	if got := d.plan(); len(got.announce) != 2 || len(got.withdraw) != 0 {
		t.Errorf("label: %+v", got)
	}
	c.Contexts = slices.Clone(c.Contexts)
	c.Contexts[0].RD = distinguisher(t, "192.0.2.1:2")
	d.o.configure(c)
	if got := d.plan(); len(got.announce) != 2 || len(got.withdraw) != 2 || got.keys[0].RD.String() != "192.0.2.1:1" {
		t.Errorf("RD: %+v", got)
	}
	d.o.setEnabled(false)
	if got := d.plan(); len(got.announce) != 0 || len(got.withdraw) != 2 || len(d.o.owner) != 0 {
		t.Errorf("off: %+v", got)
	}
}

func TestAChangedContextIsReplayedAndNoSessionTouched(t *testing.T) {
	r := run(t, soundVPN(t))
	before := len(r.f.log())
	next := soundVPN(t)
	next.Contexts[1] = importing(t, "red", "65000:200", "65000:300")
	if err := r.Reconfigure(next); err != nil {
		t.Fatal(err)
	}
	if got := r.f.log()[before:]; !slices.Equal(got, []string{"replay [vpnv4-unicast vpnv6-unicast]"}) {
		t.Errorf("asked %v", got)
	}
	if err := r.SetOriginating(true); err != nil {
		t.Fatal(err)
	}
	next.Originate = next.Originate[1:]
	before = len(r.f.log())
	if err := r.Reconfigure(next); err != nil {
		t.Fatal(err)
	}
	if got := r.f.log()[before:]; !slices.Equal(got, []string{"withdraw 192.0.2.1:1:203.0.113.0/24"}) {
		t.Errorf("asked %v", got)
	}
	n := 0
	for _, ad := range r.Advertisements() {
		if ad.Context == "blue" && ad.RD == "192.0.2.1:1" && ad.Active && ad.Configured {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%+v", r.Advertisements())
	}
}
