package daemon

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/kernel"
	"pncd/internal/config"
)

func TestTapIsWhatTheKernelHasOrWhatWasAskedFor(t *testing.T) {
	no := fmt.Errorf("TCX (Linux 6.6): %w", kernel.ErrNotSupported)
	all, old, none := kernel.Support{Kernel: "6.9"}, kernel.Support{Kernel: "6.1", TCX: no}, kernel.Support{TCX: kernel.ErrPermission, Clsact: kernel.ErrPermission, XDP: kernel.ErrPermission}
	for _, tc := range []struct {
		want    string
		support kernel.Support
		says    string
		err     error
	}{
		{config.TapAuto, all, "tcx: Linux 6.9 has it", nil},
		{config.TapAuto, old, "clsact: no TCX (Linux 6.6): not supported by this kernel", nil},
		{config.TapAuto, none, "ring: needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN", nil},
		{config.TapAuto, kernel.Support{TCX: no, Clsact: kernel.ErrPermission}, "ring: TCX (Linux 6.6): not supported by this kernel; clsact: needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN", nil},
		{config.TapRing, all, "ring: proxy.tap asks for it", nil},
		{config.TapXDP, old, "xdp: proxy.tap asks for it", nil},
		{config.TapTCX, old, "", kernel.ErrNotSupported},
		{config.TapXDP, none, "", kernel.ErrPermission},
	} {
		c := chooseTap(tc.want, func() kernel.Support { return tc.support })
		if !errors.Is(c.err, tc.err) || tc.err == nil && c.String() != tc.says {
			t.Errorf("%s: %v, %v; want %s, %v", tc.want, c, c.err, tc.says, tc.err)
		}
		if c.err != nil && !strings.Contains(c.err.Error(), tc.want+" can't be had") {
			t.Errorf("%s: %v", tc.want, c.err)
		}
	}
}

func TestXDPHasNoRoomForASecondProgram(t *testing.T) {
	proxy := func(tap string, ring, flows int) *config.Proxy {
		return &config.Proxy{Tap: tap, TapRing: ring, TapFlows: flows}
	}
	for _, tc := range []struct {
		old, next *config.Proxy
		want      int
	}{
		{proxy("xdp", 16, 1024), proxy("xdp", 32, 2048), 2},
		{proxy("xdp", 16, 1024), proxy("xdp", 16, 1024), 0},
		{proxy("xdp", 16, 1024), proxy("tcx", 32, 1024), 0},
		{proxy("tcx", 16, 1024), proxy("tcx", 32, 2048), 0},
		{nil, proxy("xdp", 16, 1024), 0},
		{&config.Proxy{Tap: "xdp", TapTunnels: []string{"gre"}}, &config.Proxy{Tap: "xdp", TapTunnels: []string{"gre", "ip"}}, 1},
		{&config.Proxy{Tap: "xdp", TapTunnels: []string{"ip", "gre"}}, &config.Proxy{Tap: "xdp", TapTunnels: []string{"gre", "ip"}}, 0},
	} {
		if got := checkTap(tc.old, tc.next); len(got) != tc.want {
			t.Errorf("%+v to %+v: %q", tc.old, tc.next, got)
		}
	}
}

func TestEachTunnelOfTheConfigurationIsOneOfTheParser(t *testing.T) {
	if all := tunnelsOf(&config.Proxy{TapTunnels: config.TapTunnels}); !slices.Equal(config.TapTunnels, roce.TunnelNames()) || all != roce.AllTunnels {
		t.Errorf("%q, %s; want %q", config.TapTunnels, all, roce.TunnelNames())
	}
}

func TestATapSaysWhatItLooksBehind(t *testing.T) {
	s := tapSettings{tapChoice: tapChoice{program: true, mode: kernel.TCX, why: "because"}}
	if got := s.detail(); got != "tcx: because" {
		t.Errorf("%q", got)
	}
	s.tunnels = tunnelsOf(&config.Proxy{TapTunnels: []string{"gre", "vxlan"}})
	if got := s.detail(); got != "tcx: because, behind gre, vxlan" {
		t.Errorf("%q", got)
	}
}

func TestRingBufferIsAPowerOfTwo(t *testing.T) {
	for mib, want := range map[int]int{1: 1 << 20, 2: 2 << 20, 3: 4 << 20, 16: 16 << 20, 17: 32 << 20, 1000: 1 << 30, 1024: 1 << 30} {
		if got := ringOctets(mib); got != want {
			t.Errorf("%d MiB: %d octets, want %d", mib, got, want)
		}
	}
}
