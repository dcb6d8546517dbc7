package daemon

import (
	"context"
	"net/netip"

	"pncd/proxyagent/translator"
)

// receiver hands the notifications of one socket to the translator.
type receiver struct {
	listener *translator.Listener
	handler  translator.Handler
}

func openReceiver(addr netip.AddrPort, h translator.Handler) (runner, error) {
	l, err := translator.Listen(translator.ListenConfig{Address: addr})
	if err != nil {
		return nil, err
	}
	return &receiver{l, h}, nil
}

// Run implements runner.
func (r *receiver) Run(ctx context.Context) error {
	return translator.Serve(ctx, r.handler, r.listener)
}

// Close implements runner.
func (r *receiver) Close() error { return r.listener.Close() }
