package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
)

func TestOSPFRoutersByVersion(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	ospf := pncv1.NewOspfServiceClient(c.conn)
	for version, want := range map[uint32]string{0: "[2 3]", 2: "[2]", 3: "[3]"} {
		res, err := ospf.GetOspf(deadline(t), &pncv1.GetOspfRequest{Version: version})
		var got []uint32
		for _, r := range res.GetRouters() {
			got = append(got, r.GetVersion())
		}
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("version %d: %v, %v, want %s", version, got, err, want)
		}
	}
	_, err := ospf.GetOspf(deadline(t), &pncv1.GetOspfRequest{Version: 1})
	wantCode(t, err, codes.InvalidArgument, "")
}

func TestLSAsAreFiltered(t *testing.T) {
	_, _, c := sample(t, api.Options{})
	ospf := pncv1.NewOspfServiceClient(c.conn)
	for _, tc := range []struct {
		name string
		req  *pncv1.ListLsasRequest
		want string
	}{
		{"all", &pncv1.ListLsasRequest{}, "192.0.2.1 7.0.0.1 203.0.113.0 0.0.0.3 0.0.0.1"},
		{"version", &pncv1.ListLsasRequest{Version: 3}, "0.0.0.3 0.0.0.1"},
		{"area", &pncv1.ListLsasRequest{Area: "0.0.0.0", Version: 2}, "192.0.2.1 7.0.0.1"},
		{"area as a number", &pncv1.ListLsasRequest{Area: "0", Version: 2}, "192.0.2.1 7.0.0.1"},
		{"another area", &pncv1.ListLsasRequest{Area: "1"}, ""},
		{"router", &pncv1.ListLsasRequest{Router: "192.0.2.9"}, "7.0.0.1 0.0.0.1"},
		{"type by name", &pncv1.ListLsasRequest{Type: "extended-prefix"}, "7.0.0.1"},
		{"type by number", &pncv1.ListLsasRequest{Type: "10"}, "7.0.0.1"},
		{"type in hexadecimal", &pncv1.ListLsasRequest{Type: "0xA029"}, "0.0.0.1"},
		{"all together", &pncv1.ListLsasRequest{Version: 2, Area: "0.0.0.0", Type: "router", Router: "192.0.2.1"}, "192.0.2.1"},
	} {
		res, err := ospf.ListLsas(deadline(t), tc.req)
		var ids []string
		for _, l := range res.GetLsas() {
			ids = append(ids, l.GetId())
		}
		if got := strings.Join(ids, " "); err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", tc.name, got, err, tc.want)
		}
	}
	for name, req := range map[string]*pncv1.ListLsasRequest{
		"version": {Version: 4}, "area": {Area: "backbone"}, "router": {Router: "2001:db8::1"}, "type": {Type: "opaque"}, "great type": {Type: "0x10000"},
	} {
		_, err := ospf.ListLsas(deadline(t), req)
		t.Run(name, func(t *testing.T) { wantCode(t, err, codes.InvalidArgument, "") })
	}
	_, err := ospf.ListLsas(deadline(t), &pncv1.ListLsasRequest{Router: "198.51.100.99"})
	wantCode(t, err, codes.NotFound, "")
	if res, err := ospf.ListLsas(deadline(t), &pncv1.ListLsasRequest{Router: "192.0.2.1", Type: "grace"}); err != nil || len(res.GetLsas()) != 0 {
		t.Errorf("a known router without such an LSA: %v, %v", res, err)
	}
}

func TestNamesOfLSATypes(t *testing.T) {
	for _, tc := range []struct {
		version, typ uint32
		opaque       uint8
		want         string
	}{
		{2, 1, 7, "router"}, // the opaque type counts with opaque LSAs alone
		{2, 7, 0, "nssa-external"}, {2, 9, 3, "grace"}, {2, 10, 7, "extended-prefix"}, {2, 10, 99, "opaque-area"}, {2, 11, 0, "opaque-as"}, {2, 77, 0, "77"},
		{3, 0x2001, 0, "router"}, {3, 0xA029, 0, "e-intra-area-prefix"}, {3, 0x000B, 0, "grace"}, {3, 0x8123, 0, "0x8123"},
	} {
		if got := api.LsaTypeName(tc.version, tc.typ, tc.opaque); got != tc.want {
			t.Errorf("OSPFv%d type %#x: %s, want %s", tc.version, tc.typ, got, tc.want)
		}
	}
	if names := api.LsaTypeNames(); !slices.IsSorted(names) || !slices.Contains(names, "extended-prefix") || !slices.Contains(names, "link") {
		t.Errorf("%v", names)
	}
}
