package api

import (
	"net/netip"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pncv1 "pncd/api/pnc/v1"
)

// Limits of requests.
const (
	defaultRows    = 10_000  // rows of a listing when the request gives no limit
	defaultRecords = 1_000   // records of a listing when the request gives no limit
	maxRows        = 100_000 // the most that a request may ask for
	maxQP          = 1<<24 - 1
	maxContext     = 255 // octets of a context's name
	maxLevel       = 32  // octets of a log level's name
	maxLease       = 365 * 24 * time.Hour
)

// address reads a required unicast address. IPv4-mapped IPv6 addresses count as IPv4.
func address(field, s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, Invalid(field, "is required")
	}
	return optionalAddress(field, s)
}

// optionalAddress is address for a field that may be empty: then the address is invalid.
func optionalAddress(field, s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, Invalid(field, "%q is not an IP address", s)
	}
	a = a.Unmap()
	switch {
	case a.Zone() != "":
		return netip.Addr{}, Invalid(field, "%q must not have a zone", s)
	case a.IsUnspecified(), a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return netip.Addr{}, Invalid(field, "%q is not a unicast address", s)
	}
	return a, nil
}

// lease reads how long something holds: absent for ever, else at least a second and at most a year.
func lease(field string, d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if err := d.CheckValid(); err != nil {
		return 0, Invalid(field, "is no valid duration: %v", err)
	}
	if v := d.AsDuration(); v < time.Second || v > maxLease {
		return 0, Invalid(field, "%s is not between 1s and %s", v, maxLease)
	}
	return d.AsDuration(), nil
}

// prefix reads a required prefix. Host bits must be zero: 192.0.2.1/24 is more often a mistake than
// meant as 192.0.2.0/24.
func prefix(field, s string) (netip.Prefix, error) {
	if s == "" {
		return netip.Prefix{}, Invalid(field, "is required")
	}
	return optionalPrefix(field, s)
}

// optionalPrefix is prefix for a field that may be empty: then the prefix is invalid.
func optionalPrefix(field, s string) (netip.Prefix, error) {
	if s == "" {
		return netip.Prefix{}, nil
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return netip.Prefix{}, Invalid(field, "%q is not a prefix as in 192.0.2.0/24", s)
	case p.Addr().Is4In6():
		return netip.Prefix{}, Invalid(field, "%q is an IPv4-mapped prefix; write it as IPv4", s)
	case p != p.Masked():
		return netip.Prefix{}, Invalid(field, "%q has host bits set; did you mean %s?", s, p.Masked())
	}
	return p, nil
}

func contextName(field, s string) error {
	if len(s) > maxContext {
		return Invalid(field, "is longer than %d octets", maxContext)
	}
	return nil
}

func queuePair(field string, qp uint32) error {
	if qp > maxQP {
		return Invalid(field, "%#x does not fit in 24 bits", qp)
	}
	return nil
}

// rows gives the limit of a listing: def when it is zero.
func rows(field string, limit uint32, def int) (int, error) {
	switch {
	case limit == 0:
		return def, nil
	case limit > maxRows:
		return 0, Invalid(field, "%d is more than %d", limit, maxRows)
	}
	return int(limit), nil
}

// enumKnown checks a value of an enum: one that this server knows, and not the unspecified one.
func enumKnown(field string, e protoreflect.Enum) error {
	if e.Number() == 0 {
		return Invalid(field, "must not be unspecified")
	}
	if e.Descriptor().Values().ByNumber(e.Number()) == nil {
		return Invalid(field, "%d is no value of %s", e.Number(), e.Descriptor().FullName())
	}
	return nil
}

func timestamp(field string, ts *timestamppb.Timestamp) error {
	if ts == nil {
		return nil
	}
	if err := ts.CheckValid(); err != nil {
		return Invalid(field, "is no valid time: %v", err)
	}
	return nil
}

// recordFilter checks a filter of records and writes its addresses in canonical form. Nil passes.
func recordFilter(f *pncv1.RecordFilter) error {
	if f == nil {
		return nil
	}
	for _, a := range []struct {
		field string
		text  *string
	}{{"filter.sender", &f.Sender}, {"filter.receiver", &f.Receiver}} {
		addr, err := optionalAddress(a.field, *a.text)
		if err != nil {
			return err
		}
		*a.text = addrText(addr)
	}
	if err := contextName("filter.context", f.GetContext()); err != nil {
		return err
	}
	if f.DestinationQp != nil {
		if err := queuePair("filter.destination_qp", *f.DestinationQp); err != nil {
			return err
		}
	}
	for _, o := range f.Outcomes {
		if err := enumKnown("filter.outcomes", o); err != nil {
			return err
		}
	}
	if err := timestamp("filter.since", f.Since); err != nil {
		return err
	}
	if err := timestamp("filter.until", f.Until); err != nil {
		return err
	}
	if f.Since != nil && f.Until != nil && !f.Until.AsTime().After(f.Since.AsTime()) {
		return Invalid("filter.until", "is not after filter.since")
	}
	return nil
}
