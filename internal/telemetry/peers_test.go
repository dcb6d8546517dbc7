package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestNeighborsHaveTheNamesOfGoBGPAndFRRToo(t *testing.T) {
	s := Snapshot{RouterID: "192.0.2.1", Neighbors: []Neighbor{
		{Address: "192.0.2.2", PeerAS: 65000, LocalAS: 65000, RouterID: "192.0.2.2", State: "established", Families: []string{"ipv4-unicast"}, Received: 10, Advertised: 2, MD5: true, SentUpdates: 3, Refused: 4},
		{Address: "192.0.2.3", PeerAS: 65001, LocalAS: 65000, State: "active", Families: []string{"ipv4-unicast", "vpnv6-unicast"}},
		{Address: "192.0.2.4", PeerAS: 65000, LocalAS: 65000, State: "idle", Families: []string{"vpnv4-unicast"}, Shutdown: true},
	}}
	const want = `
# HELP bgp_peer_asn What is the AS number of the peer.
# TYPE bgp_peer_asn gauge
bgp_peer_asn{peer="192.0.2.2",router_id="192.0.2.2"} 65000
bgp_peer_asn{peer="192.0.2.3",router_id=""} 65001
bgp_peer_asn{peer="192.0.2.4",router_id=""} 65000
# HELP bgp_peer_local_asn What is the AS number presented to the peer by this router.
# TYPE bgp_peer_local_asn gauge
bgp_peer_local_asn{peer="192.0.2.2",router_id="192.0.2.1"} 65000
bgp_peer_local_asn{peer="192.0.2.3",router_id="192.0.2.1"} 65000
bgp_peer_local_asn{peer="192.0.2.4",router_id="192.0.2.1"} 65000
# HELP bgp_peer_password_set Whether the peer has been configured for authentication (1) or not (0).
# TYPE bgp_peer_password_set gauge
bgp_peer_password_set{peer="192.0.2.2"} 1
bgp_peer_password_set{peer="192.0.2.3"} 0
bgp_peer_password_set{peer="192.0.2.4"} 0
# HELP bgp_peer_state State of the BGP session with the peer and its administrative state; the value is always 1.
# TYPE bgp_peer_state gauge
bgp_peer_state{admin_state="DOWN",peer="192.0.2.4",session_state="IDLE"} 1
bgp_peer_state{admin_state="UP",peer="192.0.2.2",session_state="ESTABLISHED"} 1
bgp_peer_state{admin_state="UP",peer="192.0.2.3",session_state="ACTIVE"} 1
# HELP bgp_peer_type Type of the BGP peer, internal (0) or external (1).
# TYPE bgp_peer_type gauge
bgp_peer_type{peer="192.0.2.2"} 0
bgp_peer_type{peer="192.0.2.3"} 1
bgp_peer_type{peer="192.0.2.4"} 0
# HELP bgp_routes_advertised Number of routes advertised to the peer; sessions of one family only.
# TYPE bgp_routes_advertised gauge
bgp_routes_advertised{peer="192.0.2.2",route_family="ipv4-unicast"} 2
bgp_routes_advertised{peer="192.0.2.4",route_family="l3vpn-ipv4-unicast"} 0
# HELP bgp_routes_received Number of routes received from the peer; sessions of one family only.
# TYPE bgp_routes_received gauge
bgp_routes_received{peer="192.0.2.2",route_family="ipv4-unicast"} 10
bgp_routes_received{peer="192.0.2.4",route_family="l3vpn-ipv4-unicast"} 0
# HELP bgp_sent_update_total Number of BGP UPDATE messages sent to the peer.
# TYPE bgp_sent_update_total counter
bgp_sent_update_total{peer="192.0.2.2"} 3
bgp_sent_update_total{peer="192.0.2.3"} 0
bgp_sent_update_total{peer="192.0.2.4"} 0
# HELP frr_bgp_peer_prefixes_advertised_count_total Number of prefixes advertised; sessions of one family only.
# TYPE frr_bgp_peer_prefixes_advertised_count_total gauge
frr_bgp_peer_prefixes_advertised_count_total{afi="ipv4",local_as="65000",peer="192.0.2.2",peer_as="65000",safi="unicast",vrf="default"} 2
frr_bgp_peer_prefixes_advertised_count_total{afi="ipv4",local_as="65000",peer="192.0.2.4",peer_as="65000",safi="vpn",vrf="default"} 0
# HELP frr_bgp_peer_prefixes_received_count_total Number of prefixes received; sessions of one family only.
# TYPE frr_bgp_peer_prefixes_received_count_total gauge
frr_bgp_peer_prefixes_received_count_total{afi="ipv4",local_as="65000",peer="192.0.2.2",peer_as="65000",safi="unicast",vrf="default"} 10
frr_bgp_peer_prefixes_received_count_total{afi="ipv4",local_as="65000",peer="192.0.2.4",peer_as="65000",safi="vpn",vrf="default"} 0
# HELP frr_bgp_peer_state State of the peer (2 = Administratively Down, 1 = Established, 0 = Down).
# TYPE frr_bgp_peer_state gauge
frr_bgp_peer_state{afi="ipv4",local_as="65000",peer="192.0.2.2",peer_as="65000",safi="unicast",vrf="default"} 1
frr_bgp_peer_state{afi="ipv4",local_as="65000",peer="192.0.2.3",peer_as="65001",safi="unicast",vrf="default"} 0
frr_bgp_peer_state{afi="ipv4",local_as="65000",peer="192.0.2.4",peer_as="65000",safi="vpn",vrf="default"} 2
frr_bgp_peer_state{afi="ipv6",local_as="65000",peer="192.0.2.3",peer_as="65001",safi="vpn",vrf="default"} 0
# HELP pncd_bgp_neighbor_refused_total Announcements of the neighbour that its prefix list did not take.
# TYPE pncd_bgp_neighbor_refused_total counter
pncd_bgp_neighbor_refused_total{neighbor="192.0.2.2"} 4
pncd_bgp_neighbor_refused_total{neighbor="192.0.2.3"} 0
pncd_bgp_neighbor_refused_total{neighbor="192.0.2.4"} 0
`
	names := []string{
		"bgp_peer_asn", "bgp_peer_local_asn", "bgp_peer_password_set", "bgp_peer_state", "bgp_peer_type", "bgp_routes_advertised", "bgp_routes_received",
		"bgp_sent_update_total", "frr_bgp_peer_prefixes_advertised_count_total", "frr_bgp_peer_prefixes_received_count_total", "frr_bgp_peer_state",
		"frr_bgp_peer_uptime_seconds", "pncd_bgp_neighbor_refused_total",
	}
	if err := testutil.CollectAndCompare(NewCollector(fixed{s}), strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	s.Neighbors[0].Since = time.Now().Add(-time.Hour)
	if n := testutil.CollectAndCount(NewCollector(fixed{s}), "frr_bgp_peer_uptime_seconds"); n != 1 {
		t.Errorf("%d uptimes of one session that is up", n)
	}
}

func TestAdvertisementsAndSourcesAreCounted(t *testing.T) {
	s := Snapshot{
		Advertisements: []Advertisements{{"lease", true, 2}, {"config", false, 1}},
		Sources:        []SenderSource{{"interface eth1", 3}, {"table 100", 0}},
	}
	const want = `
# HELP pncd_bgp_advertisements Sender prefixes to announce, by what asked for them (config, source, request, or lease for a request with one) and by whether the capability is announced now.
# TYPE pncd_bgp_advertisements gauge
pncd_bgp_advertisements{active="false",from="config"} 1
pncd_bgp_advertisements{active="false",from="lease"} 0
pncd_bgp_advertisements{active="false",from="request"} 0
pncd_bgp_advertisements{active="false",from="source"} 0
pncd_bgp_advertisements{active="true",from="config"} 0
pncd_bgp_advertisements{active="true",from="lease"} 2
pncd_bgp_advertisements{active="true",from="request"} 0
pncd_bgp_advertisements{active="true",from="source"} 0
# HELP pncd_sender_source_prefixes Sender prefixes that a source has now.
# TYPE pncd_sender_source_prefixes gauge
pncd_sender_source_prefixes{source="interface eth1"} 3
pncd_sender_source_prefixes{source="table 100"} 0
`
	if err := testutil.CollectAndCompare(NewCollector(fixed{s}), strings.NewReader(want), "pncd_bgp_advertisements", "pncd_sender_source_prefixes"); err != nil {
		t.Error(err)
	}
}
