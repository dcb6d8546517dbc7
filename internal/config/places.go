package config

import (
	"fmt"
	"math"
	"strings"
)

// places checks where the contexts are on this host, and that no two share a place or an interface: what comes in there
// belongs to one of them.
func (c *checker) places(cfg *Config) {
	links := links{c, map[link]string{}}
	if cfg.Proxy != nil {
		links.own("proxy.taps", cfg.Proxy.Taps, nil)
	}
	first := map[string]string{}
	for i := range cfg.Contexts {
		x, at := &cfg.Contexts[i], index("contexts", i)
		c.place(at, x)
		for key, v := range map[string]string{"device": x.Device, "namespace": x.Namespace, "table": nonzero(x.Table), "mark": nonzero(x.Mark)} {
			if v == "" {
				continue
			}
			c.want(first[key+v] == "", at+"."+key, "%s is that of %s: the two would be one VPN", v, first[key+v])
			first[key+v] = at
		}
		c.interfaces(at+".taps", x.Taps)
		links.own(at+".taps", x.Taps, x)
	}
}

func nonzero(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// place checks one context's place.
func (c *checker) place(at string, x *Context) {
	ways := 0
	for _, given := range []bool{x.Device != "", x.Namespace != "", x.Table != 0 || x.Mark != 0} {
		if given {
			ways++
		}
	}
	c.want(ways <= 1, at, "give one of device, namespace, and table with mark")
	if x.Device != "" {
		c.interfaceName(at+".device", x.Device)
	}
	c.want(!strings.ContainsAny(x.Namespace, " \t\r\n"), at+".namespace", "%q has spaces; give a name as 'ip netns' has it, or a path", x.Namespace)
	c.want((x.Table != 0) == (x.Mark != 0), at+".mark", "table and mark go together: the mark leads to the table")
	c.within(at+".table", x.Table, 0, math.MaxUint32)
	c.want(x.Table < 253 || x.Table > 255, at+".table", "%d is one of this host's own tables (default, main, local)", x.Table)
	c.within(at+".mark", x.Mark, 0, math.MaxUint32)
	c.want(len(x.Taps) == 0 || x.HasPlace(), at+".taps", "only with device, namespace, or table and mark: CNPs could not leave")
}

// links holds what interfaces a list of the configuration and its contexts name: a packet belongs to one context.
type links struct {
	c     *checker
	owner map[link]string // the key that named it first
}

type link struct{ namespace, name string }

// own takes interfaces for a context, in its network namespace when it has one.
func (l *links) own(key string, names []string, x *Context) {
	namespace := ""
	if x != nil {
		namespace = x.Namespace
	}
	for i, name := range names {
		k := link{namespace, name}
		first, taken := l.owner[k]
		l.c.want(!taken || first == key, index(key, i), "%s is one of %s", name, first)
		l.owner[k] = key
	}
}
