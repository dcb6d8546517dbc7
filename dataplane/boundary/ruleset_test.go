package boundary

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

var everything = Support{Ingress: true, Egress: true, Limit: true, Meter: true}

func anyInterface(string) bool { return true }

func samplePolicy() *Policy {
	return &Policy{
		Ports: []uint16{1022, 1021}, Borders: []string{"ext0"}, RefuseCNPs: true,
		AcceptFrom: []netip.Prefix{
			netip.MustParsePrefix("192.0.2.0/25"), netip.MustParsePrefix("192.0.2.7/32"), // inside the one before
			netip.MustParsePrefix("192.0.2.128/25"), netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("2001:db8::/32"),
		},
		Own:   []netip.Addr{netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("2001:db8::1")},
		Total: Limit{Rate: 1000, Burst: 100}, PerSource: Limit{Rate: 500, Burst: 50}, Sources: 4096, SourceAge: 90 * time.Second,
	}
}

func build(t *testing.T, p *Policy, has Support) Ruleset {
	t.Helper()
	r, err := Build(p, has, anyInterface)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const sampleText = `table netdev pncd {
	counter border_in {
		packets 0 bytes 0
	}

	counter border_out {
		packets 0 bytes 0
	}

	counter cnp_out {
		packets 0 bytes 0
	}

	set notification_ports {
		type inet_service
		elements = { 1021, 1022 }
	}

	chain owner {
		return comment "made by pncd, which puts it back when it is changed"
	}

	chain in_ext0 {
		type filter hook ingress device "ext0" priority -300; policy accept;
		udp dport @notification_ports counter name "border_in" drop
	}

	chain out_ext0 {
		type filter hook egress device "ext0" priority -300; policy accept;
		udp dport @notification_ports counter name "border_out" drop
		udp dport 4791 @th,64,8 0x81 counter name "cnp_out" drop
	}
}
table inet pncd {
	counter border_in {
		packets 0 bytes 0
	}

	counter not_our_domain {
		packets 0 bytes 0
	}

	counter not_our_address {
		packets 0 bytes 0
	}

	counter per_source_limited {
		packets 0 bytes 0
	}

	counter total_limited {
		packets 0 bytes 0
	}

	counter accepted {
		packets 0 bytes 0
	}

	set notification_ports {
		type inet_service
		elements = { 1021, 1022 }
	}

	set domain4 {
		type ipv4_addr
		flags interval
		elements = { 10.0.0.1, 192.0.2.0/25,
			     192.0.2.128/25 }
	}

	set domain6 {
		type ipv6_addr
		flags interval
		elements = { 2001:db8::/32 }
	}

	set own4 {
		type ipv4_addr
		elements = { 198.51.100.1 }
	}

	set own6 {
		type ipv6_addr
		elements = { 2001:db8::1 }
	}

	set sources4 {
		type ipv4_addr
		size 4096
		flags dynamic,timeout
		timeout 1m30s
		# 0 elements
	}

	set sources6 {
		type ipv6_addr
		size 4096
		flags dynamic,timeout
		timeout 1m30s
		# 0 elements
	}

	chain owner {
		return comment "made by pncd, which puts it back when it is changed"
	}

	chain notifications {
		iifname "ext0" counter name "border_in" drop
		ip saddr != @domain4 counter name "not_our_domain" drop
		ip6 saddr != @domain6 counter name "not_our_domain" drop
		ip daddr != @own4 counter name "not_our_address" drop
		ip6 daddr != @own6 counter name "not_our_address" drop
		update @sources4 { ip saddr limit rate over 500/second burst 50 packets } counter name "per_source_limited" drop
		update @sources6 { ip6 saddr limit rate over 500/second burst 50 packets } counter name "per_source_limited" drop
		limit rate over 1000/second burst 100 packets counter name "total_limited" drop
		counter name "accepted" accept
	}

	chain input {
		type filter hook input priority raw; policy accept;
		udp dport @notification_ports goto notifications
	}
}
`

func TestTheRulesetOfAPolicy(t *testing.T) {
	if got := build(t, samplePolicy(), everything).String(); got != sampleText {
		t.Errorf("got:\n%s", got)
	}
}

// without returns what has not one feature.
func without(edit func(*Support)) Support {
	s := everything
	edit(&s)
	return s
}

func TestWhatAKernelLacksIsLeftOutAndSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		has         Support
		family      Family
		wants, dont string // in the text
		lacks       string // in the words for the operator
		err         string
	}{
		"all":                {everything, FamilyAuto, "hook egress", "hook postrouting", "", ""},
		"inet asked for":     {everything, FamilyInet, "hook postrouting", "netdev", "", ""},
		"no egress":          {without(func(s *Support) { s.Egress = false }), FamilyAuto, `oifname "ext0" udp dport 4791 @th,64,8 0x81 counter name "cnp_out" drop`, "netdev", "CONFIG_NETFILTER_EGRESS", ""},
		"no ingress":         {without(func(s *Support) { s.Ingress = false }), "", `iifname "ext0" udp dport @notification_ports counter name "border_in" drop`, "netdev", "CONFIG_NETFILTER_INGRESS", ""},
		"no egress, netdev":  {without(func(s *Support) { s.Egress = false }), FamilyNetdev, "", "", "", "CONFIG_NETFILTER_EGRESS"},
		"no ingress, netdev": {without(func(s *Support) { s.Ingress = false }), FamilyNetdev, "", "", "", "CONFIG_NETFILTER_INGRESS"},
		"no limit":           {without(func(s *Support) { s.Limit, s.Meter = false, false }), FamilyAuto, "accepted", "limit", "CONFIG_NFT_LIMIT", ""},
		"no meter":           {without(func(s *Support) { s.Meter = false }), FamilyAuto, "total_limited", "sources4", "no limit per source", ""},
	} {
		p := samplePolicy()
		p.Family = tc.family
		r, err := Build(p, tc.has, anyInterface)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v, want an error with %s", name, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if text := r.String(); !strings.Contains(text, tc.wants) || strings.Contains(text, tc.dont) && tc.dont != "" {
			t.Errorf("%s: want %q and not %q:\n%s", name, tc.wants, tc.dont, text)
		}
		if lacks := strings.Join(p.lacks(tc.has), "; "); (tc.lacks == "") != (lacks == "") || !strings.Contains(lacks, tc.lacks) {
			t.Errorf("%s: lacks %q, want %q", name, lacks, tc.lacks)
		}
	}
}

func TestAcceptInterfacesAreTheOnlyOnes(t *testing.T) {
	p := samplePolicy()
	p.AcceptInterfaces = []string{"core0", "core1"}
	text := build(t, p, everything).String()
	for _, want := range []string{
		"\t\tiifname \"core0\" goto admit\n\t\tiifname \"core1\" goto admit\n\t\tcounter name \"not_our_domain\" drop\n",
		"\tchain admit {\n\t\tupdate @sources4",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestInterfacesThatDoNotExistHaveNoChain(t *testing.T) {
	p := samplePolicy()
	p.Borders = []string{"ext0", "ext1"}
	r, err := Build(p, everything, func(name string) bool { return name == "ext1" })
	if err != nil {
		t.Fatal(err)
	}
	if text := r[0].String(); strings.Contains(text, "ext0") || !strings.Contains(text, "in_ext1") {
		t.Error(text)
	}
}

func (t Table) String() string { return Ruleset{t}.String() }

func TestPoliciesThatCanNotBeProgrammed(t *testing.T) {
	for want, edit := range map[string]func(*Policy){
		"ports":            func(p *Policy) { p.Ports = nil },
		"none is 0":        func(p *Policy) { p.Ports = []uint16{0} },
		"1 to 15 octets":   func(p *Policy) { p.Borders = []string{"0123456789abcdef"} },
		"both be a border": func(p *Policy) { p.AcceptInterfaces = p.Borders },
		"accept_from":      func(p *Policy) { p.AcceptFrom = []netip.Prefix{{}} },
		"own address":      func(p *Policy) { p.Own = []netip.Addr{netip.MustParseAddr("fe80::1%eth0")} },
		"family":           func(p *Policy) { p.Family = "bridge" },
		"limit total":      func(p *Policy) { p.Total.Burst = 1 },
		"limit per source": func(p *Policy) { p.PerSource.Rate = MaxRate + 1 },
		"whole seconds":    func(p *Policy) { p.SourceAge = 1500 * time.Millisecond },
		"sources":          func(p *Policy) { p.Sources = 0 },
	} {
		p := samplePolicy()
		edit(p)
		if _, err := Build(p, everything, anyInterface); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error about %q", err, want)
		}
	}
}

func TestPrefixesAsIntervals(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"0.0.0.0/0", "0.0.0.0/0"},
		{"255.255.255.255/32", "255.255.255.255"},
		{"128.0.0.0/1 10.1.2.3/8 10.0.0.0/9", "10.0.0.0/8 128.0.0.0/1"},
		{"::/0 2001:db8::/32", "::/0"},
		{"ff00::/8", "ff00::/8"},
		{"10.0.0.5/32 10.0.0.4/31 10.0.0.6/31", "10.0.0.4/31 10.0.0.6/31"},
	} {
		var list []netip.Prefix
		for _, s := range strings.Fields(tc.in) {
			list = append(list, netip.MustParsePrefix(s))
		}
		four, six := prefixSets("a", "b", list)
		if got := fmt.Sprint(strings.Join(append(four.elementTexts(), six.elementTexts()...), " ")); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.in, got, tc.want)
		}
	}
	if got := intervalText([]byte{10, 0, 0, 1}, []byte{10, 0, 0, 4}); got != "10.0.0.1-10.0.0.3" {
		t.Error(got)
	}
}

func TestCountsOnlyGrow(t *testing.T) {
	at := func(n uint64) Ruleset {
		return Ruleset{{Family: families[1], Name: TableName, Counters: []Counter{{Name: "a", Packets: n}}}}
	}
	c := newTally()
	want := func(n uint64) {
		t.Helper()
		if c.total["a"] != n {
			t.Errorf("%d, want %d", c.total["a"], n)
		}
	}
	c.adopt(at(100))
	c.add(at(100))
	want(0) // of the run before
	c.add(at(107))
	want(7)
	c.adopt(at(107))
	c.add(at(2)) // began anew
	want(9)
	c.programmed(at(0), nil) // made again
	c.add(at(5))
	want(14)
}
