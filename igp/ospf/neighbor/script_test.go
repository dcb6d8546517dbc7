package neighbor

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pncd/igp/ospf/packet"
)

// The exchanges of testdata/exchanges.txt: packets and times in, packets and the state out. Each is run for
// OSPFv2 and OSPFv3, unless its name begins with one of them.
//
//	== name, or the trap that it holds
//	peer 1                               the neighbour's router ID; this system is 2, the neighbour 3 unless said otherwise
//	set mtu=576 | set mtu-ignore | set stub
//	db 9/5 10/5/3600                     the database: LSA/sequence/age; x9 is external, o9 opaque, u9 of an undefined type
//	undb 9
//	hello | hello oneway                 a hello that names this system, or doesn't; an adjacency is wanted
//	adj yes | adj no | kill | linkdown
//	> dd IMS 7 [mtu=9000] [stub] [noO] 9/5 ...
//	> req 9 10 | > ack
//	got 9 | bad                          the flooding machine: an LSA arrived; an older one than described arrived
//	help 60s [age=10s] [changed] [denied] | helpends
//	! reason                             the packet before was dropped, or helping refused, for this reason
//	. 2s                                 time passes, Tick is called at each Wake; what is sent must follow:
//	< dd IMS 100 9/5 ... | < req 9 10 | < upd 9/5 ...
//	= full [3]                           the state, and the length of the request list
//	maxage 10                            what the owner has to retransmit
func TestExchanges(t *testing.T) {
	raw, err := os.ReadFile("testdata/exchanges.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, part := range strings.Split("\n"+string(raw), "\n== ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		n++
		for _, v := range []packet.Version{packet.V2, packet.V3} {
			if strings.HasPrefix(name, "OSPFv") && !strings.HasPrefix(name, v.String()) {
				continue
			}
			t.Run(v.String()+"/"+name, func(t *testing.T) {
				s := newScript(t, v)
				for line := range strings.Lines(body) {
					line, _, _ = strings.Cut(line, "#")
					if f := strings.Fields(line); len(f) > 0 {
						s.line = strings.TrimSpace(line)
						s.do(f)
					}
				}
				s.settled()
			})
		}
	}
	if n < 30 {
		t.Errorf("%d exchanges", n)
	}
}

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// memory is a database for tests. Its LSAs don't age.
type memory struct {
	v    packet.Version
	lsas map[packet.Key]packet.LSA
}

func (d memory) Summary(time.Time) iter.Seq[packet.Header] {
	return func(yield func(packet.Header) bool) {
		for _, k := range slices.SortedFunc(maps.Keys(d.lsas), packet.Key.Compare) {
			if !yield(d.lsas[k].Header) {
				return
			}
		}
	}
}

func (d memory) Lookup(_ time.Time, k packet.Key) (packet.Header, bool) {
	l, ok := d.lsas[k]
	return l.Header, ok
}

func (d memory) Append(dst []byte, _ time.Time, k packet.Key) ([]byte, bool) {
	l, ok := d.lsas[k]
	return append(dst, l.Raw...), ok
}

type script struct {
	t    *testing.T
	cfg  Config
	peer packet.ID
	db   memory
	m    *Machine
	now  time.Time
	line string
	sent []string
	why  string
}

func newScript(t *testing.T, v packet.Version) *script {
	return &script{
		t: t, now: begin, peer: 3, db: memory{v, map[packet.Key]packet.LSA{}},
		cfg: Config{Version: v, Router: 2, Options: packet.OptionE, MTU: 1500, Sequence: 100},
	}
}

func (s *script) fatalf(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("%q: %s", s.line, fmt.Sprintf(format, args...))
}

func (s *script) settled() {
	s.t.Helper()
	if len(s.sent) > 0 || s.why != "none" && s.why != "" {
		s.fatalf("before this: also sent %q, dropped for %q", s.sent, s.why)
	}
}

func (s *script) machine() *Machine {
	if s.m == nil {
		s.m = New(s.cfg, s.peer, s.db)
		s.m.AdjOK(s.now, true)
	}
	return s.m
}

func (s *script) do(f []string) {
	if !slices.Contains([]string{"<", "!", "="}, f[0]) {
		s.settled()
	}
	switch f[0] {
	case "peer":
		s.peer = packet.ID(s.number(f[1]))
	case "set":
		s.set(f[1:])
	case "db":
		for _, w := range f[1:] {
			l := s.lsa(w)
			s.db.lsas[l.Key] = l
		}
	case "undb":
		delete(s.db.lsas, s.key(f[1]))
	case "hello":
		s.machine().Hello(s.now)
		if len(f) > 1 {
			s.m.OneWay(s.now)
		} else {
			s.m.TwoWay(s.now)
		}
	case "adj":
		s.machine().AdjOK(s.now, f[1] == "yes")
	case "kill":
		s.m.Kill(s.now, ReasonKilled)
	case "linkdown":
		s.m.Kill(s.now, ReasonLinkDown)
	case ">":
		s.why = s.machine().Receive(s.now, s.body(f[1:])).String()
	case "got":
		s.m.Satisfy(s.key(f[1]))
	case "bad":
		s.m.BadRequest(s.now)
	case "help":
		s.help(f[1:])
	case "helpends":
		s.m.HelpEnds(s.now)
	case "!":
		if s.why != f[1] {
			s.fatalf("dropped for %q", s.why)
		}
		s.why = ""
	case ".":
		s.pass(s.duration(f[1]))
	case "<":
		want := strings.Join(f[1:], " ")
		if len(s.sent) == 0 || s.sent[0] != want {
			s.fatalf("sent is %q", s.sent)
		}
		s.sent = s.sent[1:]
	case "=":
		state, _ := s.machine().State()
		if state.String() != f[1] || len(f) > 2 && strconv.Itoa(s.m.Requests()) != f[2] {
			s.fatalf("is %s with %d requests", state, s.m.Requests())
		}
	case "maxage":
		var got []string
		for _, k := range s.m.MaxAge() {
			got = append(got, s.name(k))
		}
		if !slices.Equal(got, f[1:]) {
			s.fatalf("is %q", got)
		}
	default:
		s.fatalf("unknown")
	}
}

func (s *script) set(f []string) {
	for _, w := range f {
		v, isMTU := strings.CutPrefix(w, "mtu=")
		switch {
		case isMTU:
			s.cfg.MTU = s.number(v)
		case w == "mtu-ignore":
			s.cfg.MTUIgnore = true
		case w == "stub":
			s.cfg.Options &^= packet.OptionE
		default:
			s.fatalf("unknown")
		}
	}
	if s.m != nil {
		s.m.Reconfigure(s.cfg)
	}
}

func (s *script) help(f []string) {
	g := Grace{Period: s.duration(f[0]), Allowed: true}
	for _, w := range f[1:] {
		switch v, isAge := strings.CutPrefix(w, "age="); {
		case isAge:
			g.Age = s.duration(v)
		case w == "changed":
			g.Changed = true
		case w == "denied":
			g.Allowed = false
		}
	}
	s.why = s.m.Help(s.now, g).String()
}

// pass lets time pass, with a Tick whenever the machine wants one.
func (s *script) pass(d time.Duration) {
	end := s.now.Add(d)
	for ticks := 0; ; ticks++ {
		if ticks > 10000 {
			s.fatalf("the machine wants a tick at %v again and again", s.m.Wake())
		}
		at := s.m.Wake()
		if at.IsZero() || at.After(end) {
			break
		}
		if at.After(s.now) {
			s.now = at
		}
		s.tick()
	}
	s.now = end
	s.tick()
}

func (s *script) tick() {
	for _, b := range s.m.Tick(s.now) {
		s.sent = append(s.sent, s.describe(b))
	}
}

func (s *script) describe(b packet.Body) string {
	switch b := b.(type) {
	case *packet.Description:
		if s.cfg.Version == packet.V2 && b.Options&packet.V2OptO == 0 {
			s.fatalf("a description without the O bit")
		}
		what := fmt.Sprintf("dd %s %d", flags(b.Flags), b.Sequence)
		for _, h := range b.Headers {
			what += fmt.Sprintf(" %s/%d", s.name(h.Key), h.Sequence)
		}
		return what
	case *packet.Request:
		what := "req"
		for _, k := range b.Keys {
			what += " " + s.name(k)
		}
		return what
	case *packet.Update:
		what := "upd"
		for _, l := range b.LSAs {
			what += fmt.Sprintf(" %s/%d", s.name(l.Key), l.Sequence)
		}
		return what
	}
	return fmt.Sprintf("%T", b)
}

func flags(f uint8) (w string) {
	for _, b := range []struct {
		bit  uint8
		name string
	}{{packet.FlagInit, "I"}, {packet.FlagMore, "M"}, {packet.FlagMaster, "S"}} {
		if f&b.bit != 0 {
			w += b.name
		}
	}
	if w == "" {
		return "-"
	}
	return w
}

func (s *script) body(f []string) packet.Body {
	switch f[0] {
	case "dd":
		d := &packet.Description{MTU: 1500, Options: s.cfg.options(), Sequence: uint32(s.number(f[2]))}
		for i, c := range "I M S" {
			if c != ' ' && strings.ContainsRune(f[1], c) {
				d.Flags |= packet.FlagInit >> (i / 2)
			}
		}
		for _, w := range f[3:] {
			v, isMTU := strings.CutPrefix(w, "mtu=")
			switch {
			case isMTU:
				d.MTU = uint16(s.number(v))
			case w == "stub":
				d.Options &^= packet.OptionE
			case w == "noO":
				d.Options &^= packet.V2OptO
			default:
				d.Headers = append(d.Headers, s.lsa(w).Header)
			}
		}
		return d
	case "req":
		r := &packet.Request{}
		for _, w := range f[1:] {
			r.Keys = append(r.Keys, s.key(w))
		}
		return r
	case "ack":
		return &packet.Ack{}
	}
	s.fatalf("unknown")
	return nil
}

var kinds = map[packet.Version]map[string]packet.LSType{
	packet.V2: {"": packet.V2Router, "x": packet.V2External, "o": packet.V2OpaqueArea, "u": 99},
	packet.V3: {"": packet.V3Router, "x": packet.V3External, "o": packet.V3EIntraAreaPrefix, "u": 0xE001},
}

func (s *script) key(w string) packet.Key {
	kind := strings.TrimRight(w, "0123456789")
	n := packet.ID(s.number(w[len(kind):]))
	return packet.Key{Type: kinds[s.cfg.Version][kind], ID: n, Adv: n}
}

func (s *script) name(k packet.Key) string {
	for kind, t := range kinds[s.cfg.Version] {
		if t == k.Type {
			return fmt.Sprintf("%s%d", kind, uint32(k.ID))
		}
	}
	return k.String()
}

func (s *script) lsa(w string) packet.LSA {
	parts := strings.Split(w, "/")
	h := packet.Header{Key: s.key(parts[0]), Sequence: int32(s.number(parts[1]))}
	if len(parts) > 2 {
		h.Age = uint16(s.number(parts[2]))
	}
	l, err := packet.NewLSA(s.cfg.Version, h, make([]byte, 100))
	if err != nil {
		s.fatalf("%v", err)
	}
	return l
}

func (s *script) number(w string) int {
	n, err := strconv.Atoi(w)
	if err != nil {
		s.fatalf("%v", err)
	}
	return n
}

func (s *script) duration(w string) time.Duration {
	d, err := time.ParseDuration(w)
	if err != nil {
		s.fatalf("%v", err)
	}
	return d
}
