package ctl

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	pncv1 "pncd/api/pnc/v1"
	"pncd/proxyagent/evidence"
)

// parseQP reads a queue pair number.
func parseQP(name, s string) (uint32, error) {
	n, ok := parseNumber(s, 24)
	if !ok {
		return 0, usagef("%s: %q is no queue pair number: want decimal or 0x hexadecimal, at most 0xffffff", name, s)
	}
	return n, nil
}

// parseNRP reads an NRP Selector ID.
func parseNRP(s string) (uint32, error) {
	n, ok := parseNumber(s, 32)
	if !ok {
		return 0, usagef("ID: %q is no NRP Selector ID: want decimal or 0x hexadecimal, at most 32 bits", s)
	}
	return n, nil
}

// parseNumber reads a number of at most so many bits, decimal or hexadecimal with 0x. Other leading zeros mean octal to
// some and nothing to others.
func parseNumber(s string, bits int) (n uint32, ok bool) {
	s = strings.ToLower(s)
	v, err := strconv.ParseUint(s, 0, bits)
	octal := len(s) > 1 && s[0] == '0' && s[1] != 'x'
	return uint32(v), err == nil && !octal && !strings.Contains(s, "_")
}

// parseAddr checks an address here, so that a typing error needs no daemon to be found.
func parseAddr(name, s string) (string, error) {
	if s == "" {
		return "", nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return "", usagef("%s: %q is not an IP address", name, s)
	}
	return a.Unmap().String(), nil
}

func parsePrefix(name, s string) (string, error) {
	if s == "" {
		return "", nil
	}
	if _, err := netip.ParsePrefix(s); err != nil {
		return "", usagef("%s: %q is not a prefix as in 192.0.2.0/24", name, s)
	}
	return s, nil
}

// parseTime reads a time (RFC 3339) or how long ago it was (10m).
func parseTime(name, s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil {
		if d < 0 {
			return time.Time{}, usagef("%s: %q is in the future: give how long ago without a sign", name, s)
		}
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, usagef("%s: %q is neither a duration ago (10m) nor a time (2006-01-02T15:04:05Z)", name, s)
	}
	return t, nil
}

// parseEnum reads a value by the name that tables show.
func parseEnum[E interface {
	~int32
	protoreflect.Enum
}](flag, s string) (E, error) {
	var zero E
	values := zero.Descriptor().Values()
	for i := range values.Len() {
		if v := values.Get(i); v.Number() != 0 && enumName(v) == s {
			return E(v.Number()), nil
		}
	}
	return zero, usagef("%s: %q is none of %s", flag, s, strings.Join(enumNames(zero), ", "))
}

func enumNames(e protoreflect.Enum) []string {
	var names []string
	values := e.Descriptor().Values()
	for i := range values.Len() {
		if v := values.Get(i); v.Number() != 0 {
			names = append(names, enumName(v))
		}
	}
	return names
}

// parseOutcomes reads outcomes by name. A name that both parts have means both, unless the part is before
// it, as in proxy/paced.
func parseOutcomes(flag string, names []string) ([]pncv1.Outcome, error) {
	var out []pncv1.Outcome
	for _, s := range names {
		found := false
		for _, part := range []evidence.Part{evidence.PartCongestionNode, evidence.PartProxy} {
			for _, o := range evidence.Outcomes(part) {
				if n := evidence.Name(o); s == n || s == part.String()+"/"+n {
					out, found = append(out, o), true
				}
			}
		}
		if !found {
			return nil, usagef("%s: %q is no outcome: want one of %s", flag, s, strings.Join(outcomeNames(), ", "))
		}
	}
	return out, nil
}

// outcomeNames lists the names that parseOutcomes takes without a part, sorted.
func outcomeNames() []string {
	var names []string
	for _, part := range []evidence.Part{evidence.PartCongestionNode, evidence.PartProxy} {
		for _, o := range evidence.Outcomes(part) {
			names = append(names, evidence.Name(o))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
