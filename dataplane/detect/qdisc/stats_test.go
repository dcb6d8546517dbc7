package qdisc

import (
	"encoding/binary"
	"strings"
	"testing"
)

var native = binary.NativeEndian

// attr makes an attribute, padded as the kernel does.
func attr(typ uint16, value []byte) []byte {
	b := native.AppendUint16(nil, uint16(4+len(value)))
	b = native.AppendUint16(b, typ)
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// words are of 32 bits.
func words(w ...uint32) (b []byte) {
	for _, x := range w {
		b = native.AppendUint32(b, x)
	}
	return b
}

// message is an RTM_NEWQDISC of interface 7, with so much backlog.
func message(kind string, backlog uint32, app []byte) []byte {
	b := words(0, 7, 0x8001_0000, 0xFFFF_FFFF, 2)
	b = append(b, attr(tcaKind, append([]byte(kind), 0))...)
	b = append(b, attr(2, words(1, 2, 3))...) // TCA_OPTIONS
	stats := append(attr(1, words(0, 0, 0, 0)), attr(statsQueue, words(3, backlog, 9, 0, 0))...)
	if app != nil {
		stats = append(stats, attr(statsApp, app)...)
	}
	return append(append(b, attr(tcaStats2, stats)...), attr(4, app)...)
}

func TestMarksOfEachDiscipline(t *testing.T) {
	// Each field has a number of its own, as struct tc_*_xstats of pkt_sched.h has them.
	count := func(n int) (b []byte) {
		for i := range n {
			b = append(b, words(uint32(100+i))...)
		}
		return b
	}
	fq := native.AppendUint64(append(make([]byte, 8*8), words(0, 0, 0, 0)...), 1<<40+12) // gc_flows to unthrottle_latency_ns, ce_mark
	fqCodel := append(words(0), count(9)...)                                             // type, then ecn_mark third and ce_mark seventh
	tin := func(marks uint32) []byte {
		return attr(1, append(attr(2, words(5)), attr(cakeMarks, words(marks))...))
	}
	cake := append(attr(3, words(1)), attr(cakeTins, append(tin(3), tin(4)...))...)
	for kind, tt := range map[string]struct {
		app   []byte
		marks uint32
	}{
		"red": {count(4), 103}, "choke": {count(5), 103}, "sfb": {count(9), 105}, "codel": {count(9), 106 + 108},
		"fq_codel": {fqCodel, 102 + 106}, "fq": {append(fq, make([]byte, 16)...), 12},
		"pie": {append(make([]byte, 8), count(8)...), 107}, "fq_pie": {count(9), 104}, "cake": {cake, 7},
	} {
		index, s, err := parse(message(kind, 4000, tt.app))
		if err != nil || index != 7 || s != (Stats{Kind: kind, Handle: 0x8001_0000, Parent: 0xFFFF_FFFF, Backlog: 4000, Marks: tt.marks, CountsMarks: true}) {
			t.Errorf("%s: %d %+v, %v, want %d marks", kind, index, s, err, tt.marks)
		}
		// As of a kernel that did not count them yet.
		if _, s, err := parse(message(kind, 4000, tt.app[:8])); err != nil || s.CountsMarks || s.Backlog != 4000 {
			t.Errorf("%s, short: %+v, %v", kind, s, err)
		}
	}
	for _, kind := range []string{"tbf", "noqueue", "mq", "htb"} {
		if _, s, err := parse(message(kind, 1, count(12))); err != nil || s.CountsMarks || s.Kind != kind || s.Backlog != 1 {
			t.Errorf("%s: %+v, %v", kind, s, err)
		}
	}
}

func TestMessagesThatAreCutAreErrors(t *testing.T) {
	m := message("red", 1, words(1, 2, 3, 4))
	for _, tt := range []struct {
		m    []byte
		want string
	}{
		{m[:19], "shorter than struct tcmsg"},
		{m[:len(m)-1], "longer than the message"},
		{append(words(0, 7, 0, 0, 0), attr(tcaStats2, []byte{200, 0, 1, 0})...), "statistics"},
	} {
		if _, _, err := parse(tt.m); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%x: %v, want %q", tt.m, err, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(message("red", 1, words(1, 2, 3, 4)))
	f.Add(message("cake", 1, attr(cakeTins, attr(1, attr(cakeMarks, words(1))))))
	f.Add(message("fq", 1, make([]byte, 96)))
	f.Fuzz(func(t *testing.T, m []byte) {
		if _, s, err := parse(m); err == nil && s.Marks != 0 && !s.CountsMarks {
			t.Errorf("%+v", s)
		}
	})
}
