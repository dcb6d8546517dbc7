package engine

import (
	"errors"
	"fmt"
	"net/netip"
)

// PrefixRule is one line of a prefix list, as in FRR: it matches a prefix within Prefix whose length is
// from GE to LE. Without both, only Prefix itself; without LE, up to the longest; without GE, from
// Prefix's own length.
type PrefixRule struct {
	Prefix netip.Prefix
	GE, LE int // 0: not given
	Deny   bool
}

// Check says what is wrong with the rule.
func (r PrefixRule) Check() error {
	if !r.Prefix.IsValid() || r.Prefix != r.Prefix.Masked() {
		return fmt.Errorf("%q must be a prefix without host bits", r.Prefix)
	}
	from, to := r.lengths()
	if r.GE < 0 || r.LE < 0 || from < r.Prefix.Bits() || from > to || to > r.Prefix.Addr().BitLen() {
		return fmt.Errorf("%s ge %d le %d: lengths must be %d <= ge <= le <= %d", r.Prefix, r.GE, r.LE, r.Prefix.Bits(), r.Prefix.Addr().BitLen())
	}
	return nil
}

func (r PrefixRule) lengths() (from, to int) {
	from, to = r.GE, r.LE
	switch {
	case from == 0 && to == 0:
		return r.Prefix.Bits(), r.Prefix.Bits()
	case from == 0:
		from = r.Prefix.Bits()
	case to == 0:
		to = r.Prefix.Addr().BitLen()
	}
	return from, to
}

func (r PrefixRule) matches(p netip.Prefix) bool {
	from, to := r.lengths()
	return p.Bits() >= from && p.Bits() <= to && r.Prefix.Contains(p.Addr())
}

// PrefixList is a list of rules of which the first that matches decides. What none matches is denied;
// an empty list permits everything.
type PrefixList []PrefixRule

// Permits reports whether the list lets a prefix pass.
func (l PrefixList) Permits(p netip.Prefix) bool {
	for _, r := range l {
		if r.matches(p) {
			return !r.Deny
		}
	}
	return len(l) == 0
}

// Check says everything that is wrong with the list.
func (l PrefixList) Check() error {
	var errs []error
	for _, r := range l {
		errs = append(errs, r.Check())
	}
	return errors.Join(errs...)
}
