package flooding

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/packet"
)

// ownKey names an own LSA: the same link state ID may be used in several areas.
type ownKey struct {
	Where
	Type packet.LSType
	ID   packet.ID
}

func (k ownKey) compare(o ownKey) int {
	return cmp.Or(k.Where.compare(o.Where), cmp.Compare(k.Type, o.Type), cmp.Compare(k.ID, o.ID))
}

// own is an LSA that this router wants to be in the network.
type own struct {
	key     packet.Key
	options uint8
	body    []byte
	made    time.Time // the last instance; zero: none
	told    time.Time // when it went out last, flooded, again or because it was asked for
	late    int       // how often the next instance was put off because of that
	due     time.Time // when another one is made; zero: not before the refresh
	wrap    bool      // the sequence number is at its end: the last instance is being flushed first
	leaving bool      // not wanted any more: it is flushed when it is due
}

// Originate makes an LSA be in the network from now on, or changes it (RFC 2328 section 12.4). An LSA of the
// domain's scope is refused: a leaf says nothing beyond its area.
func (m *Machine) Originate(now time.Time, w Where, t packet.LSType, id packet.ID, options uint8, body []byte) error {
	m.now = now
	scope := t.Scope(m.cfg.Version)
	switch {
	case scope == packet.ScopeAS:
		return fmt.Errorf("ospf: LSA type %#x has the scope of the domain: only LSAs of a link or an area are originated here", uint16(t))
	case scope != w.Scope:
		return fmt.Errorf("ospf: LSA type %#x has %s scope, not %s", uint16(t), scope, w.Scope)
	case m.DB(w) == nil:
		return fmt.Errorf("ospf: there is no such %s", w.Scope)
	case packet.HeaderLen+len(body) > 0xFFFF:
		return fmt.Errorf("ospf: LSA of %d octets: at most 65535", packet.HeaderLen+len(body))
	}
	k := ownKey{w, t, id}
	o := m.own[k]
	if o != nil && o.leaving {
		o.leaving, o.due = false, time.Time{}
		if !m.there(w, o) { // a change still waited when it was taken back
			m.soon(now, o)
		}
	}
	switch {
	case o == nil:
		o = &own{key: packet.Key{Type: t, ID: id, Adv: m.cfg.Router}, options: options, body: slices.Clone(body), due: now}
		// What was flushed a moment ago waits as any other change.
		if e := m.DB(w).Get(o.key); e != nil && now.Before(e.Installed.Add(m.cfg.MinLSInterval)) {
			o.due = e.Installed.Add(m.cfg.MinLSInterval)
		}
		m.own[k] = o
	case o.options == options && slices.Equal(o.body, body):
		m.replan(k, o)
		return nil
	default:
		o.options, o.body = options, slices.Clone(body)
		m.soon(now, o)
	}
	m.make(now, w, o)
	return nil
}

// there reports whether the database has an own LSA as it is wanted.
func (m *Machine) there(w Where, o *own) bool {
	e := m.DB(w).Get(o.key)
	return e != nil && e.AgeSeconds() < packet.MaxAge && e.Options == o.options && slices.Equal(e.Body(), o.body)
}

// soon makes a new instance due, as soon as MinLSInterval and settled let it.
func (m *Machine) soon(now time.Time, o *own) {
	if o.due = now; !o.made.IsZero() {
		o.due = latest(now, o.made.Add(m.cfg.MinLSInterval), m.settled(o))
	}
}

// settled is when every router takes another instance of an own LSA: within MinLSArrival of the last one, which it
// may have been told only now, it drops the next, and would be told once more only after RxmtInterval.
func (m *Machine) settled(o *own) time.Time {
	return latest(o.made, o.told).Add(m.cfg.MinLSArrival + m.cfg.MinLSArrival/10)
}

// putOff puts off what is due when a neighbour was told the last instance meanwhile. Those that ask again and again
// must not put it off for good.
func (m *Machine) putOff(now time.Time, o *own) bool {
	at := m.settled(o)
	if o.made.IsZero() || !at.After(now) || o.late == maxLate {
		return false
	}
	o.late++
	o.due = at
	return true
}

// maxLate bounds how often an instance is put off.
const maxLate = 5

func latest(all ...time.Time) time.Time { return slices.MaxFunc(all, time.Time.Compare) }

// Told says that a neighbour was sent an LSA because it had asked for it.
func (m *Machine) Told(now time.Time, w Where, k packet.Key) {
	if o := m.ownOf(w, k); o != nil {
		o.told = now
	}
}

// make originates what is due, or flushes it, and plans what is next.
func (m *Machine) make(now time.Time, w Where, o *own) {
	if o.leaving && !o.due.After(now) && (o.wrap || !m.putOff(now, o)) {
		m.end(now, w, o)
		return
	}
	m.makeNow(now, w, o)
	m.replan(ownKey{w, o.key.Type, o.key.ID}, o)
}

func (m *Machine) replan(k ownKey, o *own) {
	if at := o.next(m.cfg.Refresh); !at.IsZero() {
		m.plan.Set(k, at)
	} else {
		m.plan.Drop(k)
	}
}

func (m *Machine) makeNow(now time.Time, w Where, o *own) {
	if o.leaving || o.next(m.cfg.Refresh).After(now) {
		return
	}
	if o.wrap {
		o.due = time.Time{}
		m.check(w, o.key)
		return
	}
	if m.putOff(now, o) {
		return
	}
	db, seq := m.DB(w), packet.InitialSequence
	if e := db.Get(o.key); e != nil {
		if e.Sequence == packet.MaxSequence {
			// RFC 2328 section 12.1.6: the last instance is flushed, and acknowledged by all, before the first.
			o.wrap, o.due = true, time.Time{}
			m.flush(now, w, e)
			return
		}
		seq = e.Sequence + 1
	}
	o.made, o.due, o.late = now, time.Time{}, 0
	lsa, err := packet.NewLSA(m.cfg.Version, packet.Header{Options: o.options, Key: o.key, Sequence: seq}, o.body)
	if err != nil {
		return // the length was held to
	}
	m.store(now, w, lsa)
}

// next is when another instance is due; one whose number wraps, when it is looked whether it can be made.
func (o *own) next(refresh time.Duration) time.Time {
	if o.wrap || o.made.IsZero() || !o.due.IsZero() {
		return o.due
	}
	return o.made.Add(refresh)
}

// store puts an own LSA into the database and floods it.
func (m *Machine) store(now time.Time, w Where, lsa packet.LSA) {
	e, change, err := m.DB(w).Install(now, lsa, true)
	if err != nil {
		return // own LSAs are stored beyond the limit
	}
	m.installed(w, e, change, nil, nil)
}

// Withdraw flushes an own LSA (RFC 2328 section 14.1), as soon as every router takes that.
func (m *Machine) Withdraw(now time.Time, w Where, t packet.LSType, id packet.ID) {
	m.now = now
	k := ownKey{w, t, id}
	o := m.own[k]
	if o == nil {
		return
	}
	o.leaving, o.due = true, now
	if !o.made.IsZero() && !o.wrap {
		o.due = m.settled(o)
	}
	m.make(now, w, o)
}

// end flushes an LSA that isn't wanted any more.
func (m *Machine) end(now time.Time, w Where, o *own) {
	k := ownKey{w, o.key.Type, o.key.ID}
	delete(m.own, k)
	m.plan.Drop(k)
	if db := m.DB(w); db != nil {
		if e := db.Get(o.key); e != nil {
			m.flush(now, w, e)
		}
	}
}

// WithdrawAll flushes all own LSAs. Pending tells when everybody knows.
func (m *Machine) WithdrawAll(now time.Time) {
	for _, k := range slices.SortedFunc(maps.Keys(m.own), ownKey.compare) {
		m.Withdraw(now, k.Where, k.Type, k.ID)
	}
}

// flush makes an instance that is in the database reach MaxAge, and tells everybody: the same octets but for the
// age, so that its checksum stays right whoever made it.
func (m *Machine) flush(now time.Time, w Where, e *lsdb.Entry) {
	if e.AgeSeconds() == packet.MaxAge { // everybody is being told
		m.check(w, e.Key)
		return
	}
	raw := e.LSA.Append(nil, packet.MaxAge)
	if lsa, err := packet.ParseLSA(m.cfg.Version, raw); err == nil {
		m.store(now, w, lsa)
	}
}

// selfOriginated reports whether an LSA is this router's: by its router ID, or, a network LSA of OSPFv2, by the
// address of an interface (RFC 2328 section 13.4).
func (m *Machine) selfOriginated(k packet.Key) bool {
	if k.Adv == m.cfg.Router {
		return true
	}
	if m.cfg.Version != packet.V2 || k.Type != packet.V2Network || k.ID == 0 {
		return false
	}
	for _, l := range m.links {
		if l.address == k.ID {
			return true
		}
	}
	return false
}

// ownReceived takes an own LSA that is newer than what this life has made (RFC 2328 section 13.4). It is in the
// database by now: what is still wanted is made anew with a higher number, and else the received copy is
// flushed, of whatever type it is, and as it was received.
func (m *Machine) ownReceived(now time.Time, w Where, e *lsdb.Entry) {
	m.count.OwnNewer++
	o := m.ownOf(w, e.Key)
	switch {
	case o != nil && o.leaving:
		m.end(now, w, o)
	case o != nil && !o.wrap:
		m.soon(now, o)
		m.make(now, w, o)
	case e.Age(now) < packet.MaxAge:
		m.flush(now, w, e)
	}
}

// forget drops the own LSAs of databases that are gone.
func (m *Machine) forget(gone func(Where) bool) {
	for k := range m.own {
		if gone(k.Where) {
			delete(m.own, k)
			m.plan.Drop(k)
		}
	}
	isGone := func(w Where, _ map[packet.Key]struct{}) bool { return gone(w) }
	maps.DeleteFunc(m.dying.all, isGone)
	maps.DeleteFunc(m.dying.open, isGone)
}
