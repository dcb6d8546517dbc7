package nrpmap

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// MaxContextName is the longest name of a context, in octets.
const MaxContextName = 255

const maxQP = 1<<24 - 1

// Key names an entry. With a sender and a receiver the entry gives a Source QP, without them a VPN context.
type Key struct {
	NRP              uint32     // NRP Selector ID
	Sender, Receiver netip.Addr // of the data; both or none
}

// ForQP says whether an entry with this key gives a Source QP.
func (k Key) ForQP() bool { return k.Sender.IsValid() || k.Receiver.IsValid() }

// String writes the key as "nrp 7" or "nrp 7 sender>receiver".
func (k Key) String() string {
	if k.ForQP() {
		return fmt.Sprintf("nrp %d %s>%s", k.NRP, k.Sender, k.Receiver)
	}
	return fmt.Sprintf("nrp %d", k.NRP)
}

// Mapping is what an entry says.
type Mapping struct {
	Key
	SourceQP uint32 // the sender's own QP, 24 bits; with sender and receiver only
	Context  string // VPN: the one to look in, or the one that the CNP goes to; empty: the default one
}

// Entry is one entry of the map.
type Entry struct {
	Mapping
	Configured bool      // from the configuration; false: from the API
	Version    uint64    // the map's version when this entry last changed
	ChangedAt  time.Time // when that was
}

// Errors of Map's methods, matched with errors.Is.
var (
	ErrConfigured = errors.New("the entry belongs to the configuration")
	ErrNotFound   = errors.New("no such entry")
	ErrFull       = errors.New("the map is full")
)

// FieldError says which field of a Mapping breaks which rule.
type FieldError struct {
	Index int    // of the mapping in the list that was given
	Field string // sender, receiver, source_qp or context
	Rule  string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("mappings[%d].%s: %s", e.Index, e.Field, e.Rule)
}

// validate gives a *FieldError for what can't be an entry; i is its place in a list.
func (m *Mapping) validate(i int) error {
	bad := func(field, rule string, args ...any) error { return &FieldError{i, field, fmt.Sprintf(rule, args...)} }
	if len(m.Context) > MaxContextName {
		return bad("context", "longer than %d octets", MaxContextName)
	}
	if !m.ForQP() {
		switch {
		case m.Context == "":
			return bad("context", "required: the VPN that the NRP Selector ID stands for, unless sender, receiver and source_qp are given")
		case m.SourceQP != 0:
			return bad("source_qp", "needs sender and receiver beside it")
		}
		return nil
	}
	for _, a := range []struct {
		field string
		addr  netip.Addr
	}{{"sender", m.Sender}, {"receiver", m.Receiver}} {
		if !isHost(a.addr) {
			return bad(a.field, "%s: must be a unicast address without a zone; sender and receiver go together", a.addr)
		}
	}
	switch {
	case m.Sender.Is4() != m.Receiver.Is4():
		return bad("receiver", "%s is not of the family of the sender %s", m.Receiver, m.Sender)
	case m.SourceQP <= 1:
		return bad("source_qp", "%d: must be the queue pair of a flow; 0 and 1 are for management", m.SourceQP)
	case m.SourceQP > maxQP:
		return bad("source_qp", "%#x: more than 24 bits", m.SourceQP)
	}
	return nil
}

func isHost(a netip.Addr) bool {
	return a.IsValid() && a.Zone() == "" && !a.Is4In6() && !a.IsUnspecified() && !a.IsMulticast() && a != broadcast
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})
