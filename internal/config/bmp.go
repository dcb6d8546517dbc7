package config

import (
	"net/netip"
	"time"
)

// BMPStation is who is told over BMP (RFC 7854) what BGP neighbours send.
type BMPStation struct {
	Address    string   `yaml:"address"`    // with port
	Policy     string   `yaml:"policy"`     // BMPPrePolicy
	Statistics Duration `yaml:"statistics"` // 0: none
}

// BMPPrePolicy is the view before any policy (RFC 7854 section 2, Adj-RIBs-In). There is no other.
const BMPPrePolicy = "pre-policy"

// maxBMPStatistics is more than anybody wants, and what the engine takes.
const maxBMPStatistics = 18 * time.Hour

// AddrPort is the station's address; invalid when the configuration is wrong.
func (s *BMPStation) AddrPort() netip.AddrPort {
	a, err := netip.ParseAddrPort(s.Address)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

func (c *checker) bmpStations(b *BGP) {
	seen := map[netip.AddrPort]int{}
	for i := range b.BMPStations {
		s, at := &b.BMPStations[i], index("bgp.bmp_stations", i)
		a := s.AddrPort()
		usable := a.Port() != 0 && isUnicast(a.Addr())
		c.want(usable, at+".address", "%q is not a unicast address with a port, such as 192.0.2.1:11019 or [2001:db8::1]:11019", s.Address)
		c.want(s.Policy == BMPPrePolicy, at+".policy", "%q: only %s can be had: the engine's table takes nothing that neighbours sent, so the other views would be empty", s.Policy, BMPPrePolicy)
		c.span(at+".statistics", s.Statistics, 0, maxBMPStatistics)
		c.want(s.Statistics.Duration%time.Second == 0, at+".statistics", "%s is not a whole number of seconds", s.Statistics)
		first, twice := seen[a]
		c.want(!twice || !usable, at+".address", "%s is bmp_stations[%d] already", a, first)
		seen[a] = i
	}
}
