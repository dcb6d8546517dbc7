package engine

import (
	"context"
	"net/netip"
	"path"

	api "github.com/osrg/gobgp/v3/api"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// apiService is the full name of GoBGP's service.
const apiService = "/apipb.GobgpApi"

// apiReads are the calls of GoBGP's API that change nothing. What is not here is refused: peers, paths and
// policies are pncd's, which would not know of a change.
var apiReads = map[string]bool{
	"GetBgp": true, "GetTable": true, "ListPath": true, "ListPeer": true, "WatchEvent": true,
	"ListPeerGroup": true, "ListDynamicNeighbor": true, "ListVrf": true,
	"ListPolicy": true, "ListStatement": true, "ListDefinedSet": true, "ListPolicyAssignment": true,
	"ListRpki": true, "ListRpkiTable": true, "ListBmp": true,
}

// apiGuard stands in front of GoBGP's API: it lets through what reads, and puts the neighbours' own
// addresses in the place of those of 127/8 by which GoBGP knows them.
type apiGuard struct {
	inside   *inside
	panicked func() // counts
	log      logrus.FieldLogger
}

func (g apiGuard) check(method string) error {
	if path.Dir(method) == apiService && apiReads[path.Base(method)] {
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "%s: bgp.gobgp_socket only reads; change pncd's configuration and use 'pncctl reload'", path.Base(method))
}

// rescue makes a panic of a handler the call's error.
func (g apiGuard) rescue(method string, err *error) {
	if r := recover(); r != nil {
		g.panicked()
		g.log.WithField("method", method).Errorf("bgp engine: GoBGP's API: %v", r)
		*err = status.Errorf(codes.Internal, "%s failed inside of GoBGP; pncd's log has more", path.Base(method))
	}
}

func (g apiGuard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (resp any, err error) {
	if err := g.check(info.FullMethod); err != nil {
		return nil, err
	}
	defer g.rescue(info.FullMethod, &err)
	if err := g.inwards(req); err != nil {
		return nil, err
	}
	if resp, err = h(ctx, req); err != nil {
		return nil, err
	}
	return g.outwards(resp), nil
}

func (g apiGuard) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
	if err := g.check(info.FullMethod); err != nil {
		return err
	}
	defer g.rescue(info.FullMethod, &err)
	return h(srv, guardedStream{s, g})
}

// guardedStream is a stream whose messages are translated.
type guardedStream struct {
	grpc.ServerStream
	guard apiGuard
}

func (s guardedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.guard.inwards(m)
}

func (s guardedStream) SendMsg(m any) error { return s.ServerStream.SendMsg(s.guard.outwards(m)) }

// outwards gives a copy of an answer with the neighbours' own addresses, and without the keys of the
// connections over loopback.
func (g apiGuard) outwards(m any) any {
	resp, ok := m.(proto.Message)
	if !ok {
		return m
	}
	resp = proto.Clone(resp) // GoBGP may hand out the same message several times
	rewrite(resp.ProtoReflect(), func(field protoreflect.FieldDescriptor, text string) string {
		if field.Name() == "auth_password" {
			return ""
		}
		return g.inside.translate(text)
	})
	return resp
}

// inwards checks a request and puts the addresses by which GoBGP knows the neighbours into it.
func (g apiGuard) inwards(m any) error {
	if r, ok := m.(*api.ListPathRequest); ok {
		if err := checkLookups(r); err != nil {
			return err
		}
	}
	if req, ok := m.(proto.Message); ok {
		rewrite(req.ProtoReflect(), func(_ protoreflect.FieldDescriptor, text string) string { return g.inside.hide(text) })
	}
	return nil
}

// checkLookups checks what is looked up in a table: GoBGP reads it in the goroutine that everything else
// goes through, where nobody could catch a panic.
func checkLookups(r *api.ListPathRequest) error {
	for i, l := range r.Prefixes {
		p, err := netip.ParsePrefix(l.GetPrefix())
		a := p.Addr()
		if err != nil && l.GetType() == api.TableLookupPrefix_EXACT {
			a, err = netip.ParseAddr(l.GetPrefix()) // its longest match is looked up
		}
		is4 := r.GetFamily().GetAfi() == api.Family_AFI_IP
		if err != nil || a.Zone() != "" || a.Is4() != is4 {
			return status.Errorf(codes.InvalidArgument, "prefixes[%d].prefix: %q is not a prefix of the family", i, l.GetPrefix())
		}
		if _, err := ParseRD(l.GetRd()); err != nil && l.GetRd() != "" {
			return status.Errorf(codes.InvalidArgument, "prefixes[%d].rd: %v", i, err)
		}
	}
	return nil
}

// untouched are messages whose addresses are what was on the wire, or is looked for there, and never stand
// for a neighbour: attributes and prefixes (in Any), and the prefixes of a request.
var untouched = map[protoreflect.FullName]bool{
	"google.protobuf.Any":     true,
	"apipb.TableLookupPrefix": true,
}

// rewrite replaces each text of a message and those inside it.
func rewrite(m protoreflect.Message, change func(protoreflect.FieldDescriptor, string) string) {
	if untouched[m.Descriptor().FullName()] {
		return
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		text, nested := fd.Kind() == protoreflect.StringKind, fd.Message() != nil
		switch {
		case fd.IsMap():
			kind := fd.MapValue()
			v.Map().Range(func(k protoreflect.MapKey, v2 protoreflect.Value) bool {
				if kind.Kind() == protoreflect.StringKind {
					v.Map().Set(k, protoreflect.ValueOfString(change(fd, v2.String())))
				} else if kind.Message() != nil {
					rewrite(v2.Message(), change)
				}
				return true
			})
		case fd.IsList() && (text || nested):
			for i, l := 0, v.List(); i < l.Len(); i++ {
				if nested {
					rewrite(l.Get(i).Message(), change)
				} else {
					l.Set(i, protoreflect.ValueOfString(change(fd, l.Get(i).String())))
				}
			}
		case fd.IsList():
		case nested:
			rewrite(v.Message(), change)
		case text:
			if was := v.String(); was != "" {
				if now := change(fd, was); now != was {
					m.Set(fd, protoreflect.ValueOfString(now))
				}
			}
		}
		return true
	})
}
