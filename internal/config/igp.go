package config

import "time"

// Veth is the veth pair that pncd makes, one end of which is an interface towards routers.
type Veth struct {
	Peer          string          `yaml:"peer"`      // name of the other end
	Namespace     string          `yaml:"namespace"` // of the other end: name, path or the ID of a process; empty: pncd's
	Bridge        string          `yaml:"bridge"`    // there, which the other end is a port of; empty: none
	Addresses     []InterfaceAddr `yaml:"addresses"`
	PeerAddresses []InterfaceAddr `yaml:"peer_addresses"`
	MTU           int             `yaml:"mtu"` // octets
}

// Key is an authentication key of an IGP; of a list the first one is sent, and all are accepted.
type Key struct {
	ID           uint16 `yaml:"id"`
	Algorithm    string `yaml:"algorithm"`
	Password     string `yaml:"password"`
	PasswordFile string `yaml:"password_file"`
}

// Types of interfaces towards routers.
const (
	pointToPoint = "point-to-point"
	broadcast    = "broadcast"
)

func (v *Veth) fillDefaults(given func(string) bool, at string) {
	if v != nil {
		setDefault(given, at+".mtu", &v.MTU, 1500)
	}
}

// waits sets the defaults of a back-off. Whoever lowers the longest wait alone means the shorter ones, too.
func waits(given func(string) bool, key string, initial, second, longest *Duration) {
	setDefault(given, key, longest, Duration{5 * time.Second})
	setDefault(given, key+"_initial", initial, Duration{min(50*time.Millisecond, longest.Duration)})
	setDefault(given, key+"_second", second, Duration{min(200*time.Millisecond, longest.Duration)})
}

// waits checks a back-off.
func (c *checker) waits(key string, initial, second, longest Duration) {
	c.span(key, longest, 10*time.Millisecond, 120*time.Second)
	c.span(key+"_initial", initial, 0, longest.Duration)
	c.span(key+"_second", second, 0, longest.Duration)
}

// key checks the name of the algorithm and that there is one secret.
func (c *checker) key(at string, k Key, algorithms []string) {
	c.oneOf(at+".algorithm", k.Algorithm, algorithms...)
	c.want((k.Password == "") != (k.PasswordFile == ""), at+".password", "give either password or password_file")
}

// veths checks the pairs that the IGPs ask for: an interface is made once, whoever speaks on it.
func (c *checker) veths(cfg *Config) {
	seen := map[string]string{}
	one := func(at, name string, v *Veth) {
		if v == nil {
			return
		}
		first, twice := seen[name]
		c.want(!twice, at, "%s is made by %s already: give it once, all that speak on the interface use it", name, first)
		seen[name] = at
		c.veth(at, name, v)
	}
	if s := cfg.ISIS; s != nil {
		for i := range s.Circuits {
			one(index("isis.circuits", i)+".veth", s.Circuits[i].Interface, s.Circuits[i].Veth)
		}
	}
	for _, o := range cfg.OSPFs() {
		for i := range o.Links {
			one(index(o.Section()+".links", i)+".veth", o.Links[i].Interface, o.Links[i].Veth)
		}
	}
}

func (c *checker) veth(at, name string, v *Veth) {
	c.interfaceName(at+".peer", v.Peer)
	c.want(v.Peer != name || v.Namespace != "", at+".peer", "%q is the interface itself", v.Peer)
	if v.Bridge != "" {
		c.interfaceName(at+".bridge", v.Bridge)
		c.want(len(v.PeerAddresses) == 0, at+".peer_addresses", "the port of a bridge has none")
	}
	c.within(at+".mtu", v.MTU, 576, 65535)
	for i, p := range v.Addresses {
		c.want(isUnicast(p.Addr()), index(at+".addresses", i), "%s is not a unicast address", p)
	}
	for i, p := range v.PeerAddresses {
		c.want(isUnicast(p.Addr()), index(at+".peer_addresses", i), "%s is not a unicast address", p)
	}
}
