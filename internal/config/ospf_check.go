package config

import (
	"net/netip"
	"slices"
	"time"
)

// areaNormal is the type of areas that are not listed.
const areaNormal = "normal"

// Values of the keys that take names.
var (
	ospfTypes        = []string{pointToPoint, broadcast}
	ospfAreas        = []string{areaNormal, "stub", "nssa"}
	ospfv2Algorithms = []string{"simple", "md5", "hmac-sha-1", "hmac-sha-256", "hmac-sha-384", "hmac-sha-512"}
	ospfv3Algorithms = ospfv2Algorithms[2:]
)

// Bounds of OSPF.
const (
	maxOSPFMetric = 0xFFFF    // MaxLinkMetric (RFC 6987)
	maxLSAge      = time.Hour // MaxAge (RFC 2328 appendix B)
	maxLSAs       = 1 << 24

	defaultMaxLSAs = 1 << 17
)

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// freeMasks are the flags of the Extended Prefix TLV that nobody has (IANA: OSPFv2 Extended Prefix TLV Flags).
var freeMasks = []uint8{0x08, 0x04, 0x02, 0x01}

func (c *checker) ospf(o *OSPF) {
	in := o.Section() + "."
	c.want(o.RouterID.Is4() && !o.RouterID.IsUnspecified(), in+"router_id", "required: a dotted quad such as 192.0.2.1, not 0.0.0.0; the router's own, not that of the router beside it")
	c.ospfCarrier(in, &o.OSPFCarrier, o.version)
	if o.version == 2 {
		c.within(in+"link_metric", int(o.LinkMetric), 1, maxOSPFMetric)
	} else {
		c.want(o.LinkMetric == 0, in+"link_metric", "only OSPFv2 needs it: in OSPFv3 the R bit is clear, so that no path goes through (RFC 5340 section A.2)")
	}
	c.within(in+"max_lsas", o.MaxLSAs, 256, maxLSAs)
	t := &o.Timers
	c.span(in+"timers.min_ls_interval", t.MinLSInterval, 100*time.Millisecond, 120*time.Second)
	c.span(in+"timers.min_ls_arrival", t.MinLSArrival, 10*time.Millisecond, 60*time.Second)
	c.span(in+"timers.refresh", t.Refresh, 10*time.Second, maxLSAge-time.Second)
	c.want(t.MinLSInterval.Duration < t.Refresh.Duration, in+"timers.min_ls_interval", "must be less than refresh")
	c.span(in+"timers.ack_delay", t.AckDelay, 10*time.Millisecond, 60*time.Second)
	c.waits(in+"timers.spf", t.SPFInitial, t.SPFSecond, t.SPF)
	c.ospfAreas(in+"areas", o.Areas)
	c.advise(len(o.Links) > 0, in+"links", "none: this router speaks with nobody")
	for i, a := range o.Areas {
		used := slices.ContainsFunc(o.Links, func(x OSPFLink) bool { return x.Area == a.ID })
		c.advise(used || len(o.Links) == 0, index(in+"areas", i)+".id", "no link is in area %s: nothing is learned or marked there", a.ID)
	}
	seen := map[string]int{}
	for i := range o.Links {
		x, at := &o.Links[i], index(in+"links", i)
		c.interfaceName(at+".interface", x.Interface)
		first, twice := seen[x.Interface]
		c.want(!twice, at+".interface", "%s is links[%d] already", x.Interface, first)
		seen[x.Interface] = i
		c.ospfLink(at, x, o)
	}
}

func (c *checker) ospfAreas(list string, areas []OSPFArea) {
	seen := map[AreaID]int{}
	for i, a := range areas {
		at := index(list, i)
		c.oneOf(at+".type", a.Type, ospfAreas...)
		c.want(a.ID != 0 || a.Type == areaNormal, at+".type", "the backbone is neither a stub area nor an NSSA (RFC 2328 section 3.6)")
		first, twice := seen[a.ID]
		c.want(!twice, at+".id", "%s is areas[%d] already", a.ID, first)
		seen[a.ID] = i
	}
}

func (c *checker) ospfLink(at string, x *OSPFLink, o *OSPF) {
	c.oneOf(at+".type", x.Type, ospfTypes...)
	c.seconds(at+".hello", x.Hello, time.Second, 65535*time.Second)
	c.seconds(at+".dead", x.Dead, 2*time.Second, 65535*time.Second)
	c.want(x.Dead.Duration > x.Hello.Duration, at+".dead", "must be more than hello")
	c.span(at+".retransmit", x.Retransmit, 100*time.Millisecond, 120*time.Second)
	c.want(o.Timers.AckDelay.Duration < x.Retransmit.Duration, at+".retransmit", "must be more than timers.ack_delay (RFC 2328 section 13.5)")
	c.seconds(at+".transmit_delay", x.TransmitDelay, time.Second, maxLSAge-time.Second)
	c.want(x.Instance == 0 || o.version == 3, at+".instance", "only OSPFv3 has instance IDs")
	c.within(at+".max_neighbors", x.MaxNeighbors, 1, 10000)
	ids := map[uint16]int{}
	for i := range x.Keys {
		k, key := &x.Keys[i], index(at+".keys", i)
		c.ospfKey(key, k, o.version)
		first, twice := ids[k.ID]
		c.want(!twice || k.Algorithm == "simple", key+".id", "%d is keys[%d] already: a receiver finds the key by its ID", k.ID, first)
		ids[k.ID] = i
	}
}

// seconds records a problem unless v is a whole number of seconds from min to max.
func (c *checker) seconds(key string, v Duration, min, max time.Duration) {
	c.span(key, v, min, max)
	c.want(v.Duration%time.Second == 0, key, "%s is not a whole number of seconds", v)
}

// ospfKey checks a key but for a secret that is in a file.
func (c *checker) ospfKey(at string, k *OSPFKey, version int) {
	algorithms := ospfv2Algorithms
	if version == 3 {
		algorithms = ospfv3Algorithms
	}
	c.key(at, k.Key, algorithms)
	hmac := slices.Contains(ospfv3Algorithms, k.Algorithm)
	switch {
	case k.Algorithm == "simple":
		c.want(k.ID == 0, at+".id", "simple has no key ID (RFC 2328 section D.2)")
		c.want(len(k.Password) <= 8, at+".password", "a simple password has at most 8 octets (RFC 2328 section D.2)")
	case version == 2:
		c.want(k.ID <= 255, at+".id", "%d is more than 255 (RFC 2328 section D.3)", k.ID)
		c.want(k.Algorithm != "md5" || len(k.Password) <= 16, at+".password", "a secret for md5 has at most 16 octets (RFC 2328 section D.3)")
	}
	c.want(!k.BindSource || version == 2 && hmac, at+".bind_source", "only for hmac-sha of OSPFv2 (RFC 7474 section 5); OSPFv3 always does it")
	c.want(!k.SwapProtocolID || version == 3, at+".swap_protocol_id", "only OSPFv3 has a protocol ID (RFC 7166 section 4.5)")
}

// ospfCarrier checks where the P flag is.
func (c *checker) ospfCarrier(in string, k *OSPFCarrier, version int) {
	c.oneOf(in+"carrier", k.Carrier, CarrierExtFlags, CarrierTLVFlags)
	c.want(version == 2 || k.Carrier != CarrierTLVFlags, in+"carrier", "%s: the flags octet of the TLV is OSPFv2's; all bits of OSPFv3's prefix options are assigned (RFC 9792)", CarrierTLVFlags)
	c.want(k.Flag > 1, in+"flag", "bits 0 and 1 are assigned to U and UP, which announce a prefix as unreachable")
	if k.Carrier == CarrierTLVFlags {
		c.want(slices.Contains(freeMasks, k.FlagMask), in+"flag_mask", "%#02x is none of 0x08, 0x04, 0x02, 0x01: the other flags of the TLV are assigned (RFC 7684, RFC 9792)", k.FlagMask)
	} else {
		c.want(k.FlagMask == 0, in+"flag_mask", "only with carrier %s", CarrierTLVFlags)
	}
}
