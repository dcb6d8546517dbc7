package config

import (
	"math"
	"net/netip"
)

// NRP is what a proxy knows of network resource partitions, which notifications of format 2 name.
type NRP struct {
	Entries int          `yaml:"entries"`
	Map     []NRPMapping `yaml:"map"`
}

// NRPMapping says what an NRP Selector ID stands for: a context, or for one flow a Source QP.
type NRPMapping struct {
	ID       int    `yaml:"id"` // 32 bits
	Context  string `yaml:"context"`
	Sender   Addr   `yaml:"sender"`
	Receiver Addr   `yaml:"receiver"`
	SourceQP int    `yaml:"source_qp"`
}

// DefaultNRPEntries bounds the NRP map.
const DefaultNRPEntries = 16384

func (c *checker) nrp(n *NRP, contexts map[string]*Context) {
	const at = "proxy.nrp."
	c.within(at+"entries", n.Entries, 1, 1<<18)
	c.want(len(n.Map) <= n.Entries, at+"entries", "%d is less than the %d of map", n.Entries, len(n.Map))
	type place struct {
		id               int
		sender, receiver netip.Addr
	}
	seen := map[place]int{}
	for i, m := range n.Map {
		at := index(at+"map", i)
		c.want(find(c.root, at+".id") != nil, at+".id", "required: the NRP Selector ID")
		c.within(at+".id", m.ID, 0, math.MaxUint32)
		c.want(m.Context == "" || contexts[m.Context] != nil, at+".context", "%q is none of contexts", m.Context)
		c.nrpFlow(at, &m)
		k := place{m.ID, m.Sender.Addr, m.Receiver.Addr}
		first, twice := seen[k]
		c.want(!twice, at, "the same id, sender and receiver as map[%d]", first)
		seen[k] = i
	}
}

// nrpFlow checks that a mapping names either a context or a flow with its Source QP.
func (c *checker) nrpFlow(at string, m *NRPMapping) {
	if !m.Sender.IsValid() && !m.Receiver.IsValid() && m.SourceQP == 0 {
		c.want(m.Context != "", at+".context", "required, unless sender, receiver and source_qp are given")
		return
	}
	c.want(m.Sender.IsValid(), at+".sender", "required with receiver or source_qp")
	c.want(m.Receiver.IsValid(), at+".receiver", "required with sender or source_qp")
	c.unicast(at+".sender", m.Sender)
	c.unicast(at+".receiver", m.Receiver)
	c.want(!m.Sender.IsValid() || !m.Receiver.IsValid() || m.Sender.Is4() == m.Receiver.Is4(), at+".receiver", "%s is not of the sender's address family", m.Receiver)
	c.within(at+".source_qp", m.SourceQP, 2, 1<<24-1)
}

// nodeContexts checks the contexts whose flows a congestion node notifies.
func (c *checker) nodeContexts(n *CongestionNode, contexts map[string]*Context) {
	names, nrps := map[string]int{}, map[int]int{}
	for i, x := range n.Contexts {
		at := index("congestion_node.contexts", i)
		c.want(contexts[x.Name] != nil, at+".name", "%q is none of contexts", x.Name)
		first, twice := names[x.Name]
		c.want(!twice, at+".name", "%q is congestion_node.contexts[%d] already", x.Name, first)
		c.want(find(c.root, at+".nrp") != nil, at+".nrp", "required: the NRP Selector ID that the proxy has for this context")
		c.within(at+".nrp", x.NRP, 0, math.MaxUint32)
		first, twice = nrps[x.NRP]
		c.want(!twice, at+".nrp", "%d is that of congestion_node.contexts[%d]: a proxy could not tell the two apart", x.NRP, first)
		names[x.Name], nrps[x.NRP] = i, i
		c.interfaces(at+".interfaces", x.Interfaces)
	}
}
