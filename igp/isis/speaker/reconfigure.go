package speaker

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pncd/igp/isis/adjacency"
)

// Reconfigure changes the system while it runs: keys, metrics, timers, the host name, the size of LSPs, and
// which circuits there are. No adjacency of a circuit that stays is lost, as long as both ends accept what the
// other sends. What can't change is an error, and then nothing has.
func (m *Machine) Reconfigure(now time.Time, next Config) error {
	if err := next.Check(); err != nil {
		return err
	}
	next = next.WithDefaults()
	old := m.cfg
	if err := m.fixed(next); err != nil {
		return err
	}
	next.Jitter, next.transit = old.Jitter, old.transit
	m.cfg = next
	for _, l := range m.levels {
		was, chain := old.Authentication[l.n], next.Authentication[l.n]
		l.flood.Retime(now, next.flooding(l.n))
		if was.Send != chain.Send {
			l.flood.SetSign(now, chain.Sign)
		}
		l.pack.SetSize(next.LSPSize - chain.Overhead())
	}
	m.setCircuits(now, next.Circuits)
	m.refresh(now)
	return nil
}

// fixed says what of a configuration can't replace that of the running system.
func (m *Machine) fixed(next Config) error {
	old := m.cfg
	what := ""
	switch {
	case old.System != next.System:
		what = "the system ID"
	case !slices.EqualFunc(old.Areas, next.Areas, slices.Equal):
		what = "the areas"
	case old.Levels != next.Levels:
		what = "the levels"
	case old.Flag != next.Flag:
		what = "the P flag's bit"
	case old.MultiTopology != next.MultiTopology:
		what = "multi-topology"
	case old.MaxLSPs != next.MaxLSPs:
		what = "the database's bound"
	}
	for _, x := range next.Circuits {
		if c := m.circuits[x.Name]; what == "" && c != nil && (c.cfg.LAN != x.LAN || c.cfg.Levels != x.levels(next)) {
			what = "type and level of circuit " + x.Name
		}
	}
	if what != "" {
		return fmt.Errorf("isis: %s can't change while the system runs", what)
	}
	return nil
}

// levels are those of the circuit.
func (x CircuitConfig) levels(c Config) uint8 {
	if x.Levels == 0 {
		return c.Levels
	}
	return x.Levels
}

// tuning is what of a circuit can change while adjacencies are up.
func (x CircuitConfig) tuning() adjacency.Tuning {
	return adjacency.Tuning{Padding: x.Padding, Hello: x.Hello, Multiple: x.Multiple, Priority: x.Priority, Overhead: x.Authentication.Overhead()}
}

// setCircuits takes away circuits that are not wanted any more, with their adjacencies, changes those that
// stay, and adds new ones, whose links are down.
func (m *Machine) setCircuits(now time.Time, wanted []CircuitConfig) {
	for _, name := range slices.Clone(m.order) {
		if !slices.ContainsFunc(wanted, func(x CircuitConfig) bool { return x.Name == name }) {
			m.circuitDown(now, m.circuits[name])
			delete(m.circuits, name)
			m.order = slices.DeleteFunc(m.order, func(n string) bool { return n == name })
		}
	}
	for _, x := range wanted {
		x.Levels = x.levels(m.cfg)
		c := m.circuits[x.Name]
		if c == nil {
			m.circuits[x.Name] = &circuit{cfg: x, number: m.freeNumber()}
			continue
		}
		was := c.cfg.tuning()
		if c.cfg = x; was == x.tuning() {
			continue
		}
		if c.p2p != nil {
			c.p2p.Tune(now, x.tuning())
		}
		for _, l := range c.lans {
			l.Tune(now, x.tuning())
		}
	}
	m.order = slices.Sorted(maps.Keys(m.circuits))
}

// freeNumber is the lowest number that no circuit has.
func (m *Machine) freeNumber() int {
	for n := 1; ; n++ {
		if m.byID(circuitID(n)) == nil {
			return n
		}
	}
}
