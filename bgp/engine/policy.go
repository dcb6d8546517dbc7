package engine

import (
	"context"
	"net/netip"

	api "github.com/osrg/gobgp/v3/api"
)

// Names of GoBGP's policy objects.
const (
	policyGlobal = "global"
	policyImport = "pncd-import"
	policyExport = "pncd-export"
	exportPeers  = "pncd-export-peers"
)

// nobody is an address that no peer has. GoBGP takes an empty neighbour set as 'every neighbour', so
// the set of those that get announcements must never be empty.
var nobody = netip.MustParseAddr("0.0.0.0")

// startPolicies makes the node a leaf, twice: nothing that a peer sent gets into the routing table,
// and nothing but local paths leaves it, to chosen peers only. Everything else is rejected.
func (e *GoBGP) startPolicies(ctx context.Context) error {
	for _, s := range []*api.DefinedSet{exportSet(nobody), extendedSet(nobody)} {
		if err := e.srv.AddDefinedSet(ctx, &api.AddDefinedSetRequest{DefinedSet: s}); err != nil {
			return err
		}
	}
	local := func(name string, neighbors *api.MatchSet) *api.Policy {
		return &api.Policy{Name: name, Statements: []*api.Statement{{
			Name:       name,
			Conditions: &api.Conditions{RouteType: api.Conditions_ROUTE_TYPE_LOCAL, NeighborSet: neighbors},
			Actions:    &api.Actions{RouteAction: api.RouteAction_ACCEPT},
		}}}
	}
	export := local(policyExport, &api.MatchSet{Type: api.MatchSet_ANY, Name: exportPeers})
	export.Statements = append([]*api.Statement{extendedStatement()}, export.Statements...)
	for _, p := range []struct {
		dir    api.PolicyDirection
		policy *api.Policy
	}{
		{api.PolicyDirection_IMPORT, local(policyImport, nil)},
		{api.PolicyDirection_EXPORT, export},
	} {
		if err := e.srv.AddPolicy(ctx, &api.AddPolicyRequest{Policy: p.policy}); err != nil {
			return err
		}
		err := e.srv.SetPolicyAssignment(ctx, &api.SetPolicyAssignmentRequest{Assignment: &api.PolicyAssignment{
			Name: policyGlobal, Direction: p.dir, Policies: []*api.Policy{{Name: p.policy.Name}},
			DefaultAction: api.RouteAction_REJECT,
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// setExport adds a peer to those that get announcements, or takes it out. It changes the set in
// place: replacing it would leave the policy with the old one.
func (e *GoBGP) setExport(ctx context.Context, peer netip.Addr, on bool) error {
	if on {
		return e.srv.AddDefinedSet(ctx, &api.AddDefinedSetRequest{DefinedSet: exportSet(peer)})
	}
	return e.srv.DeleteDefinedSet(ctx, &api.DeleteDefinedSetRequest{DefinedSet: exportSet(peer)})
}

func exportSet(a netip.Addr) *api.DefinedSet {
	return &api.DefinedSet{
		DefinedType: api.DefinedType_NEIGHBOR, Name: exportPeers,
		List: []string{netip.PrefixFrom(a, a.BitLen()).String()},
	}
}
