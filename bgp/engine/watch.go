package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"time"

	api "github.com/osrg/gobgp/v3/api"
	"google.golang.org/protobuf/types/known/anypb"
)

// watch takes what GoBGP reports. It runs in GoBGP's goroutine, in which a panic would end the
// process: it is recovered and counted.
func (e *GoBGP) watch(r *api.WatchEventResponse) {
	defer func() {
		if v := recover(); v != nil {
			e.callbackPanics.Add(1)
			e.cfg.Log.WithField("stack", string(debug.Stack())).Errorf("bgp engine: panic in a callback: %v", v)
		}
	}()
	e.watching.Store(true)
	defer e.watching.Store(false)
	if p := r.GetPeer().GetPeer(); p != nil {
		e.watchState(r.GetPeer().GetType(), p)
		e.watchNextHops(p)
		e.watchRestart(p)
		if State(p.GetState().GetSessionState()) == StateEstablished && e.relay != nil {
			e.relay.Begun(e.inside.real(p.GetState().GetNeighborAddress()))
		}
		return
	}
	paths := r.GetTable().GetPaths()
	e.watchPaths(paths)
	if len(paths) > 0 && e.relay != nil {
		e.relay.Handled(e.inside.real(paths[0].GetNeighborIp()))
	}
}

func (e *GoBGP) watchState(typ api.WatchEventResponse_PeerEvent_Type, from *api.Peer) {
	addr := e.inside.real(from.GetState().GetNeighborAddress())
	if !addr.IsValid() || typ == api.WatchEventResponse_PeerEvent_END_OF_INIT {
		return
	}
	state := State(from.GetState().GetSessionState())
	ev := Event{Kind: EventState, Peer: addr, State: state}
	if state == StateEstablished {
		ev.Restart = e.restartOf(addr)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.peers[addr]
	if p == nil || p.state == state {
		return
	}
	// How long paths stay as stale is the receiver's business. GoBGP forgets its own when an attempt to
	// come back fails, and when the restart takes too long.
	ev.Keep = p.restarting
	if state == StateEstablished {
		p.flaps++
		p.noted, p.faulty, p.restarting = false, false, false
		p.restart = ev.Restart
	}
	if state == StateActive {
		p.faulty = false
	}
	p.state, p.since = state, time.Now()
	e.touch(&ev)
	e.queue.add(&ev)
}

// watchPaths takes what GoBGP reports of one UPDATE.
func (e *GoBGP) watchPaths(paths []*api.Path) {
	var at string // by which GoBGP knows the peer
	var addr netip.Addr
	e.batch = e.batch[:0]
	for _, from := range paths {
		if from.GetNeighborIp() != at {
			at = from.GetNeighborIp()
			addr = e.inside.real(at)
		}
		if !addr.IsValid() {
			continue
		}
		e.batch = append(e.batch, Event{Peer: addr, Family: fromAPIFamily(from.GetFamily())})
		if ev := &e.batch[len(e.batch)-1]; !e.readPath(ev, from) {
			e.batch = e.batch[:len(e.batch)-1]
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var p *peerState
	for i := range e.batch {
		ev := &e.batch[i]
		if p == nil || p.cfg.Address != ev.Peer {
			if p = e.peers[ev.Peer]; p == nil {
				continue
			}
		}
		e.touch(ev)
		ev.Path.OwnAS = ev.Path.count(p.cfg.LocalAS)
		ev.Path.asPath = nil
		e.queue.add(ev)
	}
	if e.queue.len() >= mostQueued && !e.held {
		e.held = true
		e.relay.Hold(true)
	}
	if cap(e.batch) > keepBatch {
		e.batch = nil
	}
}

// mostQueued is with how many events in the queue the peers are held back until they are taken. The queue has no
// more than one for each path, but a peer may have millions of those.
const mostQueued = 1 << 16

// keepBatch is up to how many paths the memory for those of an UPDATE is kept: a full one of the greatest length
// without extended messages.
const keepBatch = 1 << 10

// readPath completes an event, and reports whether there is one.
func (e *GoBGP) readPath(ev *Event, from *api.Path) bool {
	if from.GetNlri() == nil {
		ev.Kind = EventEndOfRIB
		return true
	}
	ev.Kind = EventPath
	var err error
	if ev.Path, err = e.reader.read(from); err != nil {
		e.conversionErrors.Add(1)
		e.cfg.Log.WithError(err).WithField("neighbor", ev.Peer).Warn("bgp engine: path can't be read in full")
	}
	return ev.Path.Prefix.IsValid()
}

// count says how often an AS is in AS_PATH.
func (p *Path) count(as uint32) (n int) {
	for _, v := range p.asPath {
		if v == as {
			n++
		}
	}
	return n
}

var errNoAttributes = errors.New("attributes can't be converted")

// DefaultLocalPref is what a path without LOCAL_PREF counts as.
const DefaultLocalPref = 100

func (p *Path) read(any *anypb.Any) error {
	m, err := any.UnmarshalNew()
	if err != nil {
		return err
	}
	switch a := m.(type) {
	case *api.OriginAttribute:
		p.Origin = uint8(a.Origin)
	case *api.AsPathAttribute:
		p.readASPath(a)
	case *api.NextHopAttribute:
		p.NextHop, err = netip.ParseAddr(a.NextHop)
	case *api.MpReachNLRIAttribute:
		if len(a.NextHops) > 0 {
			p.NextHop, err = netip.ParseAddr(a.NextHops[0])
		}
	case *api.MultiExitDiscAttribute:
		p.MED = a.Med
	case *api.LocalPrefAttribute:
		p.LocalPref = a.LocalPref
	case *api.OriginatorIdAttribute:
		p.OriginatorID, err = netip.ParseAddr(a.Id)
	case *api.ClusterListAttribute:
		for _, id := range a.Ids {
			c, err := netip.ParseAddr(id)
			if err != nil {
				return fmt.Errorf("CLUSTER_LIST: %w", err)
			}
			p.ClusterList = append(p.ClusterList, c)
		}
	case *api.ExtendedCommunitiesAttribute:
		p.Targets, err = readTargets(a)
	case *api.CommunitiesAttribute:
		for _, v := range a.Communities {
			p.Communities = append(p.Communities, Community{Global: v >> 16, Local: v & 0xFFFF})
		}
	case *api.LargeCommunitiesAttribute:
		for _, v := range a.Communities {
			p.Communities = append(p.Communities, Community{Large: true, Global: v.GlobalAdmin, Local: v.LocalData1, Local2: v.LocalData2})
		}
	case *api.UnknownAttribute:
		// Of several, the first counts (RFC 7606 section 3 g).
		if a.Type == attrNHC && !p.HasNHC {
			p.HasNHC, p.NHCFlags, p.NHC = true, uint8(a.Flags), a.Value
		}
	}
	return err
}

func (p *Path) readASPath(a *api.AsPathAttribute) {
	first := true
	for _, s := range a.Segments {
		p.asPath = append(p.asPath, s.Numbers...)
		switch s.Type {
		case api.AsSegment_AS_SEQUENCE:
			p.ASPathLen += len(s.Numbers)
			if first && len(s.Numbers) > 0 {
				p.NeighborAS = s.Numbers[0]
			}
		case api.AsSegment_AS_SET:
			p.ASPathLen++ // RFC 4271 section 9.1.2.2 a
		default:
			continue // confederation segments don't count (RFC 5065 section 5.3)
		}
		first = false
	}
}
