package engine

import (
	"context"
	"net/netip"
	"time"

	api "github.com/osrg/gobgp/v3/api"
	"google.golang.org/protobuf/types/known/anypb"
)

// Communities about long-lived graceful restart (RFC 9494 section 3.3 and 3.4).
var (
	LLGRStale = Community{Global: 0xFFFF, Local: 6} // the path is kept beyond the restart time, here or by a speaker before
	NoLLGR    = Community{Global: 0xFFFF, Local: 7} // the path must not be kept that long
)

// Restart is what a peer's OPEN says about restarts.
type Restart struct {
	Offered      bool          // the graceful restart capability (RFC 4724) is there, with families or without
	Restarted    bool          // the R bit: the peer has restarted
	Notification bool          // the N bit: a notification doesn't end it (RFC 8538)
	Time         time.Duration // how long the peer thinks that it takes to be back
	Families     map[Family]FamilyRestart
}

// FamilyRestart is what it says about the paths of a family.
type FamilyRestart struct {
	Graceful  bool // they may be kept through a restart (RFC 4724)
	Preserved bool // the F bit: they still hold after the restart that was

	LongLived          bool // they may be kept beyond the restart time (RFC 9494)
	LongLivedPreserved bool // the F bit of that capability
	LongLivedTime      time.Duration
}

// restartOf reads what the peer's last OPEN said about restarts. GoBGP's events don't tell.
func (e *GoBGP) restartOf(addr netip.Addr) (r Restart) {
	e.mu.Lock()
	over := !e.started || e.stopped
	e.mu.Unlock()
	if over {
		return r
	}
	at, err := e.insideOf(addr)
	if err != nil {
		return r // it was removed meanwhile
	}
	err = e.srv.ListPeer(context.Background(), &api.ListPeerRequest{Address: at.String()}, func(p *api.Peer) {
		r = readRestart(p.GetState().GetRemoteCap())
	})
	if err != nil {
		e.cfg.Log.WithError(err).WithField("neighbor", addr.String()).Error("bgp engine: what the neighbour offers for a restart isn't known")
	}
	return r
}

// Flags of the capabilities: RFC 4724 section 3, RFC 8538 section 2, RFC 9494 section 3.1.
const (
	flagRestarted    = 0x08
	flagNotification = 0x04
	flagForwarding   = 0x80
)

// readRestart reads the capabilities of a peer's OPEN. Of several of a kind the last counts, as for GoBGP.
// Without graceful restart, its long-lived kind counts for nothing (RFC 9494 section 3.1).
func readRestart(caps []*anypb.Any) Restart {
	var r Restart
	var graceful *api.GracefulRestartCapability
	var long *api.LongLivedGracefulRestartCapability
	for _, c := range caps {
		switch {
		case c.MessageIs(graceful):
			if m := new(api.GracefulRestartCapability); c.UnmarshalTo(m) == nil {
				graceful = m
			}
		case c.MessageIs(long):
			if m := new(api.LongLivedGracefulRestartCapability); c.UnmarshalTo(m) == nil {
				long = m
			}
		}
	}
	if graceful == nil {
		return r
	}
	r.Offered = true
	r.Restarted = graceful.GetFlags()&flagRestarted != 0
	r.Notification = graceful.GetFlags()&flagNotification != 0
	r.Time = time.Duration(graceful.GetTime()) * time.Second
	r.Families = map[Family]FamilyRestart{}
	for _, t := range graceful.GetTuples() {
		if f := fromAPIFamily(t.GetFamily()); f != 0 {
			r.Families[f] = FamilyRestart{Graceful: true, Preserved: t.GetFlags()&flagForwarding != 0}
		}
	}
	for _, t := range long.GetTuples() {
		if f := fromAPIFamily(t.GetFamily()); f != 0 {
			fr := r.Families[f]
			fr.LongLived, fr.LongLivedPreserved = true, t.GetFlags()&flagForwarding != 0
			fr.LongLivedTime = time.Duration(t.GetTime()) * time.Second
			r.Families[f] = fr
		}
	}
	return r
}
