package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	api "github.com/osrg/gobgp/v3/api"
	"google.golang.org/protobuf/types/known/anypb"
)

// attrExtendedCommunities is the type code of Extended Communities (RFC 4360).
const attrExtendedCommunities = 16

// readNLRI reads a prefix of GoBGP's, and for VPN families its RD.
func readNLRI(nlri *anypb.Any) (netip.Prefix, RD, error) {
	var rd RD
	if nlri.GetTypeUrl() == ipPrefixURL {
		if p, ok := readIPPrefix(nlri.GetValue()); ok {
			return p, rd, nil
		}
	}
	m, err := nlri.UnmarshalNew()
	if err != nil {
		return netip.Prefix{}, RD{}, err
	}
	switch n := m.(type) {
	case *api.IPAddressPrefix:
		p, err := toPrefix(n.GetPrefix(), n.GetPrefixLen())
		return p, rd, err
	case *api.LabeledVPNIPAddressPrefix:
		if rd, err = readRD(n.GetRd()); err != nil {
			return netip.Prefix{}, RD{}, err
		}
		p, err := toPrefix(n.GetPrefix(), n.GetPrefixLen())
		return p, rd, err
	}
	return netip.Prefix{}, RD{}, fmt.Errorf("%T is no prefix", m)
}

func toPrefix(addr string, bits uint32) (netip.Prefix, error) {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return netip.Prefix{}, err
	}
	p := netip.PrefixFrom(a, int(bits)).Masked()
	if !p.IsValid() || a.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("%s/%d is no prefix", addr, bits)
	}
	return p, nil
}

// gobgp writes the RD as GoBGP reads it.
func (r RD) gobgp() (string, error) {
	switch {
	case r[0] == 0 && r[1] == vpnFourOctetAS:
		return fmt.Sprintf("%d.%d:%d", binary.BigEndian.Uint16(r[2:]), binary.BigEndian.Uint16(r[4:]), binary.BigEndian.Uint16(r[6:])), nil
	case r[0] == 0 && r[1] <= vpnIPv4:
		return r.String(), nil
	}
	return "", fmt.Errorf("route distinguisher %s is of no known type", r)
}

// readBinaryNLRI reads a prefix as it is on the wire, without path identifier, and in a VPN family its
// label (RFC 8277 section 2.2). More than one label, for which nobody asked, is an error; the prefix is read all
// the same.
func readBinaryNLRI(f Family, b []byte) (label uint32, prefix netip.Prefix, err error) {
	a := netip.IPv4Unspecified()
	if f == IPv6Unicast || f == IPv6VPN {
		a = netip.IPv6Unspecified()
	}
	if len(b) == 0 {
		return 0, prefix, errors.New("NLRI without length")
	}
	bits, rest := int(b[0]), b[1:]
	if f.VPN() {
		n := 0
		for bottom := false; !bottom; n++ {
			if bits < 24+8*rdLen || len(rest) < 3+rdLen {
				return 0, prefix, fmt.Errorf("NLRI of %d bits is too short for its labels and a route distinguisher", b[0])
			}
			if n == 0 {
				label = uint32(rest[0])<<12 | uint32(rest[1])<<4 | uint32(rest[2])>>4
			}
			bottom = rest[2]&1 != 0
			bits, rest = bits-24, rest[3:]
		}
		if n > 1 {
			err = fmt.Errorf("a stack of %d labels", n)
		}
		bits, rest = bits-8*rdLen, rest[rdLen:]
	}
	if bits > a.BitLen() || len(rest) != (bits+7)/8 {
		return 0, netip.Prefix{}, fmt.Errorf("NLRI: prefix of %d bits in %d octets", bits, len(rest))
	}
	full := a.AsSlice()
	copy(full, rest)
	a, _ = netip.AddrFromSlice(full)
	return label, netip.PrefixFrom(a, bits).Masked(), err
}

func readRD(from *anypb.Any) (rd RD, err error) {
	m, err := from.UnmarshalNew()
	if err != nil {
		return rd, fmt.Errorf("route distinguisher: %w", err)
	}
	switch r := m.(type) {
	case *api.RouteDistinguisherTwoOctetASN:
		rd[1] = vpnTwoOctetAS
		binary.BigEndian.PutUint16(rd[2:], uint16(r.Admin))
		binary.BigEndian.PutUint32(rd[4:], r.Assigned)
	case *api.RouteDistinguisherIPAddress:
		a, err := netip.ParseAddr(r.Admin)
		if err != nil || !a.Is4() {
			return rd, fmt.Errorf("route distinguisher: administrator %q", r.Admin)
		}
		rd[1] = vpnIPv4
		copy(rd[2:], a.AsSlice())
		binary.BigEndian.PutUint16(rd[6:], uint16(r.Assigned))
	case *api.RouteDistinguisherFourOctetASN:
		rd[1] = vpnFourOctetAS
		binary.BigEndian.PutUint32(rd[2:], r.Admin)
		binary.BigEndian.PutUint16(rd[6:], uint16(r.Assigned))
	default:
		return rd, fmt.Errorf("route distinguisher: %T is of no known type", m)
	}
	return rd, nil
}

// readTargets picks the route targets out of extended communities. The non-transitive ones don't
// count (RFC 4360 section 4). Others that can't be read are nothing to us.
func readTargets(from *api.ExtendedCommunitiesAttribute) ([]RouteTarget, error) {
	var out []RouteTarget
	for _, c := range from.GetCommunities() {
		m, err := c.UnmarshalNew()
		if err != nil {
			return out, fmt.Errorf("extended communities: %w", err)
		}
		t := RouteTarget{1: subtypeTarget}
		switch c := m.(type) {
		case *api.TwoOctetAsSpecificExtended:
			if !c.IsTransitive || c.SubType != subtypeTarget {
				continue
			}
			t[0] = vpnTwoOctetAS
			binary.BigEndian.PutUint16(t[2:], uint16(c.Asn))
			binary.BigEndian.PutUint32(t[4:], c.LocalAdmin)
		case *api.IPv4AddressSpecificExtended:
			a, err := netip.ParseAddr(c.Address)
			if !c.IsTransitive || c.SubType != subtypeTarget || err != nil || !a.Is4() {
				continue
			}
			t[0] = vpnIPv4
			copy(t[2:], a.AsSlice())
			binary.BigEndian.PutUint16(t[6:], uint16(c.LocalAdmin))
		case *api.FourOctetAsSpecificExtended:
			if !c.IsTransitive || c.SubType != subtypeTarget {
				continue
			}
			t[0] = vpnFourOctetAS
			binary.BigEndian.PutUint32(t[2:], c.Asn)
			binary.BigEndian.PutUint16(t[6:], uint16(c.LocalAdmin))
		default:
			continue
		}
		out = append(out, t)
	}
	return out, nil
}

// replay is a Replay that is under way. What GoBGP reports meanwhile is newer than what is read, so it
// isn't replayed: the report itself says how the path is.
type replay struct {
	paths map[replayKey]struct{}
	peers map[netip.Addr]struct{} // whose session changed
}

type replayKey struct {
	peer netip.Addr
	path pathKey
}

// touch notes an event for the replays under way. It needs e.mu.
func (e *GoBGP) touch(ev *Event) {
	for r := range e.replays {
		if ev.Kind == EventPath {
			r.paths[replayKey{ev.Peer, keyOf(ev)}] = struct{}{}
		} else if ev.Kind == EventState {
			r.peers[ev.Peer] = struct{}{}
		}
	}
}

// Replay reads the adj-RIBs-in and reports them again.
func (e *GoBGP) Replay(ctx context.Context, families []Family) error {
	r := &replay{paths: map[replayKey]struct{}{}, peers: map[netip.Addr]struct{}{}}
	e.mu.Lock()
	e.replays[r] = struct{}{}
	var up []*peerState
	for _, p := range e.peers {
		if p.state == StateEstablished {
			up = append(up, p)
		}
	}
	e.mu.Unlock()

	var events []Event
	var errs []error
	var reader pathReader
	for _, p := range up {
		for _, f := range families {
			err := e.srv.ListPath(ctx, &api.ListPathRequest{
				TableType: api.TableType_ADJ_IN, Name: p.inside.String(), Family: f.api(),
			}, func(d *api.Destination) {
				for _, from := range d.GetPaths() {
					ev := Event{Kind: EventPath, Peer: p.cfg.Address, Family: f}
					var err error
					if ev.Path, err = reader.read(from); err != nil && !ev.Path.Prefix.IsValid() {
						continue // was counted when it came in
					}
					ev.Path.OwnAS = ev.Path.count(p.cfg.LocalAS)
					ev.Path.asPath = nil
					events = append(events, ev)
				}
			})
			if err != nil {
				errs = append(errs, fmt.Errorf("bgp engine: %s: paths of %s: %w", p.cfg.Address, f, err))
			}
		}
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.replays, r)
	for i := range events {
		ev := &events[i]
		_, path := r.paths[replayKey{ev.Peer, keyOf(ev)}]
		_, peer := r.peers[ev.Peer]
		if !path && !peer && e.peers[ev.Peer] != nil {
			e.queue.add(ev)
		}
	}
	return errors.Join(errs...)
}
