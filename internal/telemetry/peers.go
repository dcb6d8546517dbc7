package telemetry

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What GoBGP's own collector and frr_exporter export too has their names and labels here beside ours, so
// that dashboards and alerts made for them work. Families of theirs that would not mean the same are left
// out: GoBGP's uptime is a time, and its flops count ends, not beginnings.
var (
	goBGPPeer  = []string{"peer", "router_id"}
	goBGPASN   = plain("bgp_peer_asn", "What is the AS number of the peer.", goBGPPeer...)
	goBGPLocal = plain("bgp_peer_local_asn", "What is the AS number presented to the peer by this router.", goBGPPeer...)
	goBGPState = plain("bgp_peer_state", "State of the BGP session with the peer and its administrative state; the value is always 1.", "peer", "session_state", "admin_state")
	goBGPType  = plain("bgp_peer_type", "Type of the BGP peer, internal (0) or external (1).", "peer")
	goBGPKey   = plain("bgp_peer_password_set", "Whether the peer has been configured for authentication (1) or not (0).", "peer")
	goBGPSent  = plain("bgp_sent_update_total", "Number of BGP UPDATE messages sent to the peer.", "peer")
	goBGPIn    = plain("bgp_routes_received", "Number of routes received from the peer; sessions of one family only.", "peer", "route_family")
	goBGPOut   = plain("bgp_routes_advertised", "Number of routes advertised to the peer; sessions of one family only.", "peer", "route_family")

	frrPeer   = []string{"vrf", "afi", "safi", "local_as", "peer", "peer_as"}
	frrState  = plain("frr_bgp_peer_state", "State of the peer (2 = Administratively Down, 1 = Established, 0 = Down).", frrPeer...)
	frrUptime = plain("frr_bgp_peer_uptime_seconds", "How long has the peer been up; absent while it is down.", frrPeer...)
	frrIn     = plain("frr_bgp_peer_prefixes_received_count_total", "Number of prefixes received; sessions of one family only.", frrPeer...)
	frrOut    = plain("frr_bgp_peer_prefixes_advertised_count_total", "Number of prefixes advertised; sessions of one family only.", frrPeer...)

	descPeerRefused  = desc("bgp_neighbor_refused_total", "Announcements of the neighbour that its prefix list did not take.", "neighbor")
	descPeerRange    = desc("bgp_neighbor_range", "The range from which the neighbour has come by itself; absent for a configured one. The value is always 1.", "neighbor", "range")
	descRangeNow     = desc("bgp_range_neighbors", "Neighbours that have come from the range and are there.", "range")
	descRangeLimit   = desc("bgp_range_limit", "How many neighbours the range takes.", "range")
	descRangeRefused = desc("bgp_range_refused_total", "Connections from the range that were not taken: the limit was reached, or the session could not be begun.", "range")
	descAdverts      = desc("bgp_advertisements", "Sender prefixes to announce, by what asked for them (config, source, request, or lease for a request with one) and by whether the capability is announced now.", "from", "active")
	descSources      = desc("sender_source_prefixes", "Sender prefixes that a source has now.", "source")
)

func plain(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Advertisements are the sender prefixes of one origin.
type Advertisements struct {
	From   string // config, source, request or lease
	Active bool   // the capability is announced
	Count  int
}

// SenderSource is one source of sender prefixes.
type SenderSource struct {
	Name     string // as in interface eth1
	Prefixes int
}

// Origins of advertisements; all are exported, so that a query gives 0 instead of nothing.
var origins = []string{"config", "source", "request", "lease"}

func (x *exporter) advertisements(list []Advertisements, sources []SenderSource) {
	for _, a := range list {
		x.gauge(descAdverts, float64(a.Count), a.From, strconv.FormatBool(a.Active))
	}
	for _, from := range origins { // those that the list has are there already
		x.gauge(descAdverts, 0, from, "true")
		x.gauge(descAdverts, 0, from, "false")
	}
	for _, s := range sources {
		x.gauge(descSources, float64(s.Prefixes), s.Name)
	}
}

// peer exports a neighbour under the names of others.
func (x *exporter) peer(n *Neighbor, routerID string, now time.Time) {
	x.counter(descPeerRefused, n.Refused, n.Address)
	if n.Range != "" {
		x.gauge(descPeerRange, 1, n.Address, n.Range)
	}
	admin, state := "UP", 0.0
	switch {
	case n.Shutdown:
		admin, state = "DOWN", 2
	case n.State == "established":
		state = 1
	}
	x.gauge(goBGPASN, float64(n.PeerAS), n.Address, n.RouterID)
	x.gauge(goBGPLocal, float64(n.LocalAS), n.Address, routerID)
	x.gauge(goBGPState, 1, n.Address, strings.ToUpper(n.State), admin)
	x.gauge(goBGPType, flag(n.PeerAS != n.LocalAS), n.Address)
	x.gauge(goBGPKey, flag(n.MD5), n.Address)
	x.counter(goBGPSent, n.SentUpdates, n.Address)
	for _, family := range n.Families {
		labels := func() []string {
			afi, safi := frrFamily(family)
			return []string{"default", afi, safi, strconv.FormatUint(uint64(n.LocalAS), 10), n.Address, strconv.FormatUint(uint64(n.PeerAS), 10)}
		}
		x.gauge(frrState, state, labels()...)
		if state == 1 && !n.Since.IsZero() {
			x.gauge(frrUptime, max(now.Sub(n.Since).Seconds(), 0), labels()...)
		}
		if len(n.Families) > 1 {
			continue // what is counted is the session's
		}
		x.gauge(frrIn, float64(n.Received), labels()...)
		x.gauge(frrOut, float64(n.Advertised), labels()...)
		x.gauge(goBGPIn, float64(n.Received), n.Address, goBGPFamily(family))
		x.gauge(goBGPOut, float64(n.Advertised), n.Address, goBGPFamily(family))
	}
}

// frrFamily and goBGPFamily give a family in the words of FRR and of GoBGP.
func frrFamily(f string) (afi, safi string) {
	switch f {
	case "vpnv4-unicast":
		return "ipv4", "vpn"
	case "vpnv6-unicast":
		return "ipv6", "vpn"
	}
	afi, safi, _ = strings.Cut(f, "-")
	return afi, safi
}

func goBGPFamily(f string) string {
	switch f {
	case "vpnv4-unicast":
		return "l3vpn-ipv4-unicast"
	case "vpnv6-unicast":
		return "l3vpn-ipv6-unicast"
	}
	return f
}
