package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	api "github.com/osrg/gobgp/v3/api"
)

// Type codes of the attributes that are handled here (IANA, BGP Path Attributes).
const (
	attrOrigin    = 1
	attrNextHop   = 3
	attrMPReach   = 14
	attrMPUnreach = 15
	attrNHC       = 39
)

// Announce replaces or adds announcements.
func (e *GoBGP) Announce(ctx context.Context, as []Announcement) error {
	var errs []error
	for _, a := range as {
		if err := e.announce(ctx, a); err != nil {
			errs = append(errs, fmt.Errorf("bgp engine: announce %s: %w", a.Prefix, err))
		}
	}
	return errors.Join(errs...)
}

func (e *GoBGP) announce(ctx context.Context, a Announcement) error {
	path, err := e.toAPIPath(a)
	if err != nil {
		return err
	}
	e.mu.Lock()
	old, had := e.announced[a.key()]
	stopped := e.stopped
	e.mu.Unlock()
	if stopped {
		return ErrStopped
	}
	if _, err := e.srv.AddPath(ctx, &api.AddPathRequest{TableType: api.TableType_GLOBAL, Path: path}); err != nil {
		return err
	}
	e.mu.Lock()
	e.announced[a.key()] = a
	e.mu.Unlock()
	if had && old.NotTo != a.NotTo {
		// For GoBGP it was another source's path. The new one is there already, so nobody loses
		// the route in between.
		return e.deletePath(ctx, old)
	}
	return nil
}

// Withdraw takes announcements back. Those without VPN have no RD.
func (e *GoBGP) Withdraw(ctx context.Context, prefixes []VPNPrefix) error {
	e.mu.Lock()
	stopped := e.stopped
	e.mu.Unlock()
	if stopped {
		return ErrStopped
	}
	return e.withdraw(ctx, prefixes)
}

func (e *GoBGP) withdraw(ctx context.Context, prefixes []VPNPrefix) error {
	var errs []error
	for _, p := range prefixes {
		e.mu.Lock()
		a, ok := e.announced[p]
		delete(e.announced, p)
		e.mu.Unlock()
		if !ok {
			continue
		}
		if err := e.deletePath(ctx, a); err != nil {
			errs = append(errs, fmt.Errorf("bgp engine: withdraw %s: %w", p, err))
		}
	}
	return errors.Join(errs...)
}

func (e *GoBGP) deletePath(ctx context.Context, a Announcement) error {
	path, err := e.toAPIPath(a)
	if err != nil {
		return err
	}
	path.IsWithdraw = true
	return e.srv.DeletePath(ctx, &api.DeletePathRequest{TableType: api.TableType_GLOBAL, Path: path})
}

// toAPIPath hands the attributes over as they are on the wire, so that unknown ones, and the flags of
// known ones, stay as they are.
func (e *GoBGP) toAPIPath(a Announcement) (*api.Path, error) {
	switch nh := a.NextHop; {
	case !a.Prefix.IsValid():
		return nil, fmt.Errorf("prefix %s is invalid", a.Prefix)
	case !nh.IsValid(), nh.IsUnspecified():
		return nil, fmt.Errorf("next hop must be explicit: GoBGP would put this node's address in the place of %q", nh)
	}
	family := a.Family()
	path := &api.Path{Family: family.api(), NlriBinary: nlri(a.Prefix)}
	if a.VPN != nil {
		path.NlriBinary = vpnNLRI(a.VPN, a.Prefix)
	}
	hasOrigin := false
	for _, attr := range a.Attributes {
		switch attr.Type() {
		case attrNextHop, attrMPReach, attrMPUnreach:
			continue
		case attrOrigin:
			hasOrigin = true
		}
		path.PattrsBinary = append(path.PattrsBinary, attr)
	}
	if !hasOrigin {
		return nil, errors.New("ORIGIN is missing")
	}
	if family == IPv4Unicast && a.NextHop.Is4() {
		path.PattrsBinary = append(path.PattrsBinary, append([]byte{0x40, attrNextHop, 4}, a.NextHop.AsSlice()...))
	} else {
		path.PattrsBinary = append(path.PattrsBinary, mpReach(family, a.NextHop, path.NlriBinary))
	}
	if a.NotTo.IsValid() {
		// GoBGP doesn't send a path to the speaker whose BGP Identifier is the source's.
		path.SourceAsn, path.SourceId = e.cfg.AS, a.NotTo.String()
	}
	return path, nil
}

// nlri writes a prefix as RFC 4271 section 4.3 has it.
func nlri(p netip.Prefix) []byte {
	p = p.Masked()
	return append([]byte{uint8(p.Bits())}, p.Addr().AsSlice()[:(p.Bits()+7)/8]...)
}

// mpReach writes MP_REACH_NLRI (RFC 4760 section 3; for IPv4 prefixes with an IPv6 next hop RFC 8950).
func mpReach(f Family, nextHop netip.Addr, nlri []byte) []byte {
	var nh []byte
	if f.VPN() {
		nh = make([]byte, rdLen) // RFC 4364 section 4.3.2: an RD of zero in front
	}
	if f == IPv4VPN && nextHop.Is4() {
		nh = append(nh, nextHop.AsSlice()...)
	} else {
		a := nextHop.As16() // an IPv4 next hop of IPv6 prefixes is mapped (RFC 4659 section 3.2.1.2)
		nh = append(nh, a[:]...)
	}
	v := binary.BigEndian.AppendUint16(nil, uint16(f.api().Afi))
	v = append(v, uint8(f.api().Safi), uint8(len(nh)))
	v = append(v, nh...)
	v = append(v, 0)
	v = append(v, nlri...)
	return append([]byte{0x80, attrMPReach, uint8(len(v))}, v...)
}

// Paths reads what a peer sent for a prefix from its adj-RIB-in.
func (e *GoBGP) Paths(ctx context.Context, peer netip.Addr, prefix VPNPrefix) ([]RawPath, error) {
	at, err := e.insideOf(peer)
	if err != nil {
		return nil, err
	}
	look := &api.TableLookupPrefix{Prefix: prefix.Prefix.String(), Type: api.TableLookupPrefix_EXACT}
	family := FamilyOf(prefix.Prefix.Addr())
	if prefix.VPN {
		// GoBGP never finds an exact VPN prefix: it compares a length with the label in it to one without.
		family, look.Type = VPNFamilyOf(prefix.Prefix.Addr()), api.TableLookupPrefix_LONGER
		if look.Rd, err = prefix.RD.gobgp(); err != nil {
			return nil, err
		}
	}
	var out []RawPath
	var errs []error
	err = e.srv.ListPath(ctx, &api.ListPathRequest{
		TableType: api.TableType_ADJ_IN, Name: at.String(), Family: family.api(),
		Prefixes:         []*api.TableLookupPrefix{look},
		EnableOnlyBinary: true,
	}, func(d *api.Destination) {
		for _, p := range d.GetPaths() {
			raw, of, err := toRaw(family, p)
			if of != prefix.Prefix {
				continue // a longer one
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			out = append(out, raw)
		}
	})
	slices.SortFunc(out, func(a, b RawPath) int { return cmp.Compare(a.PathID, b.PathID) })
	return out, errors.Join(append(errs, err)...)
}

func toRaw(f Family, p *api.Path) (raw RawPath, prefix netip.Prefix, err error) {
	raw = RawPath{PathID: p.GetIdentifier(), Stale: p.GetStale()}
	if raw.Label, prefix, err = readBinaryNLRI(f, p.GetNlriBinary()); err != nil {
		return raw, prefix, err
	}
	for _, b := range p.GetPattrsBinary() {
		a := RawAttribute(b)
		v, err := a.Value()
		if err != nil {
			return raw, prefix, err
		}
		switch a.Type() {
		case attrNextHop:
			raw.NextHop, _ = netip.AddrFromSlice(v)
		case attrMPReach:
			if len(v) < 4 || len(v) < 4+int(v[3]) {
				return raw, prefix, fmt.Errorf("MP_REACH_NLRI of %d octets is cut short", len(v))
			}
			raw.NextHop = nextHopOf(f, v[4:4+int(v[3])])
		default:
			raw.Attributes = append(raw.Attributes, a)
		}
	}
	if !raw.NextHop.IsValid() {
		return raw, prefix, errors.New("path without next hop")
	}
	return raw, prefix, nil
}

// nextHopOf reads the next hop of MP_REACH_NLRI: of two, the global one, which is first (RFC 2545
// section 3); in a VPN family behind an RD (RFC 4364 section 4.3.2, RFC 4659 section 3.2.1).
func nextHopOf(f Family, b []byte) netip.Addr {
	if f.VPN() {
		b = b[min(rdLen, len(b)):]
	}
	a, _ := netip.AddrFromSlice(b[:min(len(b), 16)])
	return a
}

// Value gives what follows the length. An error says that the attribute's length is not its own.
func (a RawAttribute) Value() ([]byte, error) {
	off, n := 3, 0
	switch {
	case len(a) < 3, a[0]&0x10 != 0 && len(a) < 4:
		return nil, fmt.Errorf("path attribute of %d octets is cut short", len(a))
	case a[0]&0x10 != 0:
		off, n = 4, int(binary.BigEndian.Uint16(a[2:]))
	default:
		n = int(a[2])
	}
	if len(a)-off != n {
		return nil, fmt.Errorf("path attribute %d: length says %d, %d octets follow", a.Type(), n, len(a)-off)
	}
	return a[off:], nil
}
