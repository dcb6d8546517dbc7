package flooding

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pncd/igp/backoff"
	"pncd/igp/internal/exchanges"
	"pncd/igp/isis/packet"
)

// The exchanges of testdata/exchanges.txt: PDUs and times in, PDUs and the state of the database out.
//
//	== name, or the trap that it holds
//	up 1 | up 1 lan | up 1 lan dis       a circuit comes up, point-to-point unless said otherwise
//	down 1
//	resync 1                             a neighbour of the circuit restarts
//	generation 50ms 200ms 5s             the back-off of own LSPs; without it at most one version in 5 s
//	own 1.00-00 [text] | unown 1.00-00 | stop
//	> 1 lsp 2.00-00 5 [life=900] [text=x] [badsum]      a PDU arrives
//	> 1 psnp|csnp 2.00-00/5 ...          entries: ID/sequence, then /0 for a lifetime of zero, /x for another checksum
//	! text                               the PDU before was refused with this text
//	. 2s                                 time passes, Tick is called at each Wake; what is sent must follow:
//	< 1 lsp 2.00-00 5 [purge] [text=x] [life=900]
//	< 1 psnp|csnp 2.00-00/5 ...          in a csnp or psnp /0 is a lifetime of zero; sequence 0 asks
//	= 2.00-00 5 [purge] | = 2.00-00 none
//
// System 1 is this one. LSPs have a lifetime of 1000 s unless said otherwise.
func TestExchanges(t *testing.T) {
	for _, e := range exchanges.Read(t, "testdata/exchanges.txt", 45) {
		e.Run(t, e.Name, func(s *exchanges.Script) exchanges.Verbs {
			s.Matches = matches
			return newScript(s)
		})
	}
}

type script struct {
	*exchanges.Script
	m *Machine
}

func newScript(s *exchanges.Script) *script {
	return &script{
		Script: s,
		m: New(Config{System: packet.SystemID{5: 1}, Level: packet.Level2, Jitter: func() float64 { return 0 }, MaxLSPs: 20, MaxSSN: 8,
			Generation: backoff.Config{Second: 5 * time.Second, Max: 5 * time.Second}}),
	}
}

func (s *script) Wake() time.Time { return s.m.Wake() }

func (s *script) Do(f []string) bool {
	switch f[0] {
	case "up":
		c := CircuitConfig{MTU: 1492, LAN: slices.Contains(f, "lan"), Designated: slices.Contains(f, "dis")}
		s.m.CircuitUp(s.Now, s.circuit(f[1]), c)
	case "resync":
		s.m.Resync(s.Now, s.circuit(f[1]))
	case "down":
		s.m.CircuitDown(s.circuit(f[1]))
	case "generation":
		c := s.m.cfg
		for i, d := range []*time.Duration{&c.Generation.Initial, &c.Generation.Second, &c.Generation.Max} {
			*d = s.Duration(f[1+i])
		}
		s.m.Retime(s.Now, c)
	case "own":
		s.m.Originate(s.Now, s.id(f[1]), 3, text(strings.Join(f[2:], " ")))
	case "unown":
		if err := s.m.Withdraw(s.Now, s.id(f[1])); err != nil {
			s.Fatalf("%v", err)
		}
	case "stop":
		if err := s.m.WithdrawAll(s.Now); err != nil {
			s.Fatalf("%v", err)
		}
	case ">":
		s.receive(s.circuit(f[1]), f[2], f[3:])
	case "=":
		s.state(f[1:])
	default:
		return false
	}
	return true
}

// matches compares word by word; life= needs to be said only where it matters.
func matches(got, want string) bool {
	if strings.Contains(want, "life=") {
		return got == want
	}
	words := slices.DeleteFunc(strings.Fields(got), func(w string) bool { return strings.HasPrefix(w, "life=") })
	return strings.Join(words, " ") == want
}

func (s *script) Tick() (sent []string) {
	for _, out := range s.m.Tick(s.Now) {
		sent = append(sent, s.describe(out))
	}
	return sent
}

func (s *script) describe(out Send) string {
	typ, err := packet.Type(out.PDU)
	if err != nil {
		s.Fatalf("sent %x: %v", out.PDU, err)
	}
	if typ == packet.L2LSP {
		p, err := packet.ParseLSP(out.PDU)
		if err != nil {
			s.Fatalf("sent %x: %v", out.PDU, err)
		}
		what := fmt.Sprintf("%d lsp %s %d", out.Circuit, short(p.ID), p.Sequence)
		if p.Lifetime == 0 {
			return what + " purge"
		}
		if !packet.ChecksumOK(out.PDU) {
			s.Fatalf("sent with a wrong checksum: %x", out.PDU)
		}
		if v, ok := p.TLVs.First(250); ok {
			what += " text=" + string(v)
		}
		return what + fmt.Sprintf(" life=%d", p.Lifetime)
	}
	p, err := packet.ParseSNP(out.PDU)
	if err != nil {
		s.Fatalf("sent %x: %v", out.PDU, err)
	}
	what := fmt.Sprintf("%d psnp", out.Circuit)
	if p.Complete() {
		what = fmt.Sprintf("%d csnp", out.Circuit)
	}
	entries, err := p.TLVs.Entries()
	if err != nil {
		s.Fatalf("%v", err)
	}
	for _, e := range entries {
		what += fmt.Sprintf(" %s/%d", short(e.ID), e.Sequence)
		if e.Lifetime == 0 && e.Sequence != 0 {
			what += "/0"
		}
	}
	return what
}

func (s *script) receive(from CircuitID, kind string, f []string) {
	if kind == "lsp" {
		s.Refused(s.m.ReceiveLSP(s.Now, from, s.lsp(f)))
		return
	}
	p := packet.SNP{Header: packet.Header{Type: packet.L2PSNP}, Source: packet.SystemID{5: 2}.Node(0)}
	if kind == "csnp" {
		p.Type, p.End = packet.L2CSNP, packet.MaxLSPID
	}
	var entries []packet.Entry
	for _, w := range f {
		if r, ok := strings.CutPrefix(w, "to="); ok { // the end of a CSNP's range
			p.End = s.id(r)
			continue
		}
		parts := strings.Split(w, "/")
		seq := s.number(parts[1])
		e := packet.Entry{ID: s.id(parts[0]), Sequence: seq, Lifetime: 1000}
		if raw := s.build(e.ID, seq, 1000, ""); seq != 0 {
			lsp, _ := packet.ParseLSP(raw)
			e.Checksum = lsp.Checksum
		}
		if have := s.m.DB().Get(e.ID); have != nil && have.Sequence == seq {
			e.Checksum = have.Checksum
		}
		if len(parts) > 2 {
			switch parts[2] {
			case "0":
				e.Lifetime = 0
			case "x":
				e.Checksum ^= 0x0101
			}
		}
		entries = append(entries, e)
	}
	p.TLVs = packet.EntryTLVs(entries)
	raw, err := p.Append(nil)
	if err != nil {
		s.Fatalf("%v", err)
	}
	s.Refused(s.m.ReceiveSNP(s.Now, from, raw))
}

// lsp builds an LSP as another system sends it.
func (s *script) lsp(f []string) []byte {
	id, seq, life, content, bad := s.id(f[0]), s.number(f[1]), uint32(1000), "", false
	for _, w := range f[2:] {
		if v, ok := strings.CutPrefix(w, "life="); ok {
			life = s.number(v)
		} else if v, ok := strings.CutPrefix(w, "text="); ok {
			content = v
		} else if w == "badsum" {
			bad = true
		} else {
			s.Fatalf("unknown %q", w)
		}
	}
	raw := s.build(id, seq, uint16(life), content)
	if bad {
		raw[24] ^= 0x40
	}
	return raw
}

func (s *script) build(id packet.LSPID, seq uint32, life uint16, content string) []byte {
	p := packet.LSP{Header: packet.Header{Type: packet.L2LSP}, ID: id, Sequence: seq, Lifetime: life, Flags: 3, TLVs: text(content)}
	raw, err := p.Append(nil)
	if err != nil {
		s.Fatalf("%v", err)
	}
	packet.SetChecksum(raw)
	return raw
}

// text is the content of an LSP: a TLV that nobody knows.
func text(v string) packet.TLVs {
	if v == "" {
		return nil
	}
	return packet.TLVs{{Type: 250, Value: []byte(v)}}
}

func (s *script) state(f []string) {
	e := s.m.DB().Get(s.id(f[0]))
	if f[1] == "none" {
		if e != nil {
			s.Fatalf("is %+v", e.Version)
		}
		return
	}
	purged := len(f) > 2 && f[2] == "purge"
	if e == nil || e.Sequence != s.number(f[1]) || e.Purged != purged {
		s.Fatalf("is %+v", e)
	}
}

func (s *script) circuit(w string) CircuitID { return CircuitID(s.number(w)) }

func (s *script) number(w string) uint32 {
	if w == "max" {
		return 0xFFFFFFFF
	}
	n, err := strconv.ParseUint(w, 10, 32)
	if err != nil {
		s.Fatalf("%v", err)
	}
	return uint32(n)
}

// id reads the short form 2.00-00.
func (s *script) id(w string) (id packet.LSPID) {
	if _, err := fmt.Sscanf(w, "%x.%02x-%02x", &id[5], &id[6], &id[7]); err != nil {
		s.Fatalf("%q: %v", w, err)
	}
	return id
}

func short(id packet.LSPID) string {
	return strings.TrimPrefix(cmp.Or(strings.TrimLeft(id.String(), "0."), "0"), "")
}
