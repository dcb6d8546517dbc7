package enginetest

import (
	"context"
	"net/netip"

	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/log"
	"github.com/osrg/gobgp/v3/pkg/server"
)

// Bare is GoBGP as it comes: no policy, one neighbour, and a watch of the best paths whose callback
// does nothing but hand over what it got. There can be one GoBGP in a process.
type Bare struct {
	srv  *server.BgpServer
	stop context.CancelFunc
}

// StartBare starts it with an IBGP neighbour to connect to. Seen is called in GoBGP's goroutine with
// the numbers of announcements and withdrawals among the best paths that changed.
func StartBare(ctx context.Context, as uint32, id netip.Addr, neighbor netip.AddrPort, seen func(announced, withdrawn int)) (*Bare, error) {
	srv := server.NewBgpServer(server.LoggerOption(silent{}))
	go srv.Serve()
	err := srv.StartBgp(ctx, &api.StartBgpRequest{Global: &api.Global{Asn: as, RouterId: id.String(), ListenPort: -1}})
	if err != nil {
		return nil, err
	}
	watch, cancel := context.WithCancel(context.Background())
	b := &Bare{srv: srv, stop: cancel}
	err = srv.WatchEvent(watch, &api.WatchEventRequest{
		Table: &api.WatchEventRequest_Table{Filters: []*api.WatchEventRequest_Table_Filter{{Type: api.WatchEventRequest_Table_Filter_BEST}}},
	}, func(r *api.WatchEventResponse) {
		paths, withdrawn := r.GetTable().GetPaths(), 0
		for _, p := range paths {
			if p.IsWithdraw {
				withdrawn++
			}
		}
		seen(len(paths)-withdrawn, withdrawn)
	})
	if err != nil {
		cancel()
		return nil, err
	}
	err = srv.AddPeer(ctx, &api.AddPeerRequest{Peer: &api.Peer{
		Conf:      &api.PeerConf{NeighborAddress: neighbor.Addr().String(), PeerAsn: as},
		Transport: &api.Transport{RemotePort: uint32(neighbor.Port())},
		Timers:    &api.Timers{Config: &api.TimersConfig{ConnectRetry: 1}},
	}})
	if err != nil {
		cancel()
	}
	return b, err
}

// Stop closes the session. GoBGP's own goroutine never ends.
func (b *Bare) Stop() {
	b.stop()
	b.srv.Stop()
}

// silent is a logger that says nothing.
type silent struct{}

func (silent) Panic(string, log.Fields) {}
func (silent) Fatal(string, log.Fields) {}
func (silent) Error(string, log.Fields) {}
func (silent) Warn(string, log.Fields)  {}
func (silent) Info(string, log.Fields)  {}
func (silent) Debug(string, log.Fields) {}
func (silent) SetLevel(log.LogLevel)    {}
func (silent) GetLevel() log.LogLevel   { return log.ErrorLevel }
