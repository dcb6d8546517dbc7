package adjacency

import "time"

// Tuning is what can change while adjacencies are up, none of which ends one: neighbours take the holding time
// anew from each hello.
type Tuning struct {
	Padding  Padding
	Hello    time.Duration // 0: DefaultHello
	Multiple int           // 0: DefaultMultiple
	Priority uint8         // LAN
	Overhead int           // how many octets authentication adds to a hello
}

// tune gives the configuration with t.
func (c Config) tune(t Tuning) Config {
	c.Padding, c.Hello, c.Multiple, c.Priority, c.Overhead = t.Padding, t.Hello, t.Multiple, t.Priority, t.Overhead
	return c.withDefaults()
}

// Tune changes the circuit. The next hello, with the new holding time, goes out at once: it must not come
// later than the old holding time allows, nor wait for an interval that was longer.
func (p *P2P) Tune(now time.Time, t Tuning) {
	p.cfg = p.cfg.tune(t)
	p.next = soon(now, p.sent)
}

// Tune changes the circuit; see P2P.Tune.
func (l *LAN) Tune(now time.Time, t Tuning) {
	l.cfg = l.cfg.tune(t)
	l.next = soon(now, l.sent)
}
