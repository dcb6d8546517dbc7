package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"pncd/bgp/engine/enginetest"
	"pncd/bgp/nhc"
)

// bgpPatience bounds each step of a BGP benchmark.
const bgpPatience = 20 * time.Minute

// bgpSession is a child with an established session to a feeder in this process.
type bgpSession struct {
	*enginetest.Feeder
	side    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan bgpAnswer // closed when the child ends
}

// startBGP starts one side and waits until its session is established.
func startBGP(bare bool) (*bgpSession, error) {
	f, err := enginetest.Listen(bgpFeeder, bgpAS, bgpFeeder)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(bgpSide{Bare: bare, Port: f.Port()})
	if err != nil {
		f.Close()
		return nil, err
	}
	s := &bgpSession{Feeder: f, side: "pncd", cmd: exec.Command("/proc/self/exe"), answers: make(chan bgpAnswer, 4)}
	if bare {
		s.side = "gobgp"
	}
	s.cmd.Env = append(os.Environ(), bgpEnv+"="+string(text))
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		s.in, err = s.cmd.StdinPipe()
	}
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	go func() { // ends with the child's output, which stop waits for
		defer close(s.answers)
		for dec := json.NewDecoder(out); ; {
			var a bgpAnswer
			if dec.Decode(&a) != nil {
				return
			}
			s.answers <- a
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), bgpPatience)
	defer cancel()
	if err := f.Establish(ctx); err != nil {
		s.stop()
		return nil, fmt.Errorf("%s: %w", s.side, err)
	}
	return s, nil
}

// stop ends the child. It is not given time to stop cleanly: what it has is of no more use.
func (s *bgpSession) stop() {
	s.cmd.Process.Kill()
	for range s.answers {
	}
	s.cmd.Wait() // its error is the kill
	s.Close()
}

// answer waits for the child's next answer.
func (s *bgpSession) answer() (bgpAnswer, error) {
	select {
	case a, ok := <-s.answers:
		switch {
		case !ok:
			return a, fmt.Errorf("%s: the process has ended", s.side)
		case a.Error != "":
			return a, fmt.Errorf("%s: %s", s.side, a.Error)
		}
		return a, nil
	case <-s.Ended():
		return bgpAnswer{}, fmt.Errorf("%s: the session has ended: %w", s.side, s.Send(nil))
	case <-time.After(bgpPatience):
		return bgpAnswer{}, fmt.Errorf("%s: no answer in %s", s.side, bgpPatience)
	}
}

func (s *bgpSession) ask(r bgpRequest) (bgpAnswer, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return bgpAnswer{}, err
	}
	if _, err := s.in.Write(append(text, '\n')); err != nil {
		return bgpAnswer{}, err
	}
	return s.answer()
}

// spent is how long something took, and the processor time that the child used meanwhile.
type spent struct{ took, cpu time.Duration }

// until sends messages and gives what was spent from the first octet until what r asks for.
func (s *bgpSession) until(r bgpRequest, messages []byte) (spent, error) {
	before, err := s.ask(r)
	if err != nil {
		return spent{}, err
	}
	begin := monotonic()
	sent := make(chan error, 1)
	go func() { sent <- s.Send(messages) }() // ends with the session at the latest
	a, err := s.answer()
	if err != nil {
		return spent{}, err
	}
	return spent{a.At - begin, a.CPU - before.CPU}, <-sent
}

// reach is until so many prefixes resolve, and the sender too.
func (s *bgpSession) reach(prefixes int, sender netip.Addr, messages []byte) (spent, error) {
	return s.until(bgpRequest{Await: &prefixes, Sender: sender}, messages)
}

// profiles is the folder for profiles, which slow down what they look at; empty: none are made.
func profiles() string { return os.Getenv("PNCD_BENCH_PROFILES") }

// learn is reach, with a profile of the processor time if profiles are made.
func (s *bgpSession) learn(name string, prefixes int, sender netip.Addr, messages []byte) (spent, error) {
	r := bgpRequest{Await: &prefixes, Sender: sender}
	if dir := profiles(); dir != "" {
		r.CPU = filepath.Join(dir, name+"-"+s.side+"-cpu.pb.gz")
	}
	return s.until(r, messages)
}

// memory asks for the memory in use, with a heap profile if profiles are made.
func (s *bgpSession) memory(name string) (bgpAnswer, error) {
	r := bgpRequest{Memory: true}
	if dir := profiles(); dir != "" {
		r.Heap = filepath.Join(dir, name+"-"+s.side+".pb.gz")
	}
	a, err := s.ask(r)
	if err == nil && a.Peak == 0 {
		err = errors.New("the kernel doesn't tell the peak of the resident set")
	}
	return a, err
}

// bgpAttributes are those of a route whose PNC names the proxy with a number below 64.
func bgpAttributes(proxy int) (enginetest.Attributes, error) {
	nextHop := netip.MustParseAddr("192.0.2.254")
	tlv, err := nhc.NewPNC(nhc.DefaultPNCCode, netip.AddrFrom4([4]byte{198, 51, 100, byte(proxy%64 + 1)}))
	if err != nil {
		return enginetest.Attributes{}, err
	}
	a, err := nhc.New(nhc.AFIIPv4, nhc.SAFIUnicast, nextHop, tlv)
	if err != nil {
		return enginetest.Attributes{}, err
	}
	raw, err := a.Append(nil)
	return enginetest.Attributes{NextHop: nextHop, NHC: raw}, err
}
