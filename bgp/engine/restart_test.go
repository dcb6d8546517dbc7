package engine

import (
	"reflect"
	"testing"
	"time"

	api "github.com/osrg/gobgp/v3/api"
	"google.golang.org/protobuf/proto"
)

func TestWhatAPeerOffersForARestartIsRead(t *testing.T) {
	graceful := func(flags, seconds uint32, tuples ...*api.GracefulRestartCapabilityTuple) proto.Message {
		return &api.GracefulRestartCapability{Flags: flags, Time: seconds, Tuples: tuples}
	}
	v4, v6 := IPv4Unicast.api(), IPv6VPN.api()
	other := &api.Family{Afi: api.Family_AFI_L2VPN, Safi: api.Family_SAFI_EVPN}
	long := &api.LongLivedGracefulRestartCapability{Tuples: []*api.LongLivedGracefulRestartCapabilityTuple{
		{Family: v4, Flags: 0x80, Time: 86400}, {Family: v6, Time: 7}, {Family: other, Time: 9}}}
	for name, tt := range map[string]struct {
		caps []proto.Message
		want Restart
	}{
		"nothing":              {nil, Restart{}},
		"other capabilities":   {[]proto.Message{&api.RouteRefreshCapability{}}, Restart{}},
		"long-lived alone":     {[]proto.Message{long}, Restart{}}, // RFC 9494 section 3.1
		"a helper":             {[]proto.Message{graceful(0, 90)}, Restart{Offered: true, Time: 90 * time.Second, Families: map[Family]FamilyRestart{}}},
		"the last one counts":  {[]proto.Message{graceful(8, 9), graceful(0, 90)}, Restart{Offered: true, Time: 90 * time.Second, Families: map[Family]FamilyRestart{}}},
		"restarted, with bits": {[]proto.Message{graceful(0x0c, 120, &api.GracefulRestartCapabilityTuple{Family: v4, Flags: 0x80}, &api.GracefulRestartCapabilityTuple{Family: other}, &api.GracefulRestartCapabilityTuple{Family: v6})}, Restart{Offered: true, Restarted: true, Notification: true, Time: 2 * time.Minute, Families: map[Family]FamilyRestart{IPv4Unicast: {Graceful: true, Preserved: true}, IPv6VPN: {Graceful: true}}}},
		"long-lived": {[]proto.Message{long, graceful(0, 1, &api.GracefulRestartCapabilityTuple{Family: v4})}, Restart{Offered: true, Time: time.Second, Families: map[Family]FamilyRestart{
			IPv4Unicast: {Graceful: true, LongLived: true, LongLivedPreserved: true, LongLivedTime: 24 * time.Hour},
			IPv6VPN:     {LongLived: true, LongLivedTime: 7 * time.Second}}}},
	} {
		if got := readRestart(pack(t, tt.caps...)); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
