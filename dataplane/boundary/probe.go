package boundary

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// ErrPermission: the process lacks CAP_NET_ADMIN.
var ErrPermission = errors.New("the packet filter needs CAP_NET_ADMIN")

// ErrUnsupported: the kernel lacks what nothing else can replace.
var ErrUnsupported = errors.New("the kernel can't filter")

// ErrForeign: a table has our name and not our mark.
var ErrForeign = errors.New("not made by pncd")

// explain names what is behind an error number of nfnetlink.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("boundary: %w", ErrPermission)
	case errors.Is(err, unix.EPROTONOSUPPORT):
		return fmt.Errorf("boundary: %w: no nf_tables: CONFIG_NETFILTER, CONFIG_NF_TABLES and CONFIG_NF_TABLES_INET are needed (modprobe nf_tables)", ErrUnsupported)
	}
	return fmt.Errorf("boundary: nf_tables: %w", err)
}

// errNoNetdev says what is missing for the netdev family.
func errNoNetdev(has Support) error {
	option := "CONFIG_NETFILTER_EGRESS (Linux 5.16)"
	if !has.Ingress {
		option = "CONFIG_NETFILTER_INGRESS with CONFIG_NF_TABLES_NETDEV"
	}
	return fmt.Errorf("boundary: %w at the netdev hooks: %s is needed; family inet does without", ErrUnsupported, option)
}

// probe asks the kernel by a transaction for each feature that makes a table and removes it again: it passes
// as a whole or not at all, and no packet sees it.
func (k kernel) probe() (Support, error) {
	inet := Table{Family: nftables.TableFamilyINet, Chains: []Chain{{Name: "c", Hook: nftables.ChainHookInput}},
		Sets: []Set{{Set: nftables.Set{Name: portsSet, KeyType: nftables.TypeInetService}}}}
	inet.count("n")
	inet.Chains[0].Rules = []Rule{drop("n", notification()...)}
	if err := k.try(inet); err != nil {
		if errors.Is(err, ErrPermission) {
			return Support{}, err
		}
		return Support{}, fmt.Errorf("boundary: %w: CONFIG_NF_TABLES and CONFIG_NF_TABLES_INET are needed: %w", ErrUnsupported, err)
	}
	netdev := func(hook *nftables.ChainHook) bool {
		return k.try(Table{Family: nftables.TableFamilyNetdev, Chains: []Chain{{Name: "c", Hook: hook, Devices: []string{"lo"}}}}) == nil
	}
	limit := over(Limit{Rate: 1, Burst: MinBurst})
	limited := Table{Family: nftables.TableFamilyINet, Chains: []Chain{{Name: "c", Rules: []Rule{{Exprs: []expr.Any{limit}}}}}}
	b := builder{policy: &Policy{PerSource: Limit{Rate: 1, Burst: MinBurst}, Sources: 1, SourceAge: 1e9}}
	metered := Table{Family: nftables.TableFamilyINet, Sets: []Set{b.sources("s", nftables.TypeIPAddr)},
		Chains: []Chain{{Name: "c", Rules: []Rule{{Exprs: b.meter(source4, "s")}}}}}
	return Support{
		Ingress: netdev(nftables.ChainHookIngress), Egress: netdev(nftables.ChainHookEgress),
		Limit: k.try(limited) == nil, Meter: k.try(metered) == nil,
	}, nil
}

// try makes a table and removes it in the same transaction.
func (k kernel) try(t Table) error {
	c, err := k.conn()
	if err != nil {
		return err
	}
	t.Name = fmt.Sprintf("%s-probe-%d", TableName, os.Getpid())
	if err := t.add(c, nil); err != nil {
		return err
	}
	c.DelTable(t.ref())
	return explain(c.Flush())
}

// lacks says in words what of a policy the kernel can't do, so that something less is in force.
func (p *Policy) lacks(has Support) (out []string) {
	family, err := p.borderFamily(has)
	if err == nil && family == FamilyInet && p.Family != FamilyInet && len(p.Borders) > 0 {
		out = append(out, "the borders are watched by the inet family, because the kernel has not both netdev hooks (CONFIG_NETFILTER_INGRESS, CONFIG_NETFILTER_EGRESS)")
	}
	if p.Total != (Limit{}) && !has.Limit {
		out = append(out, "no limit in total: CONFIG_NFT_LIMIT is needed")
	}
	if p.PerSource != (Limit{}) && !has.Meter {
		out = append(out, "no limit per source: the kernel has no dynamic sets with CONFIG_NFT_LIMIT")
	}
	return out
}

// missing lists the border interfaces that aren't there.
func (p *Policy) missing(exists func(string) bool) (out []string) {
	for _, name := range slices.Concat(p.Borders, p.AcceptInterfaces) {
		if !exists(name) {
			out = append(out, name)
		}
	}
	return out
}
