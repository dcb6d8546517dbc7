package speaker

import (
	"iter"
	"time"

	"pncd/igp/ospf/flooding"
	"pncd/igp/ospf/lsdb"
	"pncd/igp/ospf/packet"
)

// database is what the neighbours of a link are told of: the databases of the link, of its area, and of the
// domain unless the area takes no such LSAs. It implements neighbor.Database.
type database struct {
	flood   *flooding.Machine
	version packet.Version
	link    *link
}

// Summary implements neighbor.Database.
func (d database) Summary(now time.Time) iter.Seq[packet.Header] {
	return func(yield func(packet.Header) bool) {
		for _, w := range d.flood.Reaching(d.link.id) {
			for e := range d.flood.DB(w).All() {
				if e.ASExtendedPrefix(d.version) {
					continue
				}
				if !yield(e.HeaderNow(now)) {
					return
				}
			}
		}
	}
}

// Lookup implements neighbor.Database.
func (d database) Lookup(now time.Time, k packet.Key) (packet.Header, bool) {
	e := d.get(k)
	if e == nil {
		return packet.Header{}, false
	}
	return e.HeaderNow(now), true
}

// Append implements neighbor.Database.
func (d database) Append(dst []byte, now time.Time, k packet.Key) ([]byte, bool) {
	e := d.get(k)
	if e == nil || k.ASExtendedPrefix(d.version) {
		return dst, false
	}
	if w, ok := d.flood.WhereOf(d.link.id, k.Type); ok {
		d.flood.Told(now, w, k)
	}
	return e.AppendTo(dst, now, d.link.cfg.TransmitDelay), true
}

func (d database) get(k packet.Key) *lsdb.Entry {
	w, ok := d.flood.WhereOf(d.link.id, k.Type)
	if !ok {
		return nil
	}
	return d.flood.DB(w).Get(k)
}
