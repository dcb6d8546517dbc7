package engine

import (
	"bytes"
	"fmt"
	"net/netip"

	api "github.com/osrg/gobgp/v3/api"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
)

// pathReader reads paths of GoBGP's. GoBGP writes the attributes of an UPDATE anew for each of its prefixes, so
// those of the last path are kept and taken again while the octets are the same: reading them costs more than
// comparing. Paths that were read so share what attributes point to, which nobody may change. The zero value is
// ready; it is for one goroutine.
type pathReader struct {
	pattrs     []*anypb.Any
	attributes Path // only what attributes say
	sourceID   string
	peerID     netip.Addr
}

// read reads a path. With an error and a prefix, the path is there and nothing is known about its next hop: it
// counts as a route without PNC.
func (r *pathReader) read(from *api.Path) (Path, error) {
	prefix, rd, err := readNLRI(from.GetNlri())
	if err != nil {
		return Path{}, fmt.Errorf("NLRI: %w", err)
	}
	p := Path{LocalPref: DefaultLocalPref}
	if !from.GetIsWithdraw() {
		p, err = r.readAttributes(from.GetPattrs())
		if id := from.GetSourceId(); id != r.sourceID {
			r.sourceID = id
			r.peerID, _ = netip.ParseAddr(id)
		}
		p.PeerID = r.peerID
	}
	p.Prefix, p.RD, p.PathID = prefix, rd, from.GetIdentifier()
	p.Withdrawn, p.Stale, p.PeerAS = from.GetIsWithdraw(), from.GetStale(), from.GetSourceAsn()
	if err != nil {
		err = fmt.Errorf("%s: %w", prefix, err)
	}
	return p, err
}

// readAttributes gives a path of which nothing is known but its attributes. With an error they are read up to there.
func (r *pathReader) readAttributes(pattrs []*anypb.Any) (Path, error) {
	if len(pattrs) > 0 && r.same(pattrs) {
		return r.attributes, nil
	}
	r.pattrs = nil
	p := Path{LocalPref: DefaultLocalPref}
	if len(pattrs) == 0 {
		return p, errNoAttributes
	}
	for _, a := range pattrs {
		if err := p.read(a); err != nil {
			return p, err
		}
	}
	r.pattrs, r.attributes = pattrs, p
	return p, nil
}

func (r *pathReader) same(pattrs []*anypb.Any) bool {
	if len(pattrs) != len(r.pattrs) {
		return false
	}
	for i, a := range pattrs {
		if b := r.pattrs[i]; a != b && (a.GetTypeUrl() != b.GetTypeUrl() || !bytes.Equal(a.GetValue(), b.GetValue())) {
			return false
		}
	}
	return true
}

// ipPrefixURL is how GoBGP marks the NLRI of unicast families.
var ipPrefixURL = "type.googleapis.com/" + string((*api.IPAddressPrefix)(nil).ProtoReflect().Descriptor().FullName())

// readIPPrefix reads an IPAddressPrefix without making one: each path has another. It reports false for what it
// isn't sure of.
func readIPPrefix(b []byte) (p netip.Prefix, ok bool) {
	const length, address = 1, 2 // field numbers, in the order in which they are written
	bits := uint64(0)
	if num, typ, n := protowire.ConsumeTag(b); n > 0 && num == length && typ == protowire.VarintType {
		b = b[n:]
		if bits, n = protowire.ConsumeVarint(b); n < 0 {
			return p, false
		}
		b = b[n:]
	}
	num, typ, n := protowire.ConsumeTag(b)
	if n < 0 || num != address || typ != protowire.BytesType {
		return p, false
	}
	text, m := protowire.ConsumeBytes(b[n:])
	if m < 0 || n+m != len(b) || bits > 128 {
		return p, false
	}
	p, err := toPrefix(string(text), uint32(bits))
	return p, err == nil
}
