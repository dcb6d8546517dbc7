package lsdb

import (
	"cmp"
	"time"

	"pncd/igp/isis/packet"
)

// Version is what distinguishes two instances of an LSP.
type Version struct {
	Sequence uint32
	Checksum uint16
	Purged   bool // the lifetime is zero
}

// Order is how one instance of an LSP stands to another.
type Order int8

// The orders.
const (
	Older Order = iota - 1
	Same
	Newer
	// Confused is the same sequence number with another checksum, both alive: two systems use one
	// system ID, or one forgot what it had sent (ISO 10589 clause 7.3.16.2).
	Confused
)

// Compare says how v stands to other (ISO 10589 clause 7.3.16.3): the greater sequence number is newer; with
// the same, one that is purged is newer than one that lives.
func (v Version) Compare(other Version) Order {
	switch {
	case v.Sequence != other.Sequence:
		return Order(cmp.Compare(v.Sequence, other.Sequence))
	case v.Purged != other.Purged:
		if v.Purged {
			return Newer
		}
		return Older
	case v.Checksum != other.Checksum && !v.Purged:
		return Confused
	}
	return Same // of two purges the checksum doesn't matter
}

// Entry is one LSP of the database. Only the database changes it, and it is replaced when another instance
// comes.
type Entry struct {
	Version
	ID    packet.LSPID
	Type  packet.PDUType
	Flags uint8
	// expires is when the lifetime ends or, of a purged one, ended.
	expires time.Time
	remove  time.Time // of a purged one: when it is forgotten
	raw     []byte
	at      int // index in the heap of what comes next
}

// Lifetime is the remaining lifetime in seconds: zero only when it is purged.
func (e *Entry) Lifetime(now time.Time) uint16 {
	if e.Purged {
		return 0
	}
	// Rounded up: an LSP that lives must not be sent with a lifetime of zero, which would purge it.
	left := (e.expires.Sub(now) + time.Second - 1) / time.Second
	return uint16(min(max(left, 1), maxLifetime))
}

// AppendTo writes the LSP as it is to be sent now.
func (e *Entry) AppendTo(dst []byte, now time.Time) []byte {
	begin := len(dst)
	dst = append(dst, e.raw...)
	packet.SetLifetime(dst[begin:], e.Lifetime(now))
	return dst
}

// LSP reads the entry; its TLVs refer to the entry and must not be changed.
func (e *Entry) LSP() packet.LSP {
	p, _ := packet.ParseLSP(e.raw) // it was read when it was added
	return p
}

// Size is the length of the LSP, octets.
func (e *Entry) Size() int { return len(e.raw) }

// Summary is the entry as SNPs name it.
func (e *Entry) Summary(now time.Time) packet.Entry {
	return packet.Entry{ID: e.ID, Sequence: e.Sequence, Checksum: e.Checksum, Lifetime: e.Lifetime(now)}
}

// next is when something happens to the entry by itself.
func (e *Entry) next() time.Time {
	if e.Purged {
		return e.remove
	}
	return e.expires
}
