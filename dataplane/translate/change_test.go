package translate

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"pncd/dataplane/roce"
	"pncd/proxyagent/message"
)

// An answer of format 2 that changes while notifications come is used as it was or as it is, never as a mixture, and not
// any more once the change has returned.
func TestAnswersChangeAsAWhole(t *testing.T) {
	const changes, nrp, port = 3000, 7, 50000
	b := newBench(t, Config{}, false)
	p := testPolicy()
	p.Window, p.PerSecond, p.TotalPerSecond = 0, 1e9, 1e9
	if err := b.SetPolicy(p); err != nil {
		t.Fatal(err)
	}
	f := Flow{Sender: here4, Receiver: receiver4, Format2: true, SrcPort: port, NRP: nrp}
	n := message.Notification2{Src: here4, Dst: receiver4, SrcPort: port, DstPort: roce.UDPPort, Proto: 17, NRP: nrp}
	payload, err := n.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	o := outer{from: node4, to: own4, port: testPort2, ttl: 255, mac: b.place.macs[b.place.inner]}
	frame := o.frame(payload)
	var current atomic.Uint64 // version that is in force; 0: none
	done := make(chan struct{})
	var tasks errgroup.Group
	tasks.Go(func() error {
		defer close(done)
		for v := uint64(1); v <= changes; v++ {
			if v%16 == 0 {
				if err := b.Remove(f); err != nil {
					return err
				}
				current.Store(v)
				continue
			}
			vpn := b.place.vpns[[]string{"blue", "red"}[v%2]]
			if err := b.Put(f, Answer{
				CNP:     roce.CNP{Src: receiver4, Dst: here4, TOS: roce.DefaultCNPTOS, DestQP: 0x1000 + uint32(v)},
				Context: uint32(1 + v%2), Table: vpn.table, Version: v, NRPVersion: v,
			}); err != nil {
				return err
			}
			current.Store(v)
		}
		return nil
	})
	decided := 0
	err = b.place.ns.Do(func() error {
		buf := make([]byte, 512)
		for {
			select {
			case <-done:
				return nil
			default:
			}
			before := current.Load()
			action, out, err := b.run(frame, buf[:cap(buf)], b.place.inner)
			if err != nil {
				return err
			}
			after := current.Load()
			var e Event
			if _, err := b.read(time.Now(), func(x *Event) { e = *x }); err != nil {
				return err
			}
			if action == xdpPass {
				continue
			}
			decided++
			c, err := roce.ParseCNP(out[14:])
			ok, err2 := roce.VerifyICRC(out[14:])
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			to := b.place.vpns[[]string{"blue", "red"}[e.NRP%2]].port
			if !ok || action != xdpRedirect || e.NRP != e.Version || uint64(c.DestQP) != 0x1000+e.NRP || uint64(e.SourceQP) != 0x1000+e.NRP || [6]byte(out[:6]) != b.place.next[to] {
				return fmt.Errorf("action %d, ICRC %v, event %+v, CNP %+v, to %x", action, ok, e, c, out[:6])
			}
			if e.NRP < before || e.NRP > after+1 {
				return fmt.Errorf("version %d was used; in force before was %d, after %d", e.NRP, before, after)
			}
		}
	})
	if err := errors.Join(err, tasks.Wait()); err != nil {
		t.Fatal(err)
	}
	if decided == 0 {
		t.Error("nothing was decided")
	}
}
