package boundary

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	mdnetlink "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// families are those in which we have a table.
var families = []nftables.TableFamily{nftables.TableFamilyNetdev, nftables.TableFamilyINet}

// errChanged: the ruleset changed while it was read.
var errChanged = errors.New("the kernel's ruleset changes faster than it can be read")

// readAttempts bounds how often a dump that a change has torn is read again.
const readAttempts = 10

// kernel talks with nftables of one network namespace.
type kernel struct{ netns int }

func (k kernel) conn() (*nftables.Conn, error) {
	if k.netns == 0 {
		return nftables.New()
	}
	return nftables.New(nftables.WithNetNSFd(k.netns))
}

// read returns our tables. A dump is torn when the kernel's generation isn't the same before and after.
func (k kernel) read() (Ruleset, error) {
	c, err := k.conn()
	if err != nil {
		return nil, err
	}
	var last error
	for range readAttempts {
		before, err := k.generation()
		if err != nil {
			return nil, explain(err)
		}
		r, err := k.dump(c)
		now, genErr := k.generation()
		if genErr != nil {
			return nil, explain(genErr)
		}
		if before == now {
			return r, explain(err)
		}
		last = errChanged
	}
	return nil, last
}

func (k kernel) dump(c *nftables.Conn) (out Ruleset, err error) {
	tables, err := c.ListTables()
	if err != nil {
		return nil, err
	}
	for _, family := range families {
		i := slices.IndexFunc(tables, func(t *nftables.Table) bool { return t.Name == TableName && t.Family == family })
		if i < 0 {
			continue
		}
		t, err := k.table(c, tables[i])
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func (k kernel) table(c *nftables.Conn, t *nftables.Table) (Table, error) {
	out := Table{Family: t.Family, Name: t.Name}
	objects, err := c.GetNamedObjects(t)
	if err != nil {
		return out, err
	}
	for _, o := range objects {
		n, ok := o.(*nftables.NamedObj)
		if !ok {
			continue
		}
		counter := Counter{Name: n.Name}
		if v, ok := n.Obj.(*expr.Counter); ok {
			counter.Packets, counter.Bytes = v.Packets, v.Bytes
		}
		out.Counters = append(out.Counters, counter)
	}
	sets, err := c.GetSets(t)
	if err != nil {
		return out, err
	}
	for _, s := range sets {
		s.Table = t
		elements, err := c.GetSetElements(s)
		if err != nil {
			return out, err
		}
		out.Sets = append(out.Sets, Set{Set: *s, Elements: elements})
	}
	out.Chains, err = k.chains(c, t)
	return out, err
}

func (k kernel) chains(c *nftables.Conn, t *nftables.Table) (out []Chain, err error) {
	chains, err := c.ListChainsOfTableFamily(t.Family)
	if err != nil {
		return nil, err
	}
	devices, err := k.devices(t)
	if err != nil {
		return nil, err
	}
	for _, ch := range chains {
		if ch.Table == nil || ch.Table.Name != t.Name {
			continue
		}
		chain := Chain{Name: ch.Name, Hook: ch.Hooknum}
		if ch.Hooknum != nil {
			chain.Priority = *ch.Priority
			if t.Family == nftables.TableFamilyNetdev {
				chain.Devices = append([]string{}, devices[ch.Name]...)
			}
		}
		rules, err := c.GetRules(t, ch)
		if err != nil {
			return nil, err
		}
		for _, r := range rules {
			comment, _ := userdata.GetString(r.UserData, userdata.TypeComment)
			chain.Rules = append(chain.Rules, Rule{Exprs: r.Exprs, Comment: comment})
		}
		out = append(out, chain)
	}
	return out, nil
}

// ask sends one request that the library has none for, and returns the answers.
func (k kernel) ask(request uint16, flags mdnetlink.HeaderFlags, family nftables.TableFamily) ([]mdnetlink.Message, error) {
	c, err := mdnetlink.Dial(unix.NETLINK_NETFILTER, &mdnetlink.Config{NetNS: k.netns})
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return c.Execute(mdnetlink.Message{
		Header: mdnetlink.Header{Type: mdnetlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | request), Flags: mdnetlink.Request | flags},
		Data:   []byte{byte(family), unix.NFNETLINK_V0, 0, 0},
	})
}

// generation returns the number that every transaction steps.
func (k kernel) generation() (id uint32, err error) {
	msgs, err := k.ask(unix.NFT_MSG_GETGEN, 0, nftables.TableFamilyUnspecified)
	if err != nil {
		return 0, err
	}
	for _, m := range msgs {
		if len(m.Data) < 4 {
			continue
		}
		ad, err := mdnetlink.NewAttributeDecoder(m.Data[4:])
		if err != nil {
			return 0, err
		}
		for ad.Next() {
			if b := ad.Bytes(); ad.Type() == unix.NFTA_GEN_ID && len(b) == 4 {
				return binary.BigEndian.Uint32(b), nil
			}
		}
	}
	return 0, errors.New("the kernel gave no generation")
}

// devices reads the interfaces of a table's chains, which the library leaves out.
func (k kernel) devices(t *nftables.Table) (map[string][]string, error) {
	if t.Family != nftables.TableFamilyNetdev {
		return nil, nil
	}
	msgs, err := k.ask(unix.NFT_MSG_GETCHAIN, mdnetlink.Dump, t.Family)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, m := range msgs {
		if err := chainDevices(m.Data, t.Name, out); err != nil {
			return nil, fmt.Errorf("a chain of table %s: %w", t.Name, err)
		}
	}
	return out, nil
}

// chainDevices reads one NFT_MSG_NEWCHAIN.
func chainDevices(msg []byte, table string, out map[string][]string) error {
	if len(msg) < 4 {
		return errors.New("the message is shorter than its header")
	}
	ad, err := mdnetlink.NewAttributeDecoder(msg[4:])
	if err != nil {
		return err
	}
	var of, chain string
	var devices []string
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_CHAIN_TABLE:
			of = ad.String()
		case unix.NFTA_CHAIN_NAME:
			chain = ad.String()
		case unix.NFTA_CHAIN_HOOK:
			ad.Nested(func(hook *mdnetlink.AttributeDecoder) error {
				for hook.Next() {
					if hook.Type() == unix.NFTA_HOOK_DEV {
						devices = []string{hook.String()}
					}
					if hook.Type() == nftaHookDevs {
						devices = nil
						hook.Nested(func(list *mdnetlink.AttributeDecoder) error {
							for list.Next() {
								devices = append(devices, list.String())
							}
							return nil
						})
					}
				}
				return nil
			})
		}
	}
	if of == table {
		out[chain] = devices
	}
	return ad.Err()
}

// nftaHookDevs is NFTA_HOOK_DEVS of linux/netfilter/nf_tables.h.
const nftaHookDevs = 4

// program makes the kernel's tables what want says, in one transaction. have is what is there. Counters that
// both have keep their values.
func (k kernel) program(want, have Ruleset) error {
	c, err := k.conn()
	if err != nil {
		return err
	}
	for i := range have {
		t := &have[i]
		if want.table(t.Family) == nil {
			c.DelTable(t.ref())
			continue
		}
		t.clear(c)
	}
	for i := range want {
		if err := want[i].add(c, have.table(want[i].Family)); err != nil {
			return err
		}
	}
	return explain(c.Flush())
}

func (r Ruleset) table(f nftables.TableFamily) *Table {
	for i := range r {
		if r[i].Family == f {
			return &r[i]
		}
	}
	return nil
}

func (t *Table) ref() *nftables.Table { return &nftables.Table{Name: t.Name, Family: t.Family} }

// clear takes everything but the counters out.
func (t *Table) clear(c *nftables.Conn) {
	ref := t.ref()
	c.FlushTable(ref)
	for i := range t.Chains {
		c.DelChain(&nftables.Chain{Name: t.Chains[i].Name, Table: ref})
	}
	for i := range t.Sets {
		s := t.Sets[i].Set
		s.Table = ref
		c.DelSet(&s)
	}
}

func (t *Table) add(c *nftables.Conn, have *Table) error {
	ref := t.ref()
	c.AddTable(ref)
	for _, n := range t.Counters {
		if have == nil || !have.counts(n.Name) {
			c.AddObj(&nftables.NamedObj{Table: ref, Name: n.Name, Type: nftables.ObjTypeCounter, Obj: &expr.Counter{}})
		}
	}
	if have != nil {
		for _, n := range have.Counters {
			if !t.counts(n.Name) {
				c.DeleteObject(&nftables.NamedObj{Table: ref, Name: n.Name, Type: nftables.ObjTypeCounter, Obj: &expr.Counter{}})
			}
		}
	}
	ids := map[string]uint32{}
	for i := range t.Sets {
		s := t.Sets[i].Set
		// The library's own numbers are one variable for all its connections.
		s.Table, s.ID, s.KeyByteOrder = ref, uint32(i+1), binaryutil.BigEndian
		ids[s.Name] = s.ID
		if err := c.AddSet(&s, t.Sets[i].Elements); err != nil {
			return fmt.Errorf("set %s: %w", s.Name, err)
		}
	}
	policy := nftables.ChainPolicyAccept
	for i := range t.Chains {
		ch := &t.Chains[i]
		n := &nftables.Chain{Name: ch.Name, Table: ref}
		if ch.Hook != nil {
			n.Hooknum, n.Priority, n.Type, n.Policy = ch.Hook, &ch.Priority, nftables.ChainTypeFilter, &policy
			if ch.ofNetdev() {
				n.Device = strings.Join(ch.Devices, "")
			}
		}
		c.AddChain(n)
	}
	for i := range t.Chains {
		ch := &t.Chains[i]
		for j := range ch.Rules {
			r := &nftables.Rule{Table: ref, Chain: &nftables.Chain{Name: ch.Name, Table: ref}, Exprs: withIDs(ch.Rules[j].Exprs, ids)}
			if ch.Rules[j].Comment != "" {
				r.UserData = userdata.AppendString(nil, userdata.TypeComment, ch.Rules[j].Comment)
			}
			c.AddRule(r)
		}
	}
	return nil
}

// withIDs names the sets of this transaction by their numbers, too.
func withIDs(exprs []expr.Any, ids map[string]uint32) []expr.Any {
	out := slices.Clone(exprs)
	for i, e := range out {
		switch e := e.(type) {
		case *expr.Lookup:
			x := *e
			x.SetID = ids[e.SetName]
			out[i] = &x
		case *expr.Dynset:
			x := *e
			x.SetID = ids[e.SetName]
			out[i] = &x
		}
	}
	return out
}

func (t *Table) counts(name string) bool {
	return slices.ContainsFunc(t.Counters, func(c Counter) bool { return c.Name == name })
}

// marked says whether the table has our mark.
func (t *Table) marked() bool {
	return slices.ContainsFunc(t.Chains, func(c Chain) bool {
		return c.Name == ownerChain && slices.ContainsFunc(c.Rules, func(r Rule) bool { return r.Comment == ownerMark })
	})
}

// links returns what says whether the namespace has an interface, by name.
func (k kernel) links() (exists func(string) bool, err error) {
	ns := netns.None()
	if k.netns != 0 {
		ns = netns.NsHandle(k.netns)
	}
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("boundary: rtnetlink: %w", err)
	}
	defer h.Close()
	var names []string
	for range readAttempts {
		links, err := h.LinkList()
		if errors.Is(err, netlink.ErrDumpInterrupted) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("boundary: list interfaces: %w", err)
		}
		for _, l := range links {
			names = append(names, l.Attrs().Name)
		}
		return func(name string) bool { return slices.Contains(names, name) }, nil
	}
	return nil, fmt.Errorf("boundary: list interfaces: %w", netlink.ErrDumpInterrupted)
}
