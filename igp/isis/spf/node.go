// Package spf builds the graphs of an IS-IS level from LSPs: which systems are reachable, and at which cost
// (ISO/IEC 10589:2002 annex C.2, RFC 1195 annex C). The algorithm is that of igp/spf.
package spf

import (
	"errors"

	"pncd/igp/isis/packet"
	"pncd/igp/spf"
)

// A graph of IS-IS is one topology of one level; its nodes are systems and pseudonodes.
type (
	Graph = spf.Graph[packet.NodeID]
	Node  = spf.Node[packet.NodeID]
	Link  = spf.Link[packet.NodeID]
)

// Unreachable is the cost of what can't be reached.
const Unreachable = spf.Unreachable

// New makes a graph as the root sees it.
func New(root packet.NodeID) *Graph { return spf.New(root) }

// FromLSPs gives what a node says of itself in one topology, from its LSPs in the order of their fragments;
// nil when it says nothing that counts: without the first fragment the others don't (ISO 10589 clause 7.2.5).
// Overload is the LSDBOL bit, or that of the topology. TLVs that can't be read are left out, and reported together with what could be read.
func FromLSPs(lsps []packet.LSP, mt packet.MTID) (*Node, error) {
	if len(lsps) == 0 || lsps[0].ID.Fragment() != 0 {
		return nil, nil
	}
	n := &Node{Overload: mt == packet.MTStandard && lsps[0].Flags&packet.LSPOverload != 0}
	pseudonode := lsps[0].ID.Node().Pseudonode() != 0
	part := mt == packet.MTStandard || pseudonode // a pseudonode's LSP is of all topologies (RFC 5120 section 4)
	if all, err := lsps[0].TLVs.Topologies(); err == nil {
		for _, t := range all {
			if t.ID == mt {
				part, n.Overload = true, t.Overload || n.Overload
			}
		}
	}
	if !part {
		return nil, nil
	}
	var errs []error
	for _, p := range lsps {
		for _, t := range p.TLVs {
			value, err := t.Value, error(nil)
			switch {
			case t.Type == packet.TLVExtendedISReach && (mt == packet.MTStandard || pseudonode):
			case t.Type == packet.TLVMTISReach:
				var id packet.MTID
				if id, _, value, err = packet.ParseMT(value); err == nil && (id != mt || mt == packet.MTStandard) {
					continue
				}
			default:
				continue
			}
			var reach []packet.ISReach
			if err == nil {
				reach, err = packet.ParseISReach(value)
			}
			if err != nil {
				errs = append(errs, err)
			}
			for _, r := range reach {
				if r.Metric < packet.MaxLinkMetric { // RFC 5305 section 3: such a link is no part of SPF
					n.Links = append(n.Links, Link{To: r.Neighbor, Cost: r.Metric})
				}
			}
		}
	}
	return n, errors.Join(errs...)
}
