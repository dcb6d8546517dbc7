package learner

import (
	"net/netip"
	"testing"
	"time"

	"pncd/igp/ospf/marks"
	"pncd/igp/ospf/ospfapi/message"
)

// FuzzNotify holds that nothing that the daemon may say, in any order, brings the machine down, and that it is
// never due again and again without anything to do.
func FuzzNotify(f *testing.F) {
	add := func(list ...message.Body) {
		var b []byte
		for _, body := range list {
			var err error
			if b, err = (message.Message{Body: body}).Append(b); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(b)
	}
	mark := marked(f, router2, 0)
	add(message.LSAChange{LSA: routerLSA(f, ownRouter, 0, router2)}, message.LSAChange{LSA: routerLSA(f, router2, 0, ownRouter)},
		message.LSAChange{LSA: mark}, message.LSAChange{LSA: mark, Deleted: true})
	add(message.RouterID{ID: 7}, message.InterfaceState{Interface: itsAddr, State: 1}, message.DelInterface{Interface: itsAddr}, message.Reply{})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := New(Config{Carrier: marks.Carrier{Bit: 2}})
		if err != nil {
			t.Fatal(err)
		}
		d := &daemon{t: t, m: m, now: start, instance: true}
		m.Connected(d.now, 1, []netip.Addr{itsAddr})
		d.answer()
		for len(b) >= message.HeaderLen {
			h, err := message.ParseHeader(b)
			n := message.HeaderLen + int(h.Length)
			if err != nil || n > len(b) {
				break
			}
			if in, err := message.Parse(b[:n]); err != nil {
				m.Unreadable()
			} else if err := m.Notify(d.now, in); err != nil {
				m.Disconnected(d.now)
				d.connect()
			}
			b = b[n:]
			d.pass(100 * time.Millisecond)
		}
		d.pass(2 * time.Second)
		m.Disconnected(d.now)
		d.pass(time.Minute)
		if st := m.Status(); st.Believed || len(st.Areas) != 0 {
			t.Fatalf("still believed without a daemon: %+v", st)
		}
	})
}
