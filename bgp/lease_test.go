package bgp

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pncd/internal/testwait"
)

func TestALeaseEndsUnlessItIsRenewed(t *testing.T) {
	d := newDesk(t)
	d.o.setEnabled(true)
	begin := time.Unix(1000, 0)
	ask := func(p netip.Prefix, expires time.Time) {
		oc := modeConfig(ModeOriginate, netip.Addr{})
		oc.Prefix = p
		d.o.items[PrefixKey{"", p}] = item{OriginateConfig: oc, requested: true, expires: expires}
		d.o.touch(PrefixKey{"", p})
	}
	leased, forever := pfx, prefix("10.9.0.0/16")
	ask(leased, begin.Add(10*time.Second))
	ask(forever, time.Time{})
	if c := d.plan(); len(c.announce) != 2 {
		t.Fatalf("%+v", c)
	}
	if ended := d.o.expire(begin.Add(10*time.Second - 1)); len(ended) != 0 {
		t.Errorf("before its end: %v", ended)
	}
	ask(leased, begin.Add(15*time.Second)) // renewed
	if c := d.plan(); len(c.announce)+len(c.withdraw) != 0 {
		t.Errorf("a renewal is told to the neighbours: %+v", c)
	}
	if ended := d.o.expire(begin.Add(10 * time.Second)); len(ended) != 0 {
		t.Errorf("renewed, and ended: %v", ended)
	}
	if ended := d.o.expire(begin.Add(15 * time.Second)); !slices.Equal(ended, []PrefixKey{{"", leased}}) {
		t.Errorf("at its end: %v", ended)
	}
	if c := d.plan(); !slices.Equal(c.withdraw, []netip.Prefix{leased}) || len(c.announce) != 0 {
		t.Errorf("%+v", c)
	}
	if ended := d.o.expire(begin.Add(time.Hour)); len(ended) != 0 {
		t.Errorf("ended twice, or without a lease: %v", ended)
	}
}

func TestAConfiguredPrefixHasNoLease(t *testing.T) {
	d := newDesk(t)
	d.o.items[PrefixKey{"", pfx}] = item{OriginateConfig: modeConfig(ModeOriginate, netip.Addr{}), requested: true, expires: time.Unix(1, 0)}
	d.o.configure(Config{PNCCode: 65400, Originate: []OriginateConfig{modeConfig(ModeOriginate, netip.Addr{})}})
	if ended := d.o.expire(time.Unix(2, 0)); len(ended) != 0 || len(d.o.items) != 1 {
		t.Errorf("configuration took it over, and it ended: %v", ended)
	}
}

// at builds a request for a prefix that the configuration doesn't have.
func at(p string) OriginateConfig {
	return OriginateConfig{Prefix: prefix(p), Proxy: addr("192.0.2.7"), NextHop: addr("198.51.100.1")}
}

func TestARequestIsRenewedByRepeatingIt(t *testing.T) {
	r := run(t, sound())
	if err := r.SetOriginating(true); err != nil {
		t.Fatal(err)
	}
	p := prefix("10.9.0.0/16")
	expires := func() time.Time {
		for _, st := range r.Advertisements() {
			if st.Prefix == p {
				return st.Expires
			}
		}
		t.Fatal("not advertised")
		return time.Time{}
	}
	if err := r.Advertise(at("10.9.0.0/16"), time.Millisecond); !errors.Is(err, ErrConfig) {
		t.Errorf("a lease of 1 ms: %v", err)
	}
	if err := r.Advertise(at("10.9.0.0/16"), time.Hour); err != nil {
		t.Fatal(err)
	}
	first := expires()
	if left := time.Until(first); left < 59*time.Minute || left > time.Hour {
		t.Errorf("ends in %s", left)
	}
	if err := r.SetOriginating(false); err != nil {
		t.Fatal(err)
	}
	// Held back for a while, the orchestrator must be able to keep its request alive.
	if err := r.Advertise(at("10.9.0.0/16"), 2*time.Hour); err != nil || !expires().After(first) {
		t.Errorf("renewed while off: %v, ends %s", err, expires())
	}
	if err := r.Advertise(at("10.10.0.0/16"), time.Hour); !errors.Is(err, ErrDisabled) {
		t.Errorf("a new one while off: %v", err)
	}
	if err := r.SetOriginating(true); err != nil {
		t.Fatal(err)
	}
	if err := r.Advertise(at("10.9.0.0/16"), 0); err != nil || !expires().IsZero() {
		t.Errorf("without a lease from now on: %v, ends %s", err, expires())
	}
	if err := r.Advertise(at("10.9.0.0/16"), time.Second); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the lease ends", func() bool { return !r.f.has(p) && r.f.has(pfx) })
	if err := r.Withdraw("", p); !errors.Is(err, ErrNotAdvertised) {
		t.Errorf("withdrawn after its end: %v", err)
	}
}

func TestTheConfiguredPrefixesAreReplacedWithoutTheRest(t *testing.T) {
	r := run(t, sound())
	if err := r.SetOriginating(true); err != nil || !r.f.has(pfx) {
		t.Fatalf("%v, announced %v", err, r.f.announced)
	}
	if err := r.Advertise(at("10.9.0.0/16"), 0); err != nil {
		t.Fatal(err)
	}
	before := r.f.log()
	if err := r.SetOriginated([]OriginateConfig{at("10.11.0.0/16"), at("10.11.0.0/16")}); !errors.Is(err, ErrConfig) || !r.f.has(pfx) {
		t.Errorf("one twice: %v", err)
	}
	if err := r.SetOriginated([]OriginateConfig{at("10.11.0.0/16")}); err != nil {
		t.Fatal(err)
	}
	if r.f.has(pfx) || !r.f.has(prefix("10.11.0.0/16")) || !r.f.has(prefix("10.9.0.0/16")) {
		t.Errorf("announced %v", r.f.announced)
	}
	if got := r.f.log()[len(before):]; !slices.Equal(got, []string{"withdraw " + pfx.String()}) {
		t.Errorf("asked %v: sessions were touched", got)
	}
}
