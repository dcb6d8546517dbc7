package relay

import (
	"errors"
	"net"
	"net/netip"
)

// Range holds the addresses of neighbours that come by themselves. Of several that hold an address the longest
// counts, and a neighbour that is known counts before all of them.
type Range struct {
	Prefix   netip.Prefix // of more than one address
	Password string       // TCP MD5 key, at most 80 octets; empty: none
	TTLMin   uint8        // of what is taken; 0: any
}

// mostGuests bounds connections that wait for the answer to Knock. It is given at once, so few do.
const mostGuests = 256

// SetRanges puts keys and minimum TTLs of ranges into force, in place of those of the earlier ones. Neighbours
// stay as they are. Errors wrap ErrMD5 or ErrTTLMin; then the earlier ranges stay.
func (r *Relay) SetRanges(list []Range) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return net.ErrClosed
	}
	was := r.ranges
	err := r.swapRanges(was, list)
	if err != nil {
		err = errors.Join(err, r.swapRanges(list, was))
	}
	for a := range r.guests {
		// One whose range is another now may have come without the key.
		if rangeOf(r.ranges, a) != rangeOf(was, a) {
			r.dismissGuest(a)
		}
	}
	return err
}

// swapRanges needs mu, as everything below.
func (r *Relay) swapRanges(from, to []Range) error {
	r.ranges = to
	keys := map[netip.Prefix]string{}
	for _, x := range to {
		keys[x.Prefix] = x.Password
	}
	var errs []error
	for _, x := range from {
		if x.Password != "" && keys[x.Prefix] == "" {
			errs = append(errs, r.lis.setKeyOf(x.Prefix, ""))
		}
	}
	for _, x := range to {
		if x.Password != "" {
			errs = append(errs, r.lis.setKeyOf(x.Prefix, x.Password))
		}
	}
	return errors.Join(append(errs, r.lis.setMinTTL(r.minTTLs()))...)
}

// rangeOf is the longest range that holds an address; the zero value without.
func rangeOf(list []Range, a netip.Addr) (best Range) {
	for _, x := range list {
		if x.Prefix.Contains(a) && (best == Range{} || x.Prefix.Bits() > best.Prefix.Bits()) {
			best = x
		}
	}
	return best
}

// guarded reports whether a range with a minimum TTL holds an address.
func (r *Relay) guarded(a netip.Addr) bool {
	for _, x := range r.ranges {
		if x.TTLMin != 0 && x.Prefix.Contains(a) {
			return true
		}
	}
	return false
}

// receive keeps the connection of somebody of a range until Add or Refuse, and reports whether it does. The last
// of several connections of one counts. Nobody is his own neighbour.
func (r *Relay) receive(c *net.TCPConn, from netip.Addr) bool {
	old := r.guests[from]
	if r.closed || rangeOf(r.ranges, from) == (Range{}) || r.cfg.Knock == nil || old == nil && len(r.guests) >= mostGuests ||
		from == addrPort(c.LocalAddr()).Addr() {
		return false
	}
	if old != nil {
		old.Close()
		r.guests[from] = c
		return true
	}
	if !r.cfg.Knock(from) {
		return false
	}
	r.guests[from] = c
	return true
}

// Refuse closes the connection of somebody who has knocked.
func (r *Relay) Refuse(a netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dismissGuest(a)
}

func (r *Relay) dismissGuest(a netip.Addr) {
	if c := r.guests[a]; c != nil {
		c.Close()
		delete(r.guests, a)
	}
}
