package engine

import (
	"context"
	"net/netip"
	"os"
	"time"

	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/server"

	"pncd/bgp/bmp"
)

// Station is a BMP station, and StationStatus what is known about it.
type (
	Station       = bmp.Station
	StationStatus = bmp.Status
)

// SetStations says to whom what peers send is reported, in place of what was said before.
func (e *GoBGP) SetStations(list []Station) error {
	e.mu.Lock()
	ready := e.relay != nil && !e.stopped
	e.mu.Unlock()
	if !ready {
		return ErrStopped
	}
	e.stations.Set(list)
	return nil
}

// Stations gives what became of the stations.
func (e *GoBGP) Stations() []StationStatus { return e.stations.Status() }

func (e *GoBGP) bmpConfig() bmp.Config {
	name, err := os.Hostname()
	if err != nil {
		name = e.cfg.RouterID.String()
	}
	descr := e.cfg.Descr
	if descr == "" {
		descr = "pncd"
	}
	return bmp.Config{Source: bmpSource{e.srv}, Lookup: e.bmpSession, Name: name, Descr: descr, Log: e.cfg.Log}
}

// bmpSession gives a peer's session. The ports are those of the session that GoBGP means, or not known.
func (e *GoBGP) bmpSession(at netip.Addr, port uint16) (bmp.Session, bool) {
	peer := e.inside.real(at.String())
	e.mu.Lock()
	r := e.relay
	e.mu.Unlock()
	if !peer.IsValid() || r == nil {
		return bmp.Session{}, false
	}
	last := r.Stats(peer).Last
	s := bmp.Session{Peer: peer, Local: last.Local, Remote: last.Remote}
	if last.Leg != port {
		s.Local, s.Remote = netip.AddrPortFrom(s.Local.Addr(), 0), netip.AddrPortFrom(s.Remote.Addr(), 0)
	}
	return s, last.Local.IsValid()
}

// bmpSource is GoBGP's BMP. It reports what came from the peers before any policy; the views after policies would
// be empty, for nothing that a peer sent passes startPolicies.
//
// GoBGP fills in the capabilities of a received OPEN anew each time that it writes them out, for Peer Up in the
// station's goroutine and for Status in its own, and takes no lock. The octets and their number are the same each time.
type bmpSource struct{ srv *server.BgpServer }

func (s bmpSource) Open(ctx context.Context, port uint16, name string, statistics time.Duration) error {
	return s.srv.AddBmp(ctx, &api.AddBmpRequest{
		Address: loopback.String(), Port: uint32(port), Policy: api.AddBmpRequest_PRE,
		StatisticsTimeout: int32(seconds(statistics)), SysName: name,
	})
}

func (s bmpSource) Close(port uint16) error {
	return s.srv.DeleteBmp(context.Background(), &api.DeleteBmpRequest{Address: loopback.String(), Port: uint32(port)})
}
