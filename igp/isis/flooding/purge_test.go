package flooding

import (
	"testing"
	"time"

	"pncd/igp/internal/exchanges"
	"pncd/igp/isis/auth"
	"pncd/igp/isis/packet"
)

// RFC 5304 section 2: neighbours with keys refuse a purge that isn't authenticated, also when it is that of an
// LSP whose lifetime has ended.
func TestWhatIsExpiredIsAuthenticated(t *testing.T) {
	s := newScript(exchanges.New(t))
	k := auth.Key{ID: 1, Algorithm: auth.HMACSHA256, Secret: "s"}
	chain := auth.Chain{Send: k, Accept: []auth.Key{k}}
	s.m.SetSign(s.Now, chain.Sign)
	for id := range CircuitID(2) {
		s.m.CircuitUp(s.Now, id, CircuitConfig{MTU: 1492})
	}
	lsp := s.build(s.id("2.00-00"), 5, 1000, "")
	if err := s.m.ReceiveLSP(s.Now, 0, lsp); err != nil {
		t.Fatal(err)
	}
	purges := 0
	for end := s.Now.Add(DefaultLSPLifetime + time.Second); s.Now.Before(end); s.Now = s.Now.Add(time.Second) {
		for _, out := range s.m.Tick(s.Now) {
			if typ, _ := packet.Type(out.PDU); typ != packet.L2LSP {
				continue
			}
			p, err := packet.ParseLSP(out.PDU)
			if err != nil {
				t.Fatal(err)
			}
			if p.Lifetime != 0 {
				continue
			}
			purges++
			if err := chain.Verify(out.PDU); err != nil {
				t.Fatalf("%x: %v", out.PDU, err)
			}
		}
	}
	if purges == 0 {
		t.Error("no purge")
	}
}
