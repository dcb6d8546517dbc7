package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	api "github.com/osrg/gobgp/v3/api"
)

// A peer with a prefix list has an export policy of its own, of a statement for each rule, and is not
// among those that get every announcement. A rule has a prefix set of its own: of several prefixes in
// one set, GoBGP asks the longest only.

func exportName(peer netip.Addr) string { return policyExport + "-" + peer.String() }

// allowExport lets announcements go to a peer, which has the address inside, as its configuration has it.
func (e *GoBGP) allowExport(ctx context.Context, p Peer, at netip.Addr) error {
	if !p.Export {
		return nil
	}
	if len(p.ExportPrefixes) == 0 {
		return e.setExport(ctx, at, true)
	}
	name := exportName(p.Address)
	neighbor := exportSet(at)
	neighbor.Name = name
	if err := e.srv.AddDefinedSet(ctx, &api.AddDefinedSetRequest{DefinedSet: neighbor}); err != nil {
		return err
	}
	policy := &api.Policy{Name: name}
	for i, r := range p.ExportPrefixes {
		set := r.set(name, i)
		if err := e.srv.AddDefinedSet(ctx, &api.AddDefinedSetRequest{DefinedSet: set}); err != nil {
			return err
		}
		action := api.RouteAction_ACCEPT
		if r.Deny {
			action = api.RouteAction_REJECT
		}
		policy.Statements = append(policy.Statements, &api.Statement{
			Name: set.Name,
			Conditions: &api.Conditions{
				RouteType:   api.Conditions_ROUTE_TYPE_LOCAL,
				NeighborSet: &api.MatchSet{Type: api.MatchSet_ANY, Name: name},
				PrefixSet:   &api.MatchSet{Type: api.MatchSet_ANY, Name: set.Name},
			},
			Actions: &api.Actions{RouteAction: action},
		})
	}
	if err := e.srv.AddPolicy(ctx, &api.AddPolicyRequest{Policy: policy}); err != nil {
		return err
	}
	return e.srv.AddPolicyAssignment(ctx, &api.AddPolicyAssignmentRequest{Assignment: exportAssignment(name)})
}

// denyExport undoes allowExport, also one that got half way.
func (e *GoBGP) denyExport(ctx context.Context, p Peer, at netip.Addr) error {
	err := e.setExport(ctx, at, false)
	if !p.Export || len(p.ExportPrefixes) == 0 {
		return err
	}
	name := exportName(p.Address)
	neighbor := exportSet(at)
	neighbor.Name = name
	errs := []error{
		err,
		e.srv.DeletePolicyAssignment(ctx, &api.DeletePolicyAssignmentRequest{Assignment: exportAssignment(name)}),
		e.srv.DeletePolicy(ctx, &api.DeletePolicyRequest{Policy: &api.Policy{Name: name}, All: true}),
		e.srv.DeleteDefinedSet(ctx, &api.DeleteDefinedSetRequest{DefinedSet: neighbor, All: true}),
	}
	for i, r := range p.ExportPrefixes {
		errs = append(errs, e.srv.DeleteDefinedSet(ctx, &api.DeleteDefinedSetRequest{DefinedSet: r.set(name, i), All: true}))
	}
	return errors.Join(errs...)
}

func exportAssignment(name string) *api.PolicyAssignment {
	return &api.PolicyAssignment{
		Name: policyGlobal, Direction: api.PolicyDirection_EXPORT, Policies: []*api.Policy{{Name: name}},
		DefaultAction: api.RouteAction_REJECT,
	}
}

func (r PrefixRule) set(policy string, i int) *api.DefinedSet {
	from, to := r.lengths()
	return &api.DefinedSet{
		DefinedType: api.DefinedType_PREFIX, Name: fmt.Sprintf("%s-%d", policy, i),
		Prefixes: []*api.Prefix{{IpPrefix: r.Prefix.String(), MaskLengthMin: uint32(from), MaskLengthMax: uint32(to)}},
	}
}
