package integration

import (
	"net/netip"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pncv1 "pncd/api/pnc/v1"
)

// An orchestrator that goes away takes along what it asked for; one that repeats its request does not.
func TestAnAdvertisementEndsWithItsLease(t *testing.T) {
	b := upBed(t, nil)
	sender := netip.MustParseAddr("10.7.0.2")
	advertise := func(lease time.Duration) *pncv1.Advertisement {
		t.Helper()
		res, err := b.Proxy.Capabilities.Advertise(testContext(t), &pncv1.AdvertiseRequest{
			Prefix: "10.7.0.0/24", Proxy: "10.255.0.2", NextHop: "10.255.0.1", Lease: durationpb.New(lease)})
		if err != nil {
			t.Fatal(err)
		}
		return res.GetAdvertisement()
	}
	first := advertise(time.Hour)
	waitResolve(t, b, sender, pncv1.ResolveReason_RESOLVE_REASON_FOUND)
	asked := time.Now()
	again := advertise(2 * time.Second)
	if end := again.GetExpiresAt().AsTime(); !end.Before(first.GetExpiresAt().AsTime()) || end.Sub(asked) > 3*time.Second || !again.GetActive() {
		t.Errorf("first %v, then %v", first, again)
	}
	waitResolve(t, b, sender, pncv1.ResolveReason_RESOLVE_REASON_NO_ROUTE)
	if early := time.Until(again.GetExpiresAt().AsTime()); early > 0 {
		t.Errorf("withdrawn %s before the lease ended", early)
	}
}
