package engine

import (
	"net/netip"
	"testing"
)

func TestPrefixListsMatchAsInFRR(t *testing.T) {
	rule := func(p string, ge, le int, deny bool) PrefixRule {
		return PrefixRule{Prefix: netip.MustParsePrefix(p), GE: ge, LE: le, Deny: deny}
	}
	for name, tt := range map[string]struct {
		list     PrefixList
		yes, not []string
	}{
		"empty permits all":      {nil, []string{"10.0.0.0/8", "::/0"}, nil},
		"exact":                  {PrefixList{rule("10.0.0.0/8", 0, 0, false)}, []string{"10.0.0.0/8"}, []string{"10.0.0.0/9", "10.0.0.0/7", "::/0"}},
		"ge":                     {PrefixList{rule("10.0.0.0/8", 24, 0, false)}, []string{"10.1.2.0/24", "10.1.2.3/32"}, []string{"10.0.0.0/8", "10.1.0.0/23", "11.0.0.0/24"}},
		"le":                     {PrefixList{rule("10.0.0.0/8", 0, 16, false)}, []string{"10.0.0.0/8", "10.1.0.0/16"}, []string{"10.1.0.0/17"}},
		"ge and le":              {PrefixList{rule("2001:db8::/32", 48, 64, false)}, []string{"2001:db8:1::/48", "2001:db8:1::/64"}, []string{"2001:db8::/32", "2001:db8::/65", "10.0.0.0/8"}},
		"the first one decides":  {PrefixList{rule("10.1.0.0/16", 0, 32, true), rule("10.0.0.0/8", 0, 32, false)}, []string{"10.2.0.0/16"}, []string{"10.1.0.0/16", "10.1.2.0/24", "11.0.0.0/8"}},
		"everything of a family": {PrefixList{rule("0.0.0.0/0", 0, 32, false)}, []string{"0.0.0.0/0", "10.1.2.3/32"}, []string{"::/0"}},
	} {
		if err := tt.list.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i, list := range [][]string{tt.yes, tt.not} {
			for _, p := range list {
				if got := tt.list.Permits(netip.MustParsePrefix(p)); got != (i == 0) {
					t.Errorf("%s: %s permitted %v", name, p, got)
				}
			}
		}
	}
	for name, r := range map[string]PrefixRule{
		"no prefix": {}, "host bits": {Prefix: netip.MustParsePrefix("10.0.0.1/8")},
		"ge below": rule("10.0.0.0/8", 7, 0, false), "le below": rule("10.0.0.0/8", 0, 7, false),
		"le below ge": rule("10.0.0.0/8", 24, 16, false), "too long": rule("10.0.0.0/8", 0, 33, false), "negative": rule("10.0.0.0/8", -1, 0, false),
	} {
		if (PrefixList{r}).Check() == nil {
			t.Errorf("%s: no error for %+v", name, r)
		}
	}
}

func TestCommunitiesHaveTheirText(t *testing.T) {
	for text, want := range map[string]Community{
		"65000:1": {Global: 65000, Local: 1}, "no-export": {Global: 65535, Local: 65281}, "no-advertise": {Global: 65535, Local: 65282},
		"4200000000:0:4294967295": {Large: true, Global: 4200000000, Local2: 4294967295},
	} {
		if got, err := ParseCommunity(text); err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v %s %v", text, got, got, err)
		}
	}
	for _, text := range []string{"", "1", "65536:1", "1:65536", "1:2:3:4", "a:b", "1:-1", "1:2:4294967296", ":"} {
		if c, err := ParseCommunity(text); err == nil {
			t.Errorf("%q was read as %s", text, c)
		}
	}
}

func FuzzParseCommunity(f *testing.F) {
	f.Add("65000:1")
	f.Add("1:2:3")
	f.Add("no-export")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCommunity(s)
		if err != nil {
			return
		}
		if again, err := ParseCommunity(c.String()); err != nil || again != c {
			t.Errorf("%q: %s, %v", s, again, err)
		}
	})
}
