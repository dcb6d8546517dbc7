package daemon

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
	"pncd/igp"
	"pncd/igp/ospf/marks"
	"pncd/internal/config"
)

func apiConfig(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse([]byte("node: leaf1\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

const apiFile = "ospfapi: {address: 192.0.2.254, local_address: 192.0.2.2, accept_proxies: [192.0.2.0/24], carrier: tlv-flags}\n"

func TestTheAPILearnersSettings(t *testing.T) {
	got := ospfapiSettings(apiConfig(t, apiFile).OSPFAPI)
	if got.Router.String() != "192.0.2.254" || got.Port != 2607 || got.Local.String() != "192.0.2.2" || got.Learner.MaxLSAs != 131072 || got.Learner.Carrier != (marks.Carrier{TLVFlags: 8, Bit: 2}) {
		t.Errorf("%+v", got)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
	def := ospfapiSettings(apiConfig(t, "ospfapi: {port: 2607}\n").OSPFAPI)
	if want := def.WithDefaults(); def.Router != want.Router || def.Port != want.Port || def.Learner.MaxLSAs != want.Learner.MaxLSAs {
		t.Errorf("%+v, want %+v", def, want)
	}
}

func TestWhatOfTheAPILearnerCanBeReloaded(t *testing.T) {
	old := apiConfig(t, apiFile).OSPFAPI
	for edit, want := range map[string]string{
		"":                                      "",
		"192.0.2.0/24 -> 198.51.100.0/24":       "",
		"tlv-flags -> tlv-flags, flag: 9":       "ospfapi.flag: 2 -> 9",
		"192.0.2.254 -> 192.0.2.253":            "ospfapi.address: 192.0.2.254 -> 192.0.2.253",
		"tlv-flags -> tlv-flags, port: 1":       "ospfapi.port: 2607 -> 1",
		"tlv-flags -> ext-flags":                "ospfapi.carrier: tlv-flags -> ext-flags; ospfapi.flag_mask: 8 -> 0",
		"192.0.2.2, -> 192.0.2.3,":              "ospfapi.local_address: 192.0.2.2 -> 192.0.2.3",
		"tlv-flags -> tlv-flags, max_lsas: 999": "ospfapi.max_lsas: 131072 -> 999",
	} {
		was, is, _ := strings.Cut(edit, " -> ")
		next := apiConfig(t, strings.Replace(apiFile, was, is, 1)).OSPFAPI
		if got := strings.Join(checkOSPFAPI(old, next), "; "); got != want {
			t.Errorf("%s: %q, want %q", edit, got, want)
		}
	}
	if len(checkOSPFAPI(nil, old)) == 0 || len(checkOSPFAPI(old, nil)) == 0 || len(checkOSPFAPI(nil, nil)) != 0 {
		t.Error("the section as a whole")
	}
}

func TestTheAPILearnerBelievesWhomItsSectionNames(t *testing.T) {
	d := quietDaemon(t, apiConfig(t, apiFile))
	d.learned(ospfapiProtocol)([]igp.Learned{{Prefix: netip.MustParsePrefix("10.1.0.0/24"), Originator: "192.0.2.7", P: true, Proxy: netip.MustParseAddr("198.51.100.1")}})
	if r := d.table.Rejected(); len(r) != 1 || r[0].Detail != "ospfapi.accept_proxies has no prefix with 198.51.100.1" {
		t.Errorf("%v", r)
	}
}

func TestOSPFOverTheAPIByVersion(t *testing.T) {
	d := quietDaemon(t, apiConfig(t, "ospfapi: {address: 127.0.0.2}\n")) // nobody listens there
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.ospfapi.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	b := ospfBackend{d}
	for _, version := range []uint32{0, 2} {
		if res, err := b.Ospf(ctx, version); err != nil || res.GetLearner().GetAddress() != "127.0.0.2" || len(res.GetRouters()) != 0 {
			t.Errorf("version %d: %v, %v", version, res, err)
		}
		if list, err := b.Lsas(ctx, api.LsaFilter{Version: version}); err != nil || len(list) != 0 {
			t.Errorf("version %d: %v, %v", version, list, err)
		}
	}
	_, err := b.Ospf(ctx, 3)
	_, lsaErr := b.Lsas(ctx, api.LsaFilter{Version: 3})
	for _, err := range []error{err, lsaErr} {
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "OSPFv3 is not configured") {
			t.Errorf("version 3: %v", err)
		}
	}
	if p := d.ospfapiStatus(); p.GetState() != pncv1.PartState_PART_STATE_STARTING || !strings.HasPrefix(p.GetDetail(), "127.0.0.2: ") {
		t.Errorf("%v", p)
	}
	if counts := d.ospfapiCounts(); len(counts) < 2 {
		t.Errorf("%v", counts)
	}
}
