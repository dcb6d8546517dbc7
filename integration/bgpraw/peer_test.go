package bgpraw

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is two peers that speak with each other.
func pair(t *testing.T) (a, b *Peer) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = Dial(t.Context(), netip.MustParseAddr("127.0.0.2"), netip.MustParseAddrPort(l.Addr().String())); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	b = New(conn)
	t.Cleanup(a.Close)
	t.Cleanup(b.Close)
	return a, b
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestSessionComesUpAndEndsWithTheNotification(t *testing.T) {
	ctx := deadline(t)
	a, b := pair(t)
	open := OpenBytes(64512, 90, netip.MustParseAddr("10.0.0.1"), Hex("0104 0001 00 01"))
	other := make(chan error, 1)
	go func() {
		_, err := b.Establish(ctx, open)
		other <- err
	}()
	theirs, err := a.Establish(ctx, open)
	if err := errors.Join(err, <-other); err != nil || !bytes.Equal(theirs.Body, open[HeaderLen:]) {
		t.Fatalf("%x, %v", theirs.Body, err)
	}
	if !a.Alive() {
		t.Error("the session has ended")
	}
	if err := b.Send(Bytes(Update, nil), Bytes(Notification, Hex("0304 aa"))); err != nil {
		t.Fatal(err)
	}
	if code, err := a.Ended(ctx); err != nil || code != (Code{3, 4}) {
		t.Errorf("%v, %v", code, err)
	}
}

func TestEndWithoutNotification(t *testing.T) {
	ctx := deadline(t)
	a, b := pair(t)
	if err := b.Send(Bytes(Keepalive, nil)); err != nil {
		t.Fatal(err)
	}
	if err := b.conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if m, err := a.Next(ctx); err != nil || m.Type != Keepalive {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := a.Next(ctx); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want EOF", err)
	}
	if code, err := a.Ended(ctx); err != nil || code != (Code{}) {
		t.Errorf("%v, %v", code, err)
	}
	if a.Alive() {
		t.Error("a closed connection is alive")
	}
}

func TestMessages(t *testing.T) {
	got := UpdateBytes(Hex("08 0a"), Hex("400101 00"), Prefix(netip.MustParsePrefix("192.0.2.0/25")))
	want := Hex("ffffffffffffffffffffffffffffffff 0022 02 0002 08 0a 0004 40010100 19 c0000200")
	if !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
	if c := (Message{Type: Keepalive}).Code(); c != (Code{}) {
		t.Error(c)
	}
	if s := (Code{3, 10}).String(); s != "3/10" {
		t.Error(s)
	}
}
