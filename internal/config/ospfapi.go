package config

// OSPFAPI learns OSPFv2 from FRR's ospfd, through its API, in place of speaking it.
type OSPFAPI struct {
	Address       Addr     `yaml:"address"` // where ospfd is
	Port          uint16   `yaml:"port"`
	LocalAddress  Addr     `yaml:"local_address"` // that ospfd connects back to; with Address on loopback none
	AcceptProxies []Prefix `yaml:"accept_proxies"`
	MaxLSAs       int      `yaml:"max_lsas"` // of each area

	OSPFCarrier `yaml:",inline"`
}

func (a *OSPFAPI) fillDefaults(given func(string) bool) {
	setDefault(given, "ospfapi.address", &a.Address, Addr{loopback})
	setDefault(given, "ospfapi.port", &a.Port, 2607)
	setDefault(given, "ospfapi.max_lsas", &a.MaxLSAs, defaultMaxLSAs)
	a.OSPFCarrier.fillDefaults(given, "ospfapi.")
}

func (c *checker) ospfAPI(cfg *Config) {
	a := cfg.OSPFAPI
	c.want(a.Address.Is4() && isUnicast(a.Address.Addr), "ospfapi.address", "an IPv4 address is required: ospfd's API listens on no other")
	c.want(a.Port != 0, "ospfapi.port", "0 is not a port")
	switch local := a.LocalAddress; {
	case a.Address.IsLoopback():
		c.want(!local.IsValid(), "ospfapi.local_address", "not with an ospfd on this host")
	default:
		c.want(local.Is4() && isUnicast(local.Addr) && !local.IsLoopback(), "ospfapi.local_address", "required with an ospfd on another host: an IPv4 address of ours, which it connects back to")
	}
	c.within("ospfapi.max_lsas", a.MaxLSAs, 256, maxLSAs)
	c.want(cfg.OSPFv2 == nil, "ospfapi", "give either ospfapi or ospfv2: both would learn the same domain")
	c.ospfCarrier("ospfapi.", &a.OSPFCarrier, 2)
}
