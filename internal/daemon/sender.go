package daemon

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/sirupsen/logrus"

	"pncd/dataplane/emit"
	"pncd/dataplane/host"
	"pncd/internal/config"
)

// errNoSender is what sending answers while the mechanism is off; the parts that send know that it is
// off before they try.
var errNoSender = errors.New("the mechanism is off: there is no socket to send by")

// senderSwitch is the sockets of notifier and translator, which exist only while the mechanism is on.
type senderSwitch struct {
	sendMeter
	current atomic.Pointer[senderUnit]
	frames  emit.FrameCounts // of all units there were
	framed  atomic.Bool      // there was one that sends frames
}

// Send implements notifier.Sender and translator.Sender.
func (s *senderSwitch) Send(pkts [][]byte) (int, error) {
	u := s.current.Load()
	if u == nil {
		return 0, errNoSender
	}
	sent, err := u.Send(pkts)
	s.note(pkts, sent, err)
	return sent, err
}

// emission says how packets leave by a configuration.
func emission(c *config.Config) string {
	if c.Proxy != nil {
		return c.Proxy.Emit
	}
	return config.EmitRaw
}

// emissionText tells an operator how packets leave.
var emissionText = map[string]string{
	config.EmitRaw:    "raw: the kernel routes each packet",
	config.EmitPacket: "packet: frames, and raw where a packet can't go as one",
}

// opener opens the sockets for a unit.
func (s *senderSwitch) opener(emission string, log logrus.FieldLogger) func() (runner, error) {
	return func() (runner, error) {
		u := &senderUnit{s: s}
		var err error
		if emission == config.EmitPacket {
			u.paths = host.NewPaths(host.PathsConfig{}, log)
			u.ipSockets, err = emit.OpenFrames(emit.Config{}, u.paths, &s.frames)
		} else {
			u.ipSockets, err = emit.Open(emit.Config{})
		}
		if err != nil {
			return nil, err
		}
		return u, nil
	}
}

// ipSockets send whole IP packets: emit.Sender, emit.FrameSender.
type ipSockets interface {
	Send(pkts [][]byte) (sent int, err error)
	Close() error
}

type senderUnit struct {
	ipSockets
	s     *senderSwitch
	paths *host.Paths // of frames; nil: raw sockets only
}

// Begin implements beginner: it puts the sockets in place.
func (u *senderUnit) Begin() {
	if u.paths != nil {
		u.s.framed.Store(true)
	}
	u.s.current.Store(u)
}

// Run implements runner: sending happens on the goroutines of those who send.
func (u *senderUnit) Run(ctx context.Context) error {
	if u.paths != nil {
		return u.paths.Run(ctx)
	}
	<-ctx.Done()
	return nil
}

// Close implements runner.
func (u *senderUnit) Close() error {
	u.s.current.CompareAndSwap(u, nil)
	return u.ipSockets.Close()
}

// frameCounts are the counts of packets sent as frames; none where there never were any sockets but raw ones.
func (s *senderSwitch) frameCounts() []count {
	if !s.framed.Load() {
		return nil
	}
	all, usable := 0, 0
	if u := s.current.Load(); u != nil && u.paths != nil {
		all, usable = u.paths.Known()
	}
	return []count{
		{part: "sender", name: "frames", value: s.frames.Frames.Load(), help: "Packets sent as frames by the packet socket."},
		{part: "sender", name: "left", value: s.frames.Left.Load(), help: "Packets left to the kernel's own output, because their way or neighbour is not one that frames can go to."},
		{part: "sender", name: "destinations", value: uint64(all), help: "Destinations whose way is followed."},
		{part: "sender", name: "destinations-usable", value: uint64(usable), help: "Destinations that frames can be sent to now."},
	}
}
