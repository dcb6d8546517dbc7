package flowmap

// OnAnswer sets a function that is called each time that the answer of a key may have become another one but by age, or that of a tuple under
// which its flow is found or was: at once, before the packet that changed it is done with, and from any goroutine. It is for who keeps copies of answers: a
// copy that is made by Lookup within the call, and under a lock that all such calls take, is never behind the map. Age
// is for the copy to count, from Entry.LastSeen. f may call Lookup, and no other method of the map. nil ends the calls;
// those that are under way may still end after that.
func (m *Map) OnAnswer(f func(Key)) {
	if f == nil {
		m.onAnswer.Store(nil)
		return
	}
	m.onAnswer.Store(&f)
}

// answerChanged calls the function.
func (s *stream) answerChanged(m *Map) {
	if f := m.onAnswer.Load(); f != nil {
		(*f)(s.key())
	}
}

// settledOrNot is answerChanged for a stream that was settled, or is so no more. That changes no answer, unless several
// VLANs have a part in it: then another one's may be given.
func (s *stream) settledOrNot(m *Map) {
	if m.tagged.Load() {
		s.answerChanged(m)
	}
}

// linkRevoked is answerChanged for the two directions of a link that answers nothing any more.
func (m *Map) linkRevoked(l *link) {
	for _, s := range l.streams {
		s.answerChanged(m)
	}
}

// settledChanged is answerChanged for the two directions of a settled pair.
func (m *Map) settledChanged(e settledRef) {
	f := m.onAnswer.Load()
	if f == nil {
		return
	}
	for side := range uint8(2) {
		if k, ok := m.settled.at(e).key(side); ok {
			(*f)(k)
		}
	}
}
