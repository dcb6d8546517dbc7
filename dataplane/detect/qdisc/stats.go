package qdisc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Stats are the statistics of one queueing discipline.
type Stats struct {
	Kind           string // as tc(8) names it: fq_codel
	Handle, Parent uint32 // which of the link's it is; both may be 0 of those that the kernel made itself
	Backlog        uint32 // octets that wait in it and below it
	Marks          uint32 // packets that it marked CE; it wraps
	CountsMarks    bool   // else Marks is not known
}

// Attributes of a queueing discipline, and of their statistics.
const (
	tcaKind   = 1 // TCA_KIND
	tcaStats2 = 7 // TCA_STATS2

	statsQueue = 3 // TCA_STATS_QUEUE, struct gnet_stats_queue: qlen, backlog, drops, requeues, overlimits
	statsApp   = 4 // TCA_STATS_APP, of the discipline itself

	cakeTins  = 10 // TCA_CAKE_STATS_TIN_STATS, a list of tins
	cakeMarks = 8  // TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS

	tcmsgLen     = 20 // struct tcmsg: family, padding, ifindex, handle, parent, info
	attrTypeMask = 0x3FFF
)

// marksAt are the offsets of what a discipline counts of its marks, each of 32 bits, or the low half of 64 bits, in host
// order: of struct tc_red_xstats and tc_choke_xstats marked; of tc_sfb_xstats marked; of tc_codel_xstats and
// tc_fq_codel_qd_stats (behind its type) ecn_mark and ce_mark; of tc_fq_qd_stats ce_mark; of tc_pie_xstats and
// tc_fq_pie_xstats ecn_mark.
var marksAt = map[string][]int{
	"red": {12}, "choke": {12}, "sfb": {20}, "codel": {24, 32}, "fq_codel": {12, 28}, "fq": {80 + lowHalf}, "pie": {36}, "fq_pie": {16},
}

// lowHalf is where the low 32 bits of 64 are.
var lowHalf = 4 * int(binary.NativeEndian.Uint16([]byte{0, 1})&1)

// attribute is one of a netlink message (rtnetlink(7)).
type attribute struct {
	typ   uint16
	value []byte
}

var errShort = errors.New("an attribute is longer than the message")

// attributes cuts a message into its attributes.
func attributes(b []byte) (out []attribute, err error) {
	for len(b) >= 4 {
		n := int(binary.NativeEndian.Uint16(b))
		if n < 4 || n > len(b) {
			return nil, errShort
		}
		out = append(out, attribute{binary.NativeEndian.Uint16(b[2:]) & attrTypeMask, b[4:n]})
		b = b[min((n+3)&^3, len(b)):]
	}
	return out, nil
}

// parse reads an RTM_NEWQDISC message, from struct tcmsg on.
func parse(m []byte) (ifIndex int, s Stats, err error) {
	if len(m) < tcmsgLen {
		return 0, s, fmt.Errorf("queueing discipline: %d octets: shorter than struct tcmsg", len(m))
	}
	ifIndex = int(int32(binary.NativeEndian.Uint32(m[4:])))
	s.Handle, s.Parent = binary.NativeEndian.Uint32(m[8:]), binary.NativeEndian.Uint32(m[12:])
	attrs, err := attributes(m[tcmsgLen:])
	if err != nil {
		return 0, s, fmt.Errorf("queueing discipline: %w", err)
	}
	var stats []byte
	for _, a := range attrs {
		switch a.typ {
		case tcaKind:
			s.Kind = strings.TrimRight(string(a.value), "\x00")
		case tcaStats2:
			stats = a.value
		}
	}
	if attrs, err = attributes(stats); err != nil {
		return 0, s, fmt.Errorf("queueing discipline %s: statistics: %w", s.Kind, err)
	}
	for _, a := range attrs {
		switch {
		case a.typ == statsQueue && len(a.value) >= 8:
			s.Backlog = binary.NativeEndian.Uint32(a.value[4:])
		case a.typ == statsApp:
			s.Marks, s.CountsMarks = marks(s.Kind, a.value)
		}
	}
	return ifIndex, s, nil
}

// marks reads what a discipline counts of its marks; false when it doesn't.
func marks(kind string, app []byte) (n uint32, ok bool) {
	if kind == "cake" {
		return cake(app)
	}
	at := marksAt[kind]
	for _, i := range at {
		if len(app) < i+4 {
			return 0, false // of an older kernel
		}
		n += binary.NativeEndian.Uint32(app[i:])
	}
	return n, len(at) > 0
}

// cake sums the marks of all tins.
func cake(app []byte) (n uint32, ok bool) {
	stats, err := attributes(app)
	if err != nil {
		return 0, false
	}
	for _, s := range stats {
		if s.typ != cakeTins {
			continue
		}
		tins, err := attributes(s.value)
		if err != nil {
			return 0, false
		}
		for _, tin := range tins {
			of, err := attributes(tin.value)
			if err != nil {
				return 0, false
			}
			for _, a := range of {
				if a.typ == cakeMarks && len(a.value) >= 4 {
					n, ok = n+binary.NativeEndian.Uint32(a.value), true
				}
			}
		}
	}
	return n, ok
}
