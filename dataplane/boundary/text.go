package boundary

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// String prints the tables as `nft list table` does, with their counters. Of the sets that packets fill it
// prints how many elements they have, as a comment.
func (r Ruleset) String() string { return r.text(true) }

// stateless prints what does not change by itself, in an order of its own: two rulesets do the same when it is
// equal.
func (r Ruleset) stateless() string {
	sorted := slices.Clone(r)
	slices.SortFunc(sorted, func(a, b Table) int { return cmp.Compare(a.Family, b.Family) })
	for i := range sorted {
		sorted[i].Counters = slices.Clone(sorted[i].Counters)
		slices.SortFunc(sorted[i].Counters, func(a, b Counter) int { return strings.Compare(a.Name, b.Name) })
	}
	return sorted.text(false)
}

func (r Ruleset) text(state bool) string {
	var b strings.Builder
	for _, t := range r {
		t.text(&b, state)
	}
	return b.String()
}

func (t *Table) text(b *strings.Builder, state bool) {
	fmt.Fprintf(b, "table %s %s {\n", familyName(t.Family), t.Name)
	blank := ""
	next := func() { b.WriteString(blank); blank = "\n" }
	for _, c := range t.Counters {
		next()
		fmt.Fprintf(b, "\tcounter %s {\n", c.Name)
		if state {
			fmt.Fprintf(b, "\t\tpackets %d bytes %d\n", c.Packets, c.Bytes)
		}
		b.WriteString("\t}\n")
	}
	for i := range t.Sets {
		next()
		t.Sets[i].text(b, state)
	}
	for i := range t.Chains {
		next()
		t.Chains[i].text(b)
	}
	b.WriteString("}\n")
}

func familyName(f nftables.TableFamily) string {
	switch f {
	case nftables.TableFamilyINet:
		return "inet"
	case nftables.TableFamilyNetdev:
		return "netdev"
	}
	return fmt.Sprintf("family-%d", f)
}

func (s *Set) text(b *strings.Builder, state bool) {
	fmt.Fprintf(b, "\tset %s {\n\t\ttype %s\n", s.Name, s.KeyType.Name)
	if s.Size > 0 && s.Dynamic {
		fmt.Fprintf(b, "\t\tsize %d\n", s.Size)
	}
	var flags []string
	for _, f := range []struct {
		on   bool
		name string
	}{{s.Constant, "constant"}, {s.Interval, "interval"}, {s.Dynamic, "dynamic"}, {s.HasTimeout, "timeout"}} {
		if f.on {
			flags = append(flags, f.name)
		}
	}
	if flags != nil {
		fmt.Fprintf(b, "\t\tflags %s\n", strings.Join(flags, ","))
	}
	if s.Timeout > 0 {
		fmt.Fprintf(b, "\t\ttimeout %s\n", span(uint64(s.Timeout.Seconds())))
	}
	switch {
	case s.Dynamic && state:
		fmt.Fprintf(b, "\t\t# %d elements\n", len(s.Elements))
	case !s.Dynamic && len(s.Elements) > 0:
		b.WriteString("\t\telements = { ")
		s.elements(b)
		b.WriteString(" }\n")
	}
	b.WriteString("\t}\n")
}

// elements prints so many in a line as nft does: two addresses, or five numbers.
func (s *Set) elements(b *strings.Builder) {
	inLine := 2
	if s.KeyType.Name == nftables.TypeInetService.Name {
		inLine = 5
	}
	for i, e := range s.elementTexts() {
		switch {
		case i == 0:
		case i%inLine == 0:
			b.WriteString(",\n\t\t\t     ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(e)
	}
}

func (s *Set) elementTexts() (out []string) {
	list := slices.Clone(s.Elements)
	// The end of an interval comes before the start of the next one.
	slices.SortFunc(list, func(a, b nftables.SetElement) int {
		if c := bytes.Compare(a.Key, b.Key); c != 0 || a.IntervalEnd == b.IntervalEnd {
			return c
		}
		if a.IntervalEnd {
			return -1
		}
		return 1
	})
	for i, e := range list {
		if e.IntervalEnd {
			continue
		}
		from := keyText(s.KeyType, e.Key)
		if s.Interval {
			var end []byte
			if i+1 < len(list) && list[i+1].IntervalEnd {
				end = list[i+1].Key
			}
			from = intervalText(e.Key, end)
		}
		out = append(out, from)
	}
	return out
}

// intervalText prints addresses from start up to before end, or to the last one, as a prefix where it is one.
func intervalText(start, end []byte) string {
	first, ok := netip.AddrFromSlice(start)
	if !ok {
		return fmt.Sprintf("0x%x", start)
	}
	for bits := 0; bits <= first.BitLen(); bits++ {
		p := netip.PrefixFrom(first, bits)
		if p.Masked() != p {
			continue
		}
		next, more := after(p)
		if more && bytes.Equal(next.AsSlice(), end) || !more && end == nil {
			if bits == first.BitLen() {
				return first.String()
			}
			return p.String()
		}
	}
	last, ok := netip.AddrFromSlice(end)
	if !ok {
		return first.String() + "-*"
	}
	return first.String() + "-" + last.Prev().String()
}

func keyText(t nftables.SetDatatype, key []byte) string {
	switch t.Name {
	case nftables.TypeInetService.Name:
		if len(key) >= 2 {
			return fmt.Sprint(binary.BigEndian.Uint16(key))
		}
	case nftables.TypeIPAddr.Name, nftables.TypeIP6Addr.Name:
		if a, ok := netip.AddrFromSlice(key); ok {
			return a.String()
		}
	}
	return fmt.Sprintf("0x%x", key)
}

// span prints seconds as nft does.
func span(seconds uint64) string {
	var b strings.Builder
	for _, u := range []struct {
		name string
		of   uint64
	}{{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}} {
		if n := seconds / u.of; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			seconds %= u.of
		}
	}
	return b.String()
}

func (c *Chain) text(b *strings.Builder) {
	fmt.Fprintf(b, "\tchain %s {\n", c.Name)
	if c.Hook != nil {
		fmt.Fprintf(b, "\t\ttype filter hook %s%s priority %s; policy accept;\n", c.hookName(), c.deviceText(), c.priorityName())
	}
	for i := range c.Rules {
		fmt.Fprintf(b, "\t\t%s\n", c.Rules[i].text())
	}
	b.WriteString("\t}\n")
}

// ofNetdev: hooks of the netdev family have the numbers of others.
func (c *Chain) ofNetdev() bool { return c.Devices != nil }

func (c *Chain) hookName() string {
	names := map[nftables.ChainHook]string{
		unix.NF_INET_PRE_ROUTING: "prerouting", unix.NF_INET_LOCAL_IN: "input", unix.NF_INET_FORWARD: "forward",
		unix.NF_INET_LOCAL_OUT: "output", unix.NF_INET_POST_ROUTING: "postrouting",
	}
	if c.ofNetdev() {
		names = map[nftables.ChainHook]string{unix.NF_NETDEV_INGRESS: "ingress", unix.NF_NETDEV_EGRESS: "egress"}
	}
	if n, ok := names[*c.Hook]; ok {
		return n
	}
	return fmt.Sprint(*c.Hook)
}

func (c *Chain) deviceText() string {
	switch len(c.Devices) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(" device %q", c.Devices[0])
	}
	var names []string
	for _, d := range c.Devices {
		names = append(names, fmt.Sprintf("%q", d))
	}
	return " devices = { " + strings.Join(names, ", ") + " }"
}

func (c *Chain) priorityName() string {
	if c.Priority == priority && !c.ofNetdev() {
		return "raw"
	}
	return fmt.Sprint(c.Priority)
}

func (r *Rule) text() string {
	var p printer
	for i, e := range r.Exprs {
		var next expr.Any
		if i+1 < len(r.Exprs) {
			next = r.Exprs[i+1]
		}
		p.add(e, next)
	}
	if r.Comment != "" {
		p.say("comment %q", r.Comment)
	}
	return strings.Join(p.words, " ")
}
