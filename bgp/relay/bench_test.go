package relay

import (
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
)

// BenchmarkLeg writes messages of 4096 octets over loopback, with the key of a leg and without: what
// TCP MD5 costs.
func BenchmarkLeg(b *testing.B) {
	for name, key := range map[string]string{"md5": "0123456789abcdef", "plain": ""} {
		b.Run(name, func(b *testing.B) {
			from := netip.MustParseAddr("127.64.0.9")
			l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			if key != "" {
				raw, _ := l.SyscallConn()
				if err := onSocket(raw, func(fd int) error { return setKey(fd, from, key) }); err != nil {
					b.Fatal(err)
				}
			}
			c, err := dialInside(context.Background(), from, addrPort(l.Addr()), key)
			if err != nil {
				b.Fatal(err)
			}
			in, err := l.Accept()
			if err != nil {
				b.Fatal(err)
			}
			done := make(chan struct{})
			go func() { io.Copy(io.Discard, in); in.Close(); close(done) }()
			leg := newLeg(c)
			msg := update(1018)
			b.SetBytes(int64(len(msg)))
			for b.Loop() {
				if err := leg.send(msg, false); err != nil {
					b.Fatal(err)
				}
			}
			leg.flush()
			c.Close()
			<-done
		})
	}
}
