package boundary

import (
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// TableName is the name of our tables: one of the inet family, and one of the netdev family for the borders.
const TableName = "pncd"

// tableName names our table of a family as nft does: inet pncd.
func tableName(f nftables.TableFamily) string { return familyName(f) + " " + TableName }

// Counters' names in the tables, and in Counts.
const (
	CounterBorderIn              = "border_in"          // notifications that came in by a border interface
	CounterBorderOut             = "border_out"         // notifications that would have left by one
	CounterCNPOut                = "cnp_out"            // CNPs that would have left by one
	CounterNotOurDomain          = "not_our_domain"     // from another address, or by another interface, than is accepted
	CounterNotOurAddress         = "not_our_address"    // to an address of ours that isn't the proxy's
	CounterTTLTooLow             = "ttl_too_low"        // whose TTL or hop limit is too low
	CounterPerSourceLimit        = "per_source_limited" // above the rate of one source
	CounterTotalLimit            = "total_limited"      // above the rate of all
	CounterAccepted              = "accepted"           // given to the socket
	ownerChain                   = "owner"
	ownerMark                    = "made by pncd, which puts it back when it is changed"
	notificationsChain           = "notifications"
	admitChain                   = "admit"
	portsSet                     = "notification_ports"
	roceUDPPort           uint16 = 4791
	cnpOpcode                    = 0x81 // BTH opcode of a CNP (InfiniBand annex A17)
)

// priority is that of raw tables: before connection tracking, which such packets must not fill.
const priority = -300

// Ruleset is what is, or is to be, in the kernel. Its tables are in the order in which they are printed.
type Ruleset []Table

// Table is one table of ours.
type Table struct {
	Family   nftables.TableFamily
	Name     string
	Counters []Counter
	Sets     []Set
	Chains   []Chain
}

// Counter is a named counter.
type Counter struct {
	Name           string
	Packets, Bytes uint64
}

// Set is a named set.
type Set struct {
	nftables.Set
	Elements []nftables.SetElement // of a dynamic one: those that the kernel has added
}

// Chain is a base chain when Hook is set.
type Chain struct {
	Name     string
	Hook     *nftables.ChainHook
	Priority nftables.ChainPriority
	Devices  []string // netdev family only
	Rules    []Rule
}

// Rule is one rule.
type Rule struct {
	Exprs   []expr.Any
	Comment string
}

// Support is what the kernel offers, as Probe finds it.
type Support struct {
	Ingress bool // hooks of the netdev family on what arrives
	Egress  bool // and on what leaves
	Limit   bool // rates
	Meter   bool // rates by source: dynamic sets
}

// Build makes the ruleset of a policy, for a kernel and the border interfaces that exist. It fails when the
// policy isn't valid or asks for a family that the kernel doesn't have.
func Build(p *Policy, has Support, exists func(iface string) bool) (Ruleset, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	family, err := p.borderFamily(has)
	if err != nil {
		return nil, err
	}
	b := builder{policy: p, has: has}
	var out Ruleset
	inet := b.inside()
	if family == FamilyNetdev {
		t := newTable(nftables.TableFamilyNetdev)
		for _, name := range p.Borders {
			if exists(name) {
				b.netdev(&t, name)
			}
		}
		t.count(CounterBorderIn, CounterBorderOut, CounterCNPOut)
		out = append(out, t.withPorts(p.Ports))
	} else {
		b.byName(&inet)
	}
	return append(out, inet), nil
}

// borderFamily chooses the hooks for the borders.
func (p *Policy) borderFamily(has Support) (Family, error) {
	if len(p.Borders) == 0 {
		return FamilyInet, nil // and no rule needs it
	}
	both := has.Ingress && has.Egress
	switch {
	case p.Family == FamilyInet, p.Family != FamilyNetdev && !both:
		return FamilyInet, nil
	case !both:
		return "", errNoNetdev(has)
	}
	return FamilyNetdev, nil
}

// newTable makes one with our mark: a chain that no packet passes.
func newTable(family nftables.TableFamily) Table {
	return Table{Family: family, Name: TableName, Chains: []Chain{{
		Name: ownerChain, Rules: []Rule{{Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}}, Comment: ownerMark}},
	}}}
}

func (t *Table) count(names ...string) {
	for _, n := range names {
		t.Counters = append(t.Counters, Counter{Name: n})
	}
}

// builder makes the chains of one policy.
type builder struct {
	policy *Policy
	has    Support
}

// netdev adds the chains of one border interface.
func (b *builder) netdev(t *Table, name string) {
	t.Chains = append(t.Chains, Chain{
		Name: "in_" + name, Hook: nftables.ChainHookIngress, Priority: priority, Devices: []string{name},
		Rules: []Rule{drop(CounterBorderIn, notification()...)},
	})
	out := Chain{
		Name: "out_" + name, Hook: nftables.ChainHookEgress, Priority: priority, Devices: []string{name},
		Rules: []Rule{drop(CounterBorderOut, notification()...)},
	}
	if b.policy.RefuseCNPs {
		out.Rules = append(out.Rules, drop(CounterCNPOut, cnp()...))
	}
	t.Chains = append(t.Chains, out)
}

// byName adds the borders' rules to the hooks that every packet passes.
func (b *builder) byName(t *Table) {
	if len(b.policy.Borders) == 0 {
		return
	}
	in := Chain{Name: "border_in", Hook: nftables.ChainHookPrerouting, Priority: priority}
	out := Chain{Name: "border_out", Hook: nftables.ChainHookPostrouting, Priority: priority}
	for _, name := range b.policy.Borders {
		in.Rules = append(in.Rules, drop(CounterBorderIn, append(iface(expr.MetaKeyIIFNAME, expr.CmpOpEq, name), notification()...)...))
		out.Rules = append(out.Rules, drop(CounterBorderOut, append(iface(expr.MetaKeyOIFNAME, expr.CmpOpEq, name), notification()...)...))
		if b.policy.RefuseCNPs {
			out.Rules = append(out.Rules, drop(CounterCNPOut, append(iface(expr.MetaKeyOIFNAME, expr.CmpOpEq, name), cnp()...)...))
		}
	}
	t.count(CounterBorderOut, CounterCNPOut)
	t.Chains = append(t.Chains, in, out)
}

// inside makes the inet table: what stands in front of the socket. A notification that came by a border in
// fragments is whole only here, so the borders are checked again.
func (b *builder) inside() Table {
	p := b.policy
	t := newTable(nftables.TableFamilyINet).withPorts(p.Ports)
	domain4, domain6 := prefixSets("domain4", "domain6", p.AcceptFrom)
	own4, own6 := addressSets("own4", "own6", p.Own)
	t.Sets = append(t.Sets, domain4, domain6, own4, own6)
	t.count(CounterBorderIn, CounterNotOurDomain, CounterNotOurAddress)

	check := Chain{Name: notificationsChain}
	for _, name := range p.Borders {
		check.Rules = append(check.Rules, drop(CounterBorderIn, iface(expr.MetaKeyIIFNAME, expr.CmpOpEq, name)...))
	}
	check.Rules = append(check.Rules,
		drop(CounterNotOurDomain, notIn(source4, "domain4")...),
		drop(CounterNotOurDomain, notIn(source6, "domain6")...),
		drop(CounterNotOurAddress, notIn(destination4, "own4")...),
		drop(CounterNotOurAddress, notIn(destination6, "own6")...))
	if p.TTLMin > 0 {
		t.count(CounterTTLTooLow)
		check.Rules = append(check.Rules, drop(CounterTTLTooLow, below(ttl, p.TTLMin)...), drop(CounterTTLTooLow, below(hopLimit, p.TTLMin)...))
	}
	admit := b.admit(&t)
	if len(p.AcceptInterfaces) == 0 {
		check.Rules = append(check.Rules, admit...)
		t.Chains = append(t.Chains, check)
	} else {
		for _, name := range p.AcceptInterfaces {
			exprs := append(iface(expr.MetaKeyIIFNAME, expr.CmpOpEq, name), &expr.Verdict{Kind: expr.VerdictGoto, Chain: admitChain})
			check.Rules = append(check.Rules, Rule{Exprs: exprs})
		}
		check.Rules = append(check.Rules, drop(CounterNotOurDomain))
		t.Chains = append(t.Chains, Chain{Name: admitChain, Rules: admit}, check)
	}
	t.Chains = append(t.Chains, Chain{
		Name: "input", Hook: nftables.ChainHookInput, Priority: priority,
		Rules: []Rule{{Exprs: append(notification(), &expr.Verdict{Kind: expr.VerdictGoto, Chain: notificationsChain})}},
	})
	return t
}

// admit makes the rules for what comes from the domain, and adds the counters and sets that they need.
func (b *builder) admit(t *Table) (rules []Rule) {
	p := b.policy
	if p.PerSource != (Limit{}) && b.has.Meter {
		t.Sets = append(t.Sets, b.sources("sources4", nftables.TypeIPAddr), b.sources("sources6", nftables.TypeIP6Addr))
		t.count(CounterPerSourceLimit)
		rules = append(rules,
			drop(CounterPerSourceLimit, b.meter(source4, "sources4")...),
			drop(CounterPerSourceLimit, b.meter(source6, "sources6")...))
	}
	if p.Total != (Limit{}) && b.has.Limit {
		t.count(CounterTotalLimit)
		rules = append(rules, drop(CounterTotalLimit, over(p.Total)))
	}
	t.count(CounterAccepted)
	return append(rules, Rule{Exprs: []expr.Any{counter(CounterAccepted), &expr.Verdict{Kind: expr.VerdictAccept}}})
}
