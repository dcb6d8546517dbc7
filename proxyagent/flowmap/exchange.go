package flowmap

import "pncd/dataplane/roce"

// exchange is one CM exchange: from a REQ until the connection ends (IBTA volume 1, section 12.9).
type exchange struct {
	pair           *addrPair
	side           uint8  // the requester's side
	reqID, repID   uint32 // communication ids of requester and responder
	reqQPN, repQPN uint32
	reqPSN, repPSN uint32 // first PSN sent to reqQPN and to repQPN
	pkey           uint16
	transport      roce.Transport
	replied        bool
	link           *link
	at             int64

	older, newer *exchange // among the unfinished ones of the shard
	listed       bool
}

// exchangeKey names an exchange in its pair by the requester's side and communication id.
type exchangeKey struct {
	side uint8
	id   uint32
}

// exchangeOf finds the exchange that a message with these ids from this side belongs to.
func (p *addrPair) exchangeOf(from uint8, local, remote uint32) *exchange {
	if e := p.exch[exchangeKey{from, local}]; e != nil && (!e.replied || e.repID == remote) {
		return e
	}
	if e := p.exch[exchangeKey{1 - from, remote}]; e != nil && (!e.replied || e.repID == local) {
		return e
	}
	return nil
}

// exchangeList holds the exchanges without a pair yet, oldest first, so that they can be bounded.
type exchangeList struct {
	oldest, newest *exchange
	n              int
}

func (l *exchangeList) add(e *exchange) {
	e.listed, e.older, e.newer = true, l.newest, nil
	if l.newest != nil {
		l.newest.newer = e
	} else {
		l.oldest = e
	}
	l.newest = e
	l.n++
}

func (l *exchangeList) remove(e *exchange) {
	if !e.listed {
		return
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		l.oldest = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		l.newest = e.older
	}
	e.listed, e.older, e.newer = false, nil, nil
	l.n--
}

// dropExchange forgets an exchange; nil is fine.
func (sh *shard) dropExchange(e *exchange) {
	if e == nil || e.pair.exch[exchangeKey{e.side, e.reqID}] != e {
		return
	}
	sh.pending.remove(e)
	delete(e.pair.exch, exchangeKey{e.side, e.reqID})
	sh.unref(e.pair)
}

// addExchange remembers a new exchange, within the bound on unfinished ones.
func (sh *shard) addExchange(e *exchange) {
	if e.pair.exch == nil {
		e.pair.exch = make(map[exchangeKey]*exchange)
	}
	e.pair.exch[exchangeKey{e.side, e.reqID}] = e
	e.pair.refs++
	sh.pending.add(e)
	for sh.pending.n > sh.m.maxPending() {
		sh.c.CMEvicted++
		sh.dropExchange(sh.pending.oldest)
	}
}

// expireExchanges drops the exchanges that led nowhere.
func (sh *shard) expireExchanges(now int64) {
	for e := sh.pending.oldest; e != nil && now-e.at > exchangeExpiry; e = sh.pending.oldest {
		sh.dropExchange(e)
	}
}
