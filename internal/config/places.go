package config

import (
	"fmt"
	"math"
	"strings"
)

// places checks where the contexts are on this host, and that no two share a place.
func (c *checker) places(cfg *Config) {
	type place struct{ key, value string }
	first := map[place]string{}
	for i := range cfg.Contexts {
		x, at := &cfg.Contexts[i], index("contexts", i)
		c.place(at, x)
		for _, p := range []place{{"device", x.Device}, {"namespace", x.Namespace}, {"table", nonzero(x.Table)}, {"mark", nonzero(x.Mark)}} {
			if p.value == "" {
				continue
			}
			c.want(first[p] == "", at+"."+p.key, "%s is that of %s: the two would be one VPN", p.value, first[p])
			first[p] = at
		}
		c.interfaces(at+".taps", x.Taps)
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

// links checks that each interface, whether it is tapped or watched, is of one context: what passes there belongs to
// that one.
func (c *checker) links(cfg *Config) {
	l := links{c: c, cfg: cfg, owner: map[link]owner{}}
	if cfg.Proxy != nil {
		l.all("proxy.taps", "", cfg.Proxy.Taps)
	}
	for i := range cfg.Contexts {
		l.all(index("contexts", i)+".taps", cfg.Contexts[i].Name, cfg.Contexts[i].Taps)
	}
	n := cfg.CongestionNode
	if n == nil {
		return
	}
	l.all("congestion_node.interfaces", "", n.Interfaces)
	for i := range n.Contexts {
		l.all(index("congestion_node.contexts", i)+".interfaces", n.Contexts[i].Name, n.Contexts[i].Interfaces)
	}
	for i := range n.Detect.VirtualQueues {
		const list = "congestion_node.detect.virtual_queues"
		q := &n.Detect.VirtualQueues[i]
		if d := cfg.linkOf(q.Context, q.Interface); !d.CE {
			l.own(index(list, i)+".interface", list, d.Context, d.Interface)
		}
	}
	for i, q := range cfg.QdiscLinks() {
		const list = "congestion_node.detect.qdiscs"
		l.own(index(list, i)+".interface", list, q.Context, q.Interface)
	}
	for i, d := range cfg.ReportedLinks() {
		const list = "congestion_node.detect.api.interfaces"
		l.own(index(list, i), list, d.Context, d.Interface)
	}
}

type links struct {
	c     *checker
	cfg   *Config
	owner map[link]owner
}

// link is an interface in a network namespace; empty: pncd's own.
type link struct{ namespace, name string }

type owner struct{ context, list string }

// all takes a list of interfaces for a context.
func (l *links) all(list, context string, names []string) {
	for i, name := range names {
		l.own(index(list, i), list, context, name)
	}
}

// own takes an interface for a context, in its network namespace when it has one.
func (l *links) own(key, list, context, name string) {
	k := link{l.cfg.Namespace(context), name}
	first, taken := l.owner[k]
	l.c.want(!taken || first.context == context, key, "%s is one of %s", name, first.list)
	if !taken {
		l.owner[k] = owner{context, list}
	}
}
