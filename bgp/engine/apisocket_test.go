package engine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	api "github.com/osrg/gobgp/v3/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"pncd/bgp/engine/enginetest"
)

// socketDir is a directory whose path is short enough for a socket.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "g")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// all reads a stream of answers to its end.
func all[T any](t *testing.T, s grpc.ServerStreamingClient[T], err error) []*T {
	t.Helper()
	var out []*T
	for err == nil {
		var m *T
		if m, err = s.Recv(); err == nil {
			out = append(out, m)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return out
}

func TestGoBGPsOwnAPIReadsAndKnowsTheNeighboursByTheirAddresses(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir := socketDir(t)
	path := filepath.Join(dir, "gobgp.sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()

	neighbor := addr("127.0.0.7")
	feeder, err := enginetest.Listen(neighbor, 65000, addr("192.0.2.7"))
	if err != nil {
		t.Fatal(err)
	}
	defer feeder.Close()
	out, _ := quiet()
	out.SetOutput(io.Discard)
	e := New(Config{RouterID: addr("192.0.2.1"), AS: 65000, ListenPort: -1, Log: out, GobgpSocket: path})
	stop := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := e.Stop(ctx); err != nil {
			t.Error(err)
		}
	}
	stopped := false
	defer func() {
		if !stopped {
			stop()
		}
	}()
	if err := e.Start(ctx); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode() != fs.ModeSocket|0o600 {
		t.Fatalf("%v, %v: want a socket of mode 0600", st, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left beside the socket: %v", left)
	}
	if err := e.AddPeer(ctx, Peer{
		Address: neighbor, Port: feeder.Port(), PeerAS: 65000, LocalAS: 65000, HoldTime: 90 * time.Second, Keepalive: 30 * time.Second,
		ConnectRetry: time.Second, Families: []Family{IPv4Unicast}, Export: true,
	}); err != nil {
		t.Fatal(err)
	}
	if err := feeder.Establish(ctx); err != nil {
		t.Fatal(err)
	}
	inner := insideFirst.String()
	if err := feeder.Send(enginetest.AppendUpdates(nil, enginetest.Attributes{NextHop: addr("192.0.2.9")}, pfx, netip.MustParsePrefix(inner+"/32"))); err != nil {
		t.Fatal(err)
	}

	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := api.NewGobgpApiClient(conn)

	ipv4 := &api.Family{Afi: api.Family_AFI_IP, Safi: api.Family_SAFI_UNICAST}
	adjIn := func(lookups ...*api.TableLookupPrefix) []*api.ListPathResponse {
		s, err := client.ListPath(ctx, &api.ListPathRequest{TableType: api.TableType_ADJ_IN, Name: neighbor.String(), Family: ipv4, Prefixes: lookups})
		return all(t, s, err)
	}
	for len(adjIn()) < 2 { // bounded by ctx
		if ctx.Err() != nil {
			t.Fatal("the routes did not arrive")
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, d := range adjIn(&api.TableLookupPrefix{Prefix: pfx.String()}) {
		if p := d.Destination.Paths; len(p) != 1 || p[0].NeighborIp != neighbor.String() || d.Destination.Prefix != pfx.String() {
			t.Errorf("path: %v", d)
		}
	}
	if got := adjIn(&api.TableLookupPrefix{Prefix: inner}); len(got) != 1 || got[0].Destination.Prefix != inner+"/32" {
		t.Errorf("a prefix that looks like an address inside: %v", got)
	}

	for _, name := range []string{"", neighbor.String()} {
		s, err := client.ListPeer(ctx, &api.ListPeerRequest{Address: name})
		peers := all(t, s, err)
		if len(peers) != 1 {
			t.Fatalf("peers by %q: %v", name, peers)
		}
		p := peers[0].Peer
		if p.Conf.NeighborAddress != neighbor.String() || p.State.NeighborAddress != neighbor.String() || p.State.SessionState != api.PeerState_ESTABLISHED {
			t.Errorf("peer by %q: %v", name, p)
		}
		if text := prototext.Format(p); strings.Contains(text, inner) || strings.Contains(text, e.inside.key) {
			t.Errorf("the address or the key of the connection over loopback is shown: %s", text)
		}
	}
	if got, err := client.GetTable(ctx, &api.GetTableRequest{TableType: api.TableType_ADJ_IN, Name: neighbor.String(), Family: ipv4}); err != nil || got.NumPath != 2 {
		t.Errorf("table: %v, %v", got, err)
	}
	if got, err := client.GetBgp(ctx, &api.GetBgpRequest{}); err != nil || got.Global.Asn != 65000 || got.Global.RouterId != "192.0.2.1" {
		t.Errorf("global: %v, %v", got, err)
	}
	watch, err := client.WatchEvent(ctx, &api.WatchEventRequest{Peer: &api.WatchEventRequest_Peer{}})
	if err != nil {
		t.Fatal(err)
	}
	if ev, err := watch.Recv(); err != nil || ev.GetPeer().GetPeer().GetState().GetNeighborAddress() != neighbor.String() {
		t.Errorf("event: %v, %v", ev, err)
	}

	for _, l := range []*api.TableLookupPrefix{
		{}, {Prefix: "x"}, {Prefix: "192.0.2.0/33"}, {Prefix: "2001:db8::/32"}, {Prefix: "192.0.2.1", Type: api.TableLookupPrefix_LONGER}, {Prefix: "192.0.2.0/24", Rd: "x"},
	} {
		s, err := client.ListPath(ctx, &api.ListPathRequest{Family: ipv4, Prefixes: []*api.TableLookupPrefix{l}})
		if err == nil {
			_, err = s.Recv()
		}
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(status.Convert(err).Message(), "prefixes[0].") {
			t.Errorf("lookup of %v: %v", l, err)
		}
	}

	refused(ctx, t, conn)
	if s, err := e.Status(ctx); err != nil || len(s) != 1 || s[0].State != StateEstablished {
		t.Errorf("after what was refused: %+v, %v", s, err)
	}
	stopped = true
	stop()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left after the stop: %v", left)
	}
}

// refused calls each method of GoBGP's API that is not for reading, with an empty request.
func refused(ctx context.Context, t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	service := api.GobgpApi_ServiceDesc
	methods := map[string]bool{} // by name: streaming
	for _, m := range service.Methods {
		methods[m.MethodName] = false
	}
	for _, s := range service.Streams {
		methods[s.StreamName] = true
	}
	for name := range apiReads {
		if _, ok := methods[name]; !ok || strings.HasPrefix(name, "Set") {
			t.Errorf("%s is no call that reads", name)
		}
		delete(methods, name)
	}
	for _, name := range []string{"AddPath", "AddPathStream", "DeletePeer", "ResetPeer", "StopBgp", "SetPolicies", "EnableMrt", "AddBmp", "SetLogLevel"} {
		if _, ok := methods[name]; !ok {
			t.Errorf("%s may be called", name)
		}
	}
	for name, streaming := range methods {
		var err error
		if streaming {
			var s grpc.ClientStream
			if s, err = conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, apiService+"/"+name); err == nil {
				err = s.RecvMsg(&anypb.Any{})
			}
		} else {
			err = conn.Invoke(ctx, apiService+"/"+name, &anypb.Any{}, &anypb.Any{})
		}
		if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), name+": bgp.gobgp_socket only reads") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASocketThatCannotBeHadIsAnErrorThatSaysWhatToDo(t *testing.T) {
	dir := socketDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken := filepath.Join(dir, "taken")
	l, err := net.Listen("unix", taken)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, want := range map[string]string{
		"relative":                      "must be absolute",
		filepath.Join(dir, "a,b"):       "without a comma",
		filepath.Join(dir, "none", "s"): "does not exist: create it",
		file:                            "is not a socket; move it away",
		taken:                           "somebody answers",
		filepath.Join(dir, strings.Repeat("x", 100)): "too long for a unix socket",
	} {
		s, options := newAPISocket(path, apiGuard{})
		if err := s.open(t.Context()); !errors.Is(err, ErrSocket) || !strings.Contains(err.Error(), want) || options != nil {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		s.close()
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("what was there, and nothing else, stays: %v", left)
	}
}

// A panic of GoBGP's is the call's error.
func TestAPanicInGoBGPsAPIIsAnError(t *testing.T) {
	out, text := quiet()
	panics := 0
	g := apiGuard{inside: newInside(), panicked: func() { panics++ }, log: out}
	_, err := g.unary(t.Context(), &api.GetBgpRequest{}, &grpc.UnaryServerInfo{FullMethod: apiService + "/GetBgp"}, func(context.Context, any) (any, error) { panic("bug") })
	if status.Code(err) != codes.Internal || panics != 1 || !strings.Contains(text.String(), "bug") {
		t.Errorf("%v, %d, %s", err, panics, text)
	}
}

// What was on the wire stays as it is, wherever else an address stands in an answer it is translated.
func TestOnlyWhatStandsForANeighbourIsTranslated(t *testing.T) {
	g := apiGuard{inside: newInside()}
	at, err := g.inside.take(peer.a)
	if err != nil {
		t.Fatal(err)
	}
	hop, err := anypb.New(&api.NextHopAttribute{NextHop: at.String()})
	if err != nil {
		t.Fatal(err)
	}
	message := func(a string) *api.Path { return &api.Path{NeighborIp: a, Pattrs: []*anypb.Any{hop}} }
	before := message(at.String())
	if got := g.outwards(before).(proto.Message); !proto.Equal(got, message(peer.a.String())) || before.NeighborIp != at.String() {
		t.Errorf("path: %v, before it %v", got, before)
	}
	set := g.outwards(&api.PeerGroup{Conf: &api.PeerGroupConf{AuthPassword: "secret", Description: "of " + at.String()}}).(*api.PeerGroup)
	if set.Conf.AuthPassword != "" || set.Conf.Description != "of "+at.String() {
		t.Errorf("group: %v", set)
	}
	list := &api.DefinedSet{List: []string{at.String(), "x"}}
	if got := g.outwards(list).(*api.DefinedSet); got.List[0] != peer.a.String() || got.List[1] != "x" {
		t.Errorf("list: %v", got)
	}
	req := &api.ListPathRequest{Name: peer.a.String(), Family: &api.Family{Afi: api.Family_AFI_IP}, Prefixes: []*api.TableLookupPrefix{{Prefix: peer.a.String()}}}
	if err := g.inwards(req); err != nil || req.Name != at.String() || req.Prefixes[0].Prefix != peer.a.String() {
		t.Errorf("request: %v, %v", req, err)
	}
}
