package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"pncd/dataplane/roce"
	"pncd/dataplane/tap/kernel"
)

// kernelFlows are the flows of tap-forwarding-tcx and tap-forwarding-xdp.
const kernelFlows = 60_000 / sendBatch * sendBatch

// TapForwardingTCX is TapForwarding with the kernel's tap on TCX ingress of both interfaces, 60,000 flows, all of which
// user space has decided, as is nearly every flow of a router most of the time. They send messages of eight packets, 64 flows
// at a time. The results that end in -single are of messages of one packet: each packet is of the flow that sent the
// longest ago, whose entry is in no cache that is smaller than the table.
func TapForwardingTCX() ([]Result, error) { return kernelTaps("tcx", kernel.TCX) }

// TapForwardingXDP is TapForwardingTCX with XDP.
func TapForwardingXDP() ([]Result, error) { return kernelTaps("xdp", kernel.XDPNative) }

func kernelTaps(suffix string, mode kernel.Mode) ([]Result, error) {
	messages, err := kernelTap("tap-forwarding-"+suffix, "tap-seen-"+suffix, mode, 8)
	if err != nil {
		return nil, err
	}
	single, err := kernelTap("tap-forwarding-"+suffix+"-single", "tap-seen-"+suffix+"-single", mode, 1)
	return append(messages, single...), err
}

func kernelTap(name, seenName string, mode kernel.Mode, message int) (results []Result, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}()
	c, err := newChain(kernelFlows)
	if err != nil {
		return nil, err
	}
	defer c.close()
	c.message = message
	t, err := kernel.Open(kernel.Config{Mode: mode})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	ctx, cancel := context.WithCancel(context.Background())
	var reader errgroup.Group
	reader.Go(func() error { return t.Run(ctx, func(*kernel.Event) {}, nil) })
	defer func() {
		cancel()
		err = errors.Join(err, reader.Wait())
	}()

	k := kernelChain{chain: c, tap: t}
	if mode != kernel.TCX {
		if c.source, err = newFrameSource(c); err != nil {
			return nil, err
		}
	}
	var before kernel.Counters
	err = c.spaces[0].Do(func() (err error) { // the sender's namespace, for c.source
		if err := k.decide(); err != nil {
			return err
		}
		if before, err = t.Counters(); err != nil {
			return err
		}
		results, err = c.compare(name, seenName, k.forward)
		return err
	})
	if err != nil {
		return nil, err
	}
	after, err := t.Counters()
	if err != nil {
		return nil, err
	}
	var handed uint64
	for i := range after.HandedUp {
		handed += after.HandedUp[i] - before.HandedUp[i]
	}
	results[0].Note += fmt.Sprintf(", %d handed to user space, %d flows made, %d events lost", handed, after.FlowsMade-before.FlowsMade, after.Lost-before.Lost)
	return results, nil
}

// kernelChain is a chain with a tap that is attached in its turns.
type kernelChain struct {
	*chain
	tap *kernel.Tap
}

// decide shows the tap each flow, and says of each that it is decided. Frames that the router's queue has no room for are
// lost, so that it may take more than one round.
func (k *kernelChain) decide() (err error) {
	detach, err := k.attach()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, detach()) }()
	const rounds = 100
	for range rounds {
		if err := k.sendAll(); err != nil {
			return err
		}
		if err = k.follow(); !errors.Is(err, kernel.ErrNoFlow) {
			return err
		}
	}
	return err
}

// sendAll sends a message of each flow.
func (k *kernelChain) sendAll() error {
	batch := sendBatch
	if k.source != nil {
		batch = frameRuns
	}
	for sent := 0; sent < k.message*len(k.frames); sent += batch {
		if err := k.send(); err != nil {
			return err
		}
	}
	return nil
}

// follow says of each flow that it is decided. Errors wrap kernel.ErrNoFlow where the tap has not seen one.
func (k *kernelChain) follow() error {
	var p roce.Packet
	for _, f := range k.frames {
		if err := roce.ParseEthernet(f, &p); err != nil {
			return err
		}
		if err := k.tap.SetState(kernel.KeyOf(&p), kernel.Followed); err != nil {
			return err
		}
	}
	return nil
}

func (k *kernelChain) attach() (detach func() error, err error) {
	var attached []*kernel.Attachment
	detach = func() (err error) {
		for _, a := range attached {
			err = errors.Join(err, a.Close())
		}
		return err
	}
	for _, name := range []string{"r0", "r1"} {
		err := k.router.Do(func() error {
			a, err := k.tap.Attach(name)
			if err == nil {
				attached = append(attached, a)
			}
			return err
		})
		if err != nil {
			return nil, errors.Join(err, detach())
		}
	}
	return detach, nil
}

// forward is chain's with the tap on both interfaces of the router, and returns how many packets it saw.
func (k *kernelChain) forward(d time.Duration) (r turnResult, seen uint64, err error) {
	detach, err := k.attach()
	if err != nil {
		return r, 0, err
	}
	before, err := k.tap.Counters()
	if err == nil {
		r, err = k.chain.forward(d)
	}
	after, cerr := k.tap.Counters()
	return r, after.Packets - before.Packets, errors.Join(err, cerr, detach())
}
