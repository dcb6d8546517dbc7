package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// OSPF configures an OSPF router, of OSPFv2 or of OSPFv3.
type OSPF struct {
	RouterID      Addr     `yaml:"router_id"`
	Advertise     bool     `yaml:"advertise"`
	AcceptProxies []Prefix `yaml:"accept_proxies"`

	OSPFCarrier `yaml:",inline"`

	LinkMetric            uint16     `yaml:"link_metric"` // OSPFv2
	MaxLSAs               int        `yaml:"max_lsas"`    // of each database
	Reoriginate           bool       `yaml:"reoriginate"`
	GracefulRestartHelper bool       `yaml:"graceful_restart_helper"`
	Timers                OSPFTimers `yaml:"timers"`
	Areas                 []OSPFArea `yaml:"areas"`
	Links                 []OSPFLink `yaml:"links"`

	version int
}

// OSPFCarrier says where the P flag is.
type OSPFCarrier struct {
	Carrier  string `yaml:"carrier"`
	Flag     uint8  `yaml:"flag"`
	FlagMask uint8  `yaml:"flag_mask"` // with CarrierTLVFlags; else 0
}

// Values of OSPFCarrier.Carrier.
const (
	CarrierExtFlags = "ext-flags"
	CarrierTLVFlags = "tlv-flags"
)

// OSPFTimers are those of the update process and of SPF.
type OSPFTimers struct {
	MinLSInterval Duration `yaml:"min_ls_interval"`
	MinLSArrival  Duration `yaml:"min_ls_arrival"`
	Refresh       Duration `yaml:"refresh"`
	AckDelay      Duration `yaml:"ack_delay"`
	SPF           Duration `yaml:"spf"` // the longest wait of the back-off
	SPFInitial    Duration `yaml:"spf_initial"`
	SPFSecond     Duration `yaml:"spf_second"`
}

// OSPFArea is an area; one that is not listed is normal.
type OSPFArea struct {
	ID   AreaID `yaml:"id"`
	Type string `yaml:"type"`
}

// OSPFLink is an interface towards routers.
type OSPFLink struct {
	Interface     string    `yaml:"interface"`
	Area          AreaID    `yaml:"area"`
	Type          string    `yaml:"type"`
	Hello         Duration  `yaml:"hello"`
	Dead          Duration  `yaml:"dead"`
	Retransmit    Duration  `yaml:"retransmit"`
	TransmitDelay Duration  `yaml:"transmit_delay"`
	MTUIgnore     bool      `yaml:"mtu_ignore"`
	Instance      uint8     `yaml:"instance"` // OSPFv3
	MaxNeighbors  int       `yaml:"max_neighbors"`
	Keys          []OSPFKey `yaml:"keys"`
	Veth          *Veth     `yaml:"veth"` // nil: the interface is somebody else's
}

// OSPFKey is an authentication key of a link.
type OSPFKey struct {
	Key `yaml:",inline"`

	BindSource     bool `yaml:"bind_source"`      // OSPFv2
	SwapProtocolID bool `yaml:"swap_protocol_id"` // OSPFv3
}

// AreaID is the number of an OSPF area, written as a dotted quad or as a number.
type AreaID uint32

// UnmarshalYAML implements yaml.Unmarshaler.
func (a *AreaID) UnmarshalYAML(n *yaml.Node) error {
	if v, err := netip.ParseAddr(n.Value); err == nil && v.Is4() {
		b := v.As4()
		*a = AreaID(b[0])<<24 | AreaID(b[1])<<16 | AreaID(b[2])<<8 | AreaID(b[3])
		return nil
	}
	v, err := strconv.ParseUint(n.Value, 10, 32)
	if err != nil || !number.MatchString(n.Value) {
		return lineError(n, "%q is not an area such as 0.0.0.1 or 1", n.Value)
	}
	*a = AreaID(v)
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (a AreaID) MarshalYAML() (any, error) { return a.String(), nil }

// String gives the area as a dotted quad.
func (a AreaID) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", byte(a>>24), byte(a>>16), byte(a>>8), byte(a))
}

// Version is 2 or 3.
func (o *OSPF) Version() int { return o.version }

// Section is the key of the router's section.
func (o *OSPF) Section() string { return fmt.Sprintf("ospfv%d", o.version) }

// OSPFs lists the OSPF routers that are configured.
func (c *Config) OSPFs() (out []*OSPF) {
	for _, o := range []*OSPF{c.OSPFv2, c.OSPFv3} {
		if o != nil {
			out = append(out, o)
		}
	}
	return out
}

// fillOSPF sets the versions and the defaults of the OSPF sections.
func (c *Config) fillOSPF(given func(string) bool) {
	for version, o := range map[int]*OSPF{2: c.OSPFv2, 3: c.OSPFv3} {
		if o != nil {
			o.version = version
			o.fillDefaults(given)
		}
	}
	if c.OSPFAPI != nil {
		c.OSPFAPI.fillDefaults(given)
	}
}

func (o *OSPF) fillDefaults(given func(string) bool) {
	in := o.Section() + "."
	setDefault(given, in+"advertise", &o.Advertise, true)
	o.OSPFCarrier.fillDefaults(given, in)
	if o.version == 2 {
		setDefault(given, in+"link_metric", &o.LinkMetric, maxOSPFMetric)
	}
	setDefault(given, in+"max_lsas", &o.MaxLSAs, defaultMaxLSAs)
	setDefault(given, in+"graceful_restart_helper", &o.GracefulRestartHelper, true)
	t := &o.Timers
	setDefault(given, in+"timers.min_ls_interval", &t.MinLSInterval, Duration{5 * time.Second})
	setDefault(given, in+"timers.min_ls_arrival", &t.MinLSArrival, Duration{time.Second})
	setDefault(given, in+"timers.refresh", &t.Refresh, Duration{30 * time.Minute})
	setDefault(given, in+"timers.ack_delay", &t.AckDelay, Duration{time.Second})
	waits(given, in+"timers.spf", &t.SPFInitial, &t.SPFSecond, &t.SPF)
	for i := range o.Areas {
		setDefault(given, index(in+"areas", i)+".type", &o.Areas[i].Type, areaNormal)
	}
	for i := range o.Links {
		o.Links[i].fillDefaults(given, index(in+"links", i))
	}
}

func (x *OSPFLink) fillDefaults(given func(string) bool, at string) {
	setDefault(given, at+".type", &x.Type, pointToPoint)
	setDefault(given, at+".hello", &x.Hello, Duration{10 * time.Second})
	setDefault(given, at+".dead", &x.Dead, Duration{40 * time.Second})
	setDefault(given, at+".retransmit", &x.Retransmit, Duration{5 * time.Second})
	setDefault(given, at+".transmit_delay", &x.TransmitDelay, Duration{time.Second})
	setDefault(given, at+".max_neighbors", &x.MaxNeighbors, 256)
	x.Veth.fillDefaults(given, at+".veth")
}

func (c *OSPFCarrier) fillDefaults(given func(string) bool, in string) {
	setDefault(given, in+"carrier", &c.Carrier, CarrierExtFlags)
	setDefault(given, in+"flag", &c.Flag, 2)
	if c.Carrier == CarrierTLVFlags {
		setDefault(given, in+"flag_mask", &c.FlagMask, 0x08)
	}
}
