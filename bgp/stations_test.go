package bgp

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestStationsFollowTheConfiguration(t *testing.T) {
	a, b := Station{Address: netip.MustParseAddrPort("192.0.2.9:11019")}, Station{Address: netip.MustParseAddrPort("[2001:db8::9]:11019"), Statistics: time.Minute}
	cfg := sound()
	cfg.Stations = []Station{a}
	r := run(t, cfg)
	has := func(want ...Station) {
		t.Helper()
		var got []Station
		for _, s := range r.Stations() {
			got = append(got, s.Station)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	has(a)
	for _, list := range [][]Station{{a, b}, {b}, nil} {
		next := sound()
		next.Stations = list
		if err := r.Reconfigure(next); err != nil {
			t.Fatal(err)
		}
		has(list...)
	}
}

func TestWhatIsWrongWithAStationIsSaid(t *testing.T) {
	at := netip.MustParseAddrPort
	for want, list := range map[string][]Station{
		"BMP station invalid AddrPort: must be a unicast address with a port": {{}},
		"BMP station 192.0.2.9:0: must be a unicast address with a port":      {{Address: at("192.0.2.9:0")}},
		"BMP station 224.0.0.1:1: must be a unicast address with a port":      {{Address: at("224.0.0.1:1")}},
		"BMP station 192.0.2.9:1: statistics 1.5s must be whole seconds":      {{Address: at("192.0.2.9:1"), Statistics: 1500 * time.Millisecond}},
		"BMP station 192.0.2.9:1: statistics 24h0m0s must be whole seconds":   {{Address: at("192.0.2.9:1"), Statistics: 24 * time.Hour}},
		"BMP station 192.0.2.9:1: is configured twice":                        {{Address: at("192.0.2.9:1")}, {Address: at("192.0.2.9:1")}},
	} {
		cfg := sound()
		cfg.Stations = list
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
