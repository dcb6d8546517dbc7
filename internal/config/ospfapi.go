package config

import "net/netip"

// OSPFAPI learns OSPFv2 from FRR's ospfd, through its API, in place of speaking it.
type OSPFAPI struct {
	Address       string   `yaml:"address"` // of the API server, with port
	AcceptProxies []Prefix `yaml:"accept_proxies"`

	OSPFCarrier `yaml:",inline"`
}

// AddrPort is the API server's address; invalid when the configuration is wrong.
func (a *OSPFAPI) AddrPort() netip.AddrPort {
	p, err := netip.ParseAddrPort(a.Address)
	if err != nil {
		return netip.AddrPort{}
	}
	return p
}

func (a *OSPFAPI) fillDefaults(given func(string) bool) {
	setDefault(given, "ospfapi.address", &a.Address, "127.0.0.1:2607")
	a.OSPFCarrier.fillDefaults(given, "ospfapi.")
}

func (c *checker) ospfAPI(cfg *Config) {
	a := cfg.OSPFAPI
	p := a.AddrPort()
	c.want(p.Addr().Is4() && isUnicast(p.Addr()) && p.Port() != 0, "ospfapi.address", "%q is not an IPv4 address with a port such as 127.0.0.1:2607", a.Address)
	c.want(cfg.OSPFv2 == nil, "ospfapi", "give either ospfapi or ospfv2: both would learn the same domain twice")
	c.ospfCarrier("ospfapi.", &a.OSPFCarrier, 2)
}
