package bgp_test

import (
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pncd/bgp"
	"pncd/bgp/speakertest"
)

// From a router's TCP connection to another neighbour's, through the real engine: what inline passes on has every
// attribute of the router's as it was, and beside it only what reflection and the PNC add.
func TestInlineIsFaithfulOnTheWire(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	router, collector := peerAt(100), peerAt(101)
	cfg := exactly(port, 65000, atA, bgp.NeighborConfig{Address: router, Passive: true}, bgp.NeighborConfig{Address: collector, Passive: true})
	cfg.Originate = []bgp.OriginateConfig{{Prefix: prefix("192.0.2.0/24"), Mode: bgp.ModeInline, Proxy: addr("198.51.100.7"), From: router}}
	p := start(t, cfg)
	p.Must(request{Enable: ptr(true)})

	sent := []string{
		"40 01 01 01",                                     // ORIGIN
		"40 02 0a 02 02 0000fde9 0000fdea",                // AS_PATH
		"40 03 04 c6336401",                               // NEXT_HOP
		"80 04 04 00000032",                               // MULTI_EXIT_DISC
		"40 05 04 000000c8",                               // LOCAL_PREF
		"40 06 00",                                        // ATOMIC_AGGREGATE
		"c0 07 08 0000fde9 c6336409",                      // AGGREGATOR
		"e0 08 08 fde80001 fde9002a",                      // COMMUNITIES, Partial from before
		"c0 10 10 0002fde800000001 0106c63364010002",      // extended
		"c0 20 0c 0000fde80000000100000002",               // large
		"c0 23 04 0000fde9",                               // ONLY_TO_CUSTOMER, which is not known here
		"c0 27 10 0001 01 04 c6336401 0100 0004 abcdef01", // NHC of the router's own
		"80 62 02 0102",                                   // unknown, not transitive
		"c0 63 03 010203",                                 // unknown
		"e0 64 02 0405",                                   // unknown, Partial from before
		"d0 65 0104" + strings.Repeat("5a", 0x104),        // unknown, long
	}
	want := map[uint8]string{}
	for _, s := range sent {
		b := octets(t, s)
		want[b[1]] = hex.EncodeToString(b)
	}
	delete(want, 0x62) // RFC 4271 section 5: an unknown attribute that is not transitive goes no further,
	for _, unknown := range []uint8{0x23, 0x63, 0x65} {
		b := octets(t, want[unknown])
		b[0] |= 0x20 // and one that is goes on with the Partial bit
		want[unknown] = hex.EncodeToString(b)
	}
	want[39] = hex.EncodeToString(octets(t, "e0 27 18 0001 01 04 c6336401 0100 0004 abcdef01 ff78 0004 c6336407"))
	want[9] = hex.EncodeToString(append(octets(t, "80 09 04"), router.AsSlice()...))     // ORIGINATOR_ID: the router
	want[10] = hex.EncodeToString(append(octets(t, "80 0a 04"), addr(atA).AsSlice()...)) // CLUSTER_LIST: this node

	updates := make(chan []byte, 16)
	wirePeer(t, port, 101, nil, updates)
	attrs := octets(t, strings.Join(sent, ""))
	body := binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(len(attrs)))
	wirePeer(t, port, 100, message(2, append(append(body, attrs...), 24, 192, 0, 2)), nil)

	deadline := time.After(speakertest.Deadline)
	for {
		select {
		case m := <-updates:
			got, nlri := readUpdate(t, m)
			if hex.EncodeToString(nlri) != "18c00002" {
				continue // End-of-RIB
			}
			for typ, w := range want {
				if got[typ] != w {
					t.Errorf("attribute %d: got %s, want %s", typ, got[typ], w)
				}
				delete(got, typ)
			}
			if len(got) != 0 {
				t.Errorf("added: %v", got)
			}
			return
		case <-deadline:
			t.Fatalf("no UPDATE for the prefix; %s", p.Ask(request{}))
		}
	}
}

// readUpdate gives the attributes of an UPDATE by type, in hexadecimal, and its NLRI.
func readUpdate(t *testing.T, body []byte) (attrs map[uint8]string, nlri []byte) {
	t.Helper()
	b := body[2+int(binary.BigEndian.Uint16(body)):]
	n := int(binary.BigEndian.Uint16(b))
	all, nlri := b[2:2+n], b[2+n:]
	attrs = map[uint8]string{}
	for len(all) > 0 {
		size := 3 + int(all[2])
		if all[0]&0x10 != 0 {
			size = 4 + int(binary.BigEndian.Uint16(all[2:]))
		}
		if attrs[all[1]] != "" {
			t.Errorf("attribute %d is there twice", all[1])
		}
		attrs[all[1]] = hex.EncodeToString(all[:size])
		all = all[size:]
	}
	return attrs, nlri
}

// wirePeer keeps a session as peer n until the end of the test, sends a message when it is up, and hands on the bodies of
// the UPDATEs that come.
func wirePeer(t *testing.T, port, n int, first []byte, updates chan<- []byte) {
	t.Helper()
	c := rawConn(t, port, n, first)
	done := make(chan struct{})
	go func() {
		defer close(done)
		header := make([]byte, 19)
		for {
			if _, err := io.ReadFull(c, header); err != nil {
				return
			}
			body := make([]byte, int(binary.BigEndian.Uint16(header[16:]))-19)
			if _, err := io.ReadFull(c, body); err != nil {
				return
			}
			if header[18] == 2 && updates != nil {
				updates <- slices.Clone(body)
			}
		}
	}()
	t.Cleanup(func() { c.Close(); <-done })
}

// rawConn connects as peer n, whose AS is 65000, and opens. A connection that the speaker closes before its OPEN came
// too early.
func rawConn(t *testing.T, port, n int, first []byte) net.Conn {
	t.Helper()
	open := append(octets(t, "04 fde8 005a"), peerAt(n).AsSlice()...)
	open = append(open, octets(t, "10 0206 0104 00010001 0206 4104 0000fde8")...)
	all := slices.Concat(message(1, open), message(4, nil), first)
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: peerAt(n).AsSlice()}}
	for end := time.Now().Add(speakertest.Deadline); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		c, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(atA, strconv.Itoa(port)))
		if err != nil {
			t.Fatal(err)
		}
		header := make([]byte, 19)
		if _, err := io.ReadFull(c, header); err != nil || header[18] != 1 {
			c.Close()
			continue
		}
		if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint16(header[16:]))-19); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(all); err != nil {
			t.Fatal(err)
		}
		return c
	}
	t.Fatalf("%s got no session", peerAt(n))
	return nil
}
