package ctl

import (
	"strings"
	"testing"

	pncv1 "pncd/api/pnc/v1"
)

func TestTheLearnerThroughTheAPIIsShown(t *testing.T) {
	b, env := sample(t)
	b.OSPF.Learner = &pncv1.OspfApiLearner{Address: "127.0.0.1", State: "synced", RouterId: "192.0.2.254", Believed: true, Connections: 2,
		Areas: []*pncv1.OspfArea{{Id: "0.0.0.3", Lsas: 7}}, Dropped: map[string]uint64{"checksum": 1}}
	status, out, errs := pncctl(t, env, "ospf", "spf")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, %s", status, errs)
	}
	for _, want := range []string{"api   0.0.0.3", "OSPF API:          127.0.0.1", "synced", "checksum=1"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestOSPFDatabaseRefusesWhatCantBe(t *testing.T) {
	_, env := sample(t)
	for _, tt := range []struct {
		args, want string
		status     int
	}{
		{"ospf", "pncctl ospf needs a command", 2},
		{"ospf neighbors --v2 --v3", "--v2 and --v3 cannot be used together", 2},
		{"ospf database --v2 --v3", "--v2 and --v3 cannot be used together", 2},
		{"ospf database a b", "unexpected argument", 2},
		{"ospf database --type x", "type: \"x\" is neither a number nor one of", 2},
		{"ospf database --area x", "area: \"x\" is neither a dotted quad", 2},
		{"ospf database x", "router: \"x\" is neither a dotted quad", 2},
	} {
		if status, _, errs := pncctl(t, env, strings.Fields(tt.args)...); status != tt.status || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: status %d, %q, want %q", tt.args, status, errs, tt.want)
		}
	}
}
