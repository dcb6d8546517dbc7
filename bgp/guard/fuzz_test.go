package guard

import (
	"bytes"
	"slices"
	"testing"
)

// fuzzed is a session by the low bits of how.
func fuzzed(t testing.TB, how uint8) *Session {
	caps := capsFamilies
	if how&1 == 0 {
		caps += capsAS4
	}
	if how&2 != 0 {
		caps += capsAddPath
	}
	if how&4 != 0 {
		caps += capsHop
	}
	cfg := Config{EBGP: how&8 != 0}
	if how&16 != 0 {
		cfg.Families = []Family{{2, 1}}
	}
	return sessionOf(t, cfg, caps)
}

// FuzzFromPeer: no UPDATE makes it panic; what it passes, it passes again as it is; what it passes instead
// of an UPDATE that was refused, too.
func FuzzFromPeer(f *testing.F) {
	for _, c := range slices.Concat(updateCases, mpCases, asCases) {
		for _, how := range []uint8{0, 1, 2, 4, 8, 16} {
			f.Add(how, uint8(typeUpdate), c.msg()[HeaderLen:])
		}
	}
	for _, c := range openCases {
		f.Add(uint8(0), uint8(typeOpen), c.msg[HeaderLen:])
	}
	f.Add(uint8(0), uint8(typeRouteRefresh), hx("0001 00 01"))
	f.Add(uint8(0), uint8(typeNotification), hx("0602 03 616263"))
	f.Add(uint8(0), uint8(9), hx("00"))
	f.Fuzz(func(t *testing.T, how, typ uint8, body []byte) {
		if len(body) > MaxLen-HeaderLen {
			return
		}
		s := fuzzed(t, how)
		if typ == typeOpen {
			s = New(Config{Families: families})
			s.ToPeer(openOf(capsFamilies))
		}
		msg := message(typ, body)
		before := slices.Clone(msg)
		v := s.FromPeer(msg)
		if !bytes.Equal(msg, before) {
			t.Fatal("the message was changed in place")
		}
		if v.Fault != nil {
			if v.Pass != nil || v.Findings != nil || len(v.Fault.Notification()) > MaxLen {
				t.Fatalf("verdict %+v", v)
			}
			return
		}
		if typ == typeOpen {
			again := New(Config{Families: families})
			pass := slices.Clone(v.Pass)
			if w := again.FromPeer(pass); w.Fault != nil || !bytes.Equal(w.Pass, pass) || len(w.Findings) > 0 {
				t.Fatalf("OPEN passed as %x becomes %+v", pass, w)
			}
			return
		}
		if slices.ContainsFunc(s.update.edits, func(e edit) bool { return e.op == widen }) {
			return // GoBGP is to read the path with four octets, the neighbour sends two
		}
		unsure := v.Unsure
		passed := split(t, s, slices.Clone(v.Pass))
		for _, m := range passed {
			stays(t, s, m)
		}
		if !unsure {
			return
		}
		for _, m := range passed {
			for _, w := range split(t, s, slices.Clone(s.Withdraw(m).Pass)) {
				stays(t, s, w)
				if s.FromPeer(w).Unsure {
					t.Fatalf("%x, passed instead of %x, is unsure", w, m)
				}
			}
		}
	})
}

// stays checks that a message that was passed is passed again as it is.
func stays(t *testing.T, s *Session, m []byte) {
	t.Helper()
	if v := s.FromPeer(m); v.Fault != nil || !bytes.Equal(v.Pass, m) || len(v.Findings) > 0 {
		t.Fatalf("%x becomes %x: %v %v", m, v.Pass, v.Fault, v.Findings)
	}
}
