package engine

import (
	"fmt"

	"github.com/osrg/gobgp/v3/pkg/packet/bgp"
)

// decoder gives what decodes a message as GoBGP's session will, with the add-path of both OPENs. GoBGP
// decodes where nobody can recover it; here a panic is an error.
func decoder(sent, received []byte) func([]byte) error {
	options := &bgp.MarshallingOption{}
	err := guarded(func() error {
		ours, err := bgp.ParseBGPMessage(sent)
		if err != nil {
			return err
		}
		theirs, err := bgp.ParseBGPMessage(received)
		if err != nil {
			return err
		}
		options.AddPath = receives(addPaths(ours), addPaths(theirs))
		return nil
	})
	return func(msg []byte) error {
		if err != nil {
			return err
		}
		return guarded(func() error { return decode(msg, options) })
	}
}

// decode decodes whole messages.
func decode(msgs []byte, options *bgp.MarshallingOption) error {
	for len(msgs) > 0 {
		if len(msgs) < bgp.BGP_HEADER_LENGTH {
			return fmt.Errorf("%d octets are no message", len(msgs))
		}
		h := &bgp.BGPHeader{}
		if err := h.DecodeFromBytes(msgs); err != nil {
			return err
		}
		if int(h.Len) > len(msgs) || h.Len < bgp.BGP_HEADER_LENGTH {
			return fmt.Errorf("message of %d octets, %d are there", h.Len, len(msgs))
		}
		if _, err := bgp.ParseBGPBody(h, msgs[bgp.BGP_HEADER_LENGTH:h.Len], options); err != nil {
			return err
		}
		msgs = msgs[h.Len:]
	}
	return nil
}

func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return f()
}

// addPaths reads the add-path capability (RFC 7911 section 4).
func addPaths(open *bgp.BGPMessage) map[bgp.RouteFamily]bgp.BGPAddPathMode {
	m := map[bgp.RouteFamily]bgp.BGPAddPathMode{}
	body, _ := open.Body.(*bgp.BGPOpen)
	if body == nil {
		return m
	}
	for _, p := range body.OptParams {
		caps, _ := p.(*bgp.OptionParameterCapability)
		if caps == nil {
			continue
		}
		for _, c := range caps.Capability {
			if a, _ := c.(*bgp.CapAddPath); a != nil {
				for _, t := range a.Tuples {
					m[t.RouteFamily] = t.Mode
				}
			}
		}
	}
	return m
}

// receives gives the families in which paths arrive with identifiers.
func receives(ours, theirs map[bgp.RouteFamily]bgp.BGPAddPathMode) map[bgp.RouteFamily]bgp.BGPAddPathMode {
	m := map[bgp.RouteFamily]bgp.BGPAddPathMode{}
	for f, mode := range ours {
		if mode&bgp.BGP_ADD_PATH_RECEIVE != 0 && theirs[f]&bgp.BGP_ADD_PATH_SEND != 0 {
			m[f] = bgp.BGP_ADD_PATH_RECEIVE
		}
	}
	return m
}
