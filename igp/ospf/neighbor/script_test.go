package neighbor

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pncd/igp/internal/exchanges"
	"pncd/igp/ospf/packet"
)

// The exchanges of testdata/exchanges.txt: packets and times in, packets and the state out. Each is run for
// OSPFv2 and OSPFv3, unless its name begins with one of them.
//
//	== name, or the trap that it holds
//	peer 1                               the neighbour's router ID; this system is 2, the neighbour 3 unless said otherwise
//	set mtu=576 | set mtu-ignore | set stub | set nssa
//	db 9/5 10/5/3600                     the database: LSA/sequence/age; x9 is external, n9 of an NSSA, o9 opaque, u9 of an undefined type
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
	for _, e := range exchanges.Read(t, "testdata/exchanges.txt", 30) {
		for _, v := range []packet.Version{packet.V2, packet.V3} {
			if strings.HasPrefix(e.Name, "OSPFv") && !strings.HasPrefix(e.Name, v.String()) {
				continue
			}
			e.Run(t, v.String()+"/"+e.Name, func(s *exchanges.Script) exchanges.Verbs { return newScript(s, v) })
		}
	}
}

var begin = exchanges.Begin

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
	*exchanges.Script
	cfg  Config
	peer packet.ID
	db   memory
	m    *Machine
}

func newScript(s *exchanges.Script, v packet.Version) *script {
	return &script{
		Script: s, peer: 3, db: memory{v, map[packet.Key]packet.LSA{}},
		cfg: Config{Version: v, Router: 2, Options: packet.OptionE, MTU: 1500, Sequence: 100},
	}
}

func (s *script) Wake() time.Time { return s.m.Wake() }

func (s *script) machine() *Machine {
	if s.m == nil {
		s.m = New(s.cfg, s.peer, s.db)
		s.m.AdjOK(s.Now, true)
	}
	return s.m
}

func (s *script) Do(f []string) bool {
	switch f[0] {
	case "peer":
		s.peer = packet.ID(s.Number(f[1]))
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
		s.machine().Hello(s.Now)
		if len(f) > 1 {
			s.m.OneWay(s.Now)
		} else {
			s.m.TwoWay(s.Now)
		}
	case "adj":
		s.machine().AdjOK(s.Now, f[1] == "yes")
	case "kill":
		s.m.Kill(s.Now, ReasonKilled)
	case "linkdown":
		s.m.Kill(s.Now, ReasonLinkDown)
	case ">":
		s.Dropped(s.machine().Receive(s.Now, s.body(f[1:])))
	case "got":
		s.m.Satisfy(s.key(f[1]))
	case "bad":
		s.m.BadRequest(s.Now)
	case "help":
		s.help(f[1:])
	case "helpends":
		s.m.HelpEnds(s.Now)
	case "=":
		state, _ := s.machine().State()
		if state.String() != f[1] || len(f) > 2 && strconv.Itoa(s.m.Requests()) != f[2] {
			s.Fatalf("is %s with %d requests", state, s.m.Requests())
		}
	case "maxage":
		var got []string
		for _, k := range s.m.MaxAge() {
			got = append(got, s.name(k))
		}
		if !slices.Equal(got, f[1:]) {
			s.Fatalf("is %q", got)
		}
	default:
		return false
	}
	return true
}

func (s *script) set(f []string) {
	for _, w := range f {
		v, isMTU := strings.CutPrefix(w, "mtu=")
		switch {
		case isMTU:
			s.cfg.MTU = s.Number(v)
		case w == "mtu-ignore":
			s.cfg.MTUIgnore = true
		case w == "stub":
			s.cfg.Options &^= packet.OptionE
		case w == "nssa":
			s.cfg.Options ^= packet.OptionE | packet.OptionN
		default:
			s.Fatalf("unknown")
		}
	}
	if s.m != nil {
		s.m.Reconfigure(s.cfg)
	}
}

func (s *script) help(f []string) {
	g := Grace{Period: s.Duration(f[0]), Allowed: true}
	for _, w := range f[1:] {
		switch v, isAge := strings.CutPrefix(w, "age="); {
		case isAge:
			g.Age = s.Duration(v)
		case w == "changed":
			g.Changed = true
		case w == "denied":
			g.Allowed = false
		}
	}
	s.Dropped(s.m.Help(s.Now, g))
}

func (s *script) Tick() (sent []string) {
	for _, b := range s.m.Tick(s.Now) {
		sent = append(sent, s.describe(b))
	}
	return sent
}

func (s *script) describe(b packet.Body) string {
	switch b := b.(type) {
	case *packet.Description:
		if s.cfg.Version == packet.V2 && b.Options&packet.V2OptO == 0 {
			s.Fatalf("a description without the O bit")
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
		d := &packet.Description{MTU: 1500, Options: s.cfg.options(), Sequence: uint32(s.Number(f[2]))}
		for i, c := range "I M S" {
			if c != ' ' && strings.ContainsRune(f[1], c) {
				d.Flags |= packet.FlagInit >> (i / 2)
			}
		}
		for _, w := range f[3:] {
			v, isMTU := strings.CutPrefix(w, "mtu=")
			switch {
			case isMTU:
				d.MTU = uint16(s.Number(v))
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
	s.Fatalf("unknown")
	return nil
}

var kinds = map[packet.Version]map[string]packet.LSType{
	packet.V2: {"": packet.V2Router, "x": packet.V2External, "n": packet.V2NSSA, "o": packet.V2OpaqueArea, "u": 99},
	packet.V3: {"": packet.V3Router, "x": packet.V3External, "n": packet.V3NSSA, "o": packet.V3EIntraAreaPrefix, "u": 0xE001},
}

func (s *script) key(w string) packet.Key {
	kind := strings.TrimRight(w, "0123456789")
	n := packet.ID(s.Number(w[len(kind):]))
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
	h := packet.Header{Key: s.key(parts[0]), Sequence: int32(s.Number(parts[1]))}
	if len(parts) > 2 {
		h.Age = uint16(s.Number(parts[2]))
	}
	l, err := packet.NewLSA(s.cfg.Version, h, make([]byte, 100))
	if err != nil {
		s.Fatalf("%v", err)
	}
	return l
}
