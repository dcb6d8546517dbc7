package guard

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestFrame holds RFC 4271 section 6.1 and RFC 8654 section 4.
func TestFrame(t *testing.T) {
	ones := strings.Repeat("ff", 16)
	for _, c := range []struct {
		name, header string
		n            int
		fault        [2]uint8
		data         string
	}{
		{name: "KEEPALIVE", header: ones + "0013 04", n: 19},
		{name: "UPDATE of the greatest length", header: ones + "1000 02", n: 4096},
		{name: "NOTIFICATION of the least length", header: ones + "0015 03", n: 21},
		{name: "marker", header: "fe" + ones[2:] + "0013 04", fault: [2]uint8{1, 1}},
		{name: "last octet of the marker", header: ones[2:] + "00 0013 04", fault: [2]uint8{1, 1}},
		{name: "length below a header's", header: ones + "0012 04", fault: [2]uint8{1, 2}, data: "0012"},
		{name: "length zero", header: ones + "0000 02", fault: [2]uint8{1, 2}, data: "0000"},
		{name: "length above 4096", header: ones + "1001 02", fault: [2]uint8{1, 2}, data: "1001"},
		{name: "KEEPALIVE with a body", header: ones + "0014 04", fault: [2]uint8{1, 2}, data: "0014"},
		{name: "short OPEN", header: ones + "001c 01", fault: [2]uint8{1, 2}, data: "001c"},
		{name: "short UPDATE", header: ones + "0016 02", fault: [2]uint8{1, 2}, data: "0016"},
		{name: "short NOTIFICATION", header: ones + "0014 03", fault: [2]uint8{1, 2}, data: "0014"},
		{name: "short ROUTE-REFRESH", header: ones + "0016 05", fault: [2]uint8{1, 2}, data: "0016"},
		{name: "type 0", header: ones + "0013 00", fault: [2]uint8{1, 3}, data: "00"},
		{name: "type 6", header: ones + "0013 06", fault: [2]uint8{1, 3}, data: "06"},
		{name: "type 255", header: ones + "0013 ff", fault: [2]uint8{1, 3}, data: "ff"},
		{name: "cut short", header: ones, fault: [2]uint8{1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, f := New(Config{}).FrameLen(hx(c.header))
			if c.fault == [2]uint8{} {
				if f != nil || n != c.n {
					t.Fatalf("%d, %v", n, f)
				}
				return
			}
			if f == nil || [2]uint8{f.Code, f.Subcode} != c.fault || !bytes.Equal(f.Data, hx(c.data)) {
				t.Fatalf("%d, %+v", n, f)
			}
		})
	}
}

func TestExtendedMessagesOnlyWhenBothOffer(t *testing.T) {
	long := append(bytes.Repeat([]byte{0xff}, 16), 0xff, 0xff, typeUpdate)
	open := append(bytes.Repeat([]byte{0xff}, 16), 0x20, 0, typeOpen)
	for _, c := range []struct {
		ours, theirs string
		want         bool
	}{{as4, as4, false}, {as4 + "0600", as4, false}, {as4, as4 + "0600", false}, {as4 + "0600", as4 + "0600", true}} {
		s := New(Config{Families: families})
		s.ToPeer(openOf(c.ours))
		s.FromPeer(openOf(c.theirs))
		if n, f := s.FrameLen(long); (f == nil) != c.want || c.want && n != MaxExtendedLen {
			t.Errorf("ours %s theirs %s: %d, %v", c.ours, c.theirs, n, f)
		}
		if _, f := s.FrameLen(open); f == nil {
			t.Error("a long OPEN was accepted")
		}
	}
}

func TestMessageMustBeAsLongAsItSays(t *testing.T) {
	m := message(typeKeepalive, nil)
	if v := New(Config{}).FromPeer(append(m, 0)); v.Fault == nil || v.Fault.Code != 1 || v.Fault.Subcode != 2 {
		t.Errorf("%+v", v)
	}
}

// TestOrder holds RFC 6608 section 4: the subcode says the state, the data the message.
func TestOrder(t *testing.T) {
	open, alive := openOf(as4), message(typeKeepalive, nil)
	update, refresh := updateOf("", "", ""), message(typeRouteRefresh, hx("0001 00 01"))
	notification := message(typeNotification, hx("06 02"))
	for _, c := range []struct {
		name   string
		before [][]byte
		msg    []byte
		sub    uint8 // zero: it is expected
	}{
		{"OPEN first", nil, open, 0},
		{"NOTIFICATION first", nil, notification, 0},
		{"KEEPALIVE first", nil, alive, 1},
		{"UPDATE first", nil, update, 1},
		{"ROUTE-REFRESH first", nil, refresh, 1},
		{"KEEPALIVE after OPEN", [][]byte{open}, alive, 0},
		{"NOTIFICATION after OPEN", [][]byte{open}, notification, 0},
		{"OPEN after OPEN", [][]byte{open}, open, 2},
		{"UPDATE after OPEN", [][]byte{open}, update, 2},
		{"ROUTE-REFRESH after OPEN", [][]byte{open}, refresh, 2},
		{"OPEN when established", [][]byte{open, alive}, open, 3},
		{"KEEPALIVE when established", [][]byte{open, alive}, alive, 0},
		{"UPDATE when established", [][]byte{open, alive}, update, 0},
		{"NOTIFICATION when established", [][]byte{open, alive}, notification, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(Config{Families: families})
			s.ToPeer(open)
			for _, m := range c.before {
				if v := s.FromPeer(m); v.Fault != nil {
					t.Fatal(v.Fault)
				}
			}
			v := s.FromPeer(c.msg)
			if c.sub == 0 {
				if v.Fault != nil || !bytes.Equal(v.Pass, c.msg) {
					t.Fatalf("%+v", v)
				}
				return
			}
			if f := v.Fault; f == nil || f.Code != 5 || f.Subcode != c.sub || !bytes.Equal(f.Data, c.msg[18:19]) {
				t.Fatalf("%+v", v.Fault)
			}
		})
	}
}

func TestUpdateBeforeOurOpenEndsTheSession(t *testing.T) {
	s := New(Config{Families: families})
	s.FromPeer(openOf(as4))
	s.FromPeer(message(typeKeepalive, nil))
	if v := s.FromPeer(updateOf("", "", "")); v.Fault == nil || v.Fault.Code != 5 || v.Fault.Subcode != 1 {
		t.Errorf("%+v", v)
	}
}

// TestRouteRefresh holds RFC 2918 sections 3 and 4 and RFC 7313 section 5.
func TestRouteRefresh(t *testing.T) {
	const enhanced = as4 + "4600"
	for _, c := range []struct {
		name, caps, body string
		pass             string // body; empty: nothing
		fault            [2]uint8
		finds            []Finding
	}{
		{name: "request", caps: as4, body: "0001 00 01", pass: "0001 00 01"},
		{name: "4 of a family that wasn't negotiated", caps: as4, body: "0019 00 46", finds: noFamily(0, Family{25, 70})},
		{name: "3 the reserved octet is ignored", caps: as4, body: "0002 07 01", pass: "0002 07 01"},
		{name: "with filters that weren't offered", caps: as4, body: "0001 00 01 01 40 0000", pass: "0001 00 01",
			finds: []Finding{{WrongLength, Discarded, 0, Family{1, 1}}}},
		{name: "7313 4 demarcation", caps: enhanced, body: "0001 01 01"},
		{name: "7313 5 demarcation of another length", caps: enhanced, body: "0001 02 01 00", fault: [2]uint8{7, 1}},
		{name: "7313 5 unknown subtype", caps: enhanced, body: "0001 03 01", finds: finding(UnknownSubtype, Discarded, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sessionOf(t, Config{}, c.caps)
			v := s.FromPeer(message(typeRouteRefresh, hx(c.body)))
			if c.fault != [2]uint8{} {
				if v.Fault == nil || [2]uint8{v.Fault.Code, v.Fault.Subcode} != c.fault {
					t.Fatalf("%+v", v)
				}
				return
			}
			var want []byte
			if c.pass != "" {
				want = message(typeRouteRefresh, hx(c.pass))
			}
			if v.Fault != nil || !bytes.Equal(v.Pass, want) || !slices.Equal(v.Findings, c.finds) {
				t.Fatalf("%+v, want %x %v", v, want, c.finds)
			}
		})
	}
}

// TestFaultData holds RFC 4271 section 6.3: the NOTIFICATION carries the attribute.
func TestFaultData(t *testing.T) {
	bad := "80 04 03 000000"
	f := sessionOf(t, Config{}, as4).FromPeer(updateOf("", bad, "")).Fault
	if f == nil || !bytes.Equal(f.Data, hx(bad)) {
		t.Fatalf("%+v", f)
	}
	if want := message(typeNotification, append([]byte{3, 5}, hx(bad)...)); !bytes.Equal(f.Notification(), want) {
		t.Errorf("%x, want %x", f.Notification(), want)
	}
	f = &Fault{Code: 3, Subcode: 9, Data: make([]byte, MaxLen)}
	if n := len(f.Notification()); n != MaxLen {
		t.Errorf("NOTIFICATION of %d octets", n)
	}
}

// TestWithdrawForm holds what is passed when GoBGP's decoder refused a message.
func TestWithdrawForm(t *testing.T) {
	for _, c := range []struct {
		name  string
		attrs string
		pass  []byte
		finds []Finding
	}{
		{"RFC 8669 6 Prefix-SID is discarded", aBase + "c0 28 03 010000", updateOf("", aBase, nlri10), finding(Undecodable, Discarded, 40)},
		{"RFC 6514 5 PMSI_TUNNEL withdraws", aBase + "c0 16 01 00", w10[0], finding(Undecodable, Withdrawn, 0)},
		{"both withdraw", aBase + "c0 16 01 00 c0 28 03 010000", w10[0], finding(Undecodable, Withdrawn, 0)},
		{"unknown attribute withdraws", aBase + "c0 fa 01 00", w10[0], finding(Undecodable, Withdrawn, 0)},
		{"nothing to blame withdraws", aBase, w10[0], finding(Undecodable, Withdrawn, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sessionOf(t, Config{}, as4)
			pass := s.FromPeer(updateOf("", c.attrs+"40 06 01 00", nlri10)).Pass // rewritten: without the last
			v := s.Withdraw(pass)
			if v.Fault != nil || v.Unsure || !bytes.Equal(v.Pass, c.pass) || !slices.Equal(v.Findings, c.finds) {
				t.Errorf("%+v, want %x %v", v, c.pass, c.finds)
			}
		})
	}
	s := sessionOf(t, Config{}, as4)
	for _, m := range [][]byte{nil, message(typeKeepalive, nil), message(typeUpdate, hx("0009 0000"))} {
		if v := s.Withdraw(m); v.Pass != nil || v.Fault != nil {
			t.Errorf("Withdraw(%x) = %+v", m, v)
		}
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds() {
		if n := k.String(); n == "" || n == "unknown" || seen[n] {
			t.Errorf("kind %d is named %q", k, n)
		}
		seen[k.String()] = true
	}
	for _, a := range []Action{Mended, Discarded, Withdrawn} {
		if a.String() == "" || a.String() == "unknown" {
			t.Errorf("action %d has no name", a)
		}
	}
	if Kind(0).String() != "unknown" || Kind(200).String() != "unknown" || Action(0).String() != "unknown" || Action(9).String() != "unknown" {
		t.Error("what isn't there has a name")
	}
}
