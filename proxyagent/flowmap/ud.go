package flowmap

import "pncd/dataplane/roce"

// observeUD takes a UD packet, whose DETH names the source QP. When several QPs of the sender send to
// one QP, no single one can be named.
func (sh *shard) observeUD(s *stream, p *roce.Packet, at int64) {
	deth, err := roce.ParseDETH(p.Body)
	if err != nil || !p.BTH.Opcode.IsRequest() {
		sh.c.Malformed++
		return
	}
	a := s.answer.Load()
	switch {
	case a.source != SourceDETH && (s.udMixed == 0 || at-s.udMixed > sh.m.ageAfter.Load()):
		s.udQP, s.udMixed = deth.SrcQP, 0
		sh.c.Learned++
		sh.publishUD(s, StateLearned, at, "DETH")
	case deth.SrcQP != s.udQP:
		s.udQP, s.udMixed = deth.SrcQP, at
		if a.source == SourceDETH {
			sh.c.Contradicted++
			sh.publish(s, StateContradicted, SourceNone, nil, at, "several source QPs send to this QP")
		}
	case a.state == StateLearned:
		sh.c.Confirmed++
		sh.publishUD(s, StateConfirmed, at, "DETH")
	}
}

func (sh *shard) publishUD(s *stream, state State, at int64, detail string) {
	old := s.answer.Load()
	learned := at
	if old.known() {
		learned = old.learned
	}
	sh.store(s, &answer{state: state, source: SourceDETH, sourceQP: s.udQP, learned: learned, changed: at,
		detail: detail, version: sh.m.version.Add(1)})
}
