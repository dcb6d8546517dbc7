package flowmap

import (
	"fmt"
	"time"
)

// Defaults of Config.
const (
	DefaultMaxEntries = 262_144
	DefaultAgeAfter   = 60 * time.Second
	DefaultICRCSample = 64
)

// Config is what an operator may set. The zero value of each field means its default.
type Config struct {
	// MaxEntries bounds the entries (each direction of a queue pair is one); the least recently seen
	// leave first. Default 262,144.
	MaxEntries int
	// AgeAfter is the time without traffic after which an entry stops answering. Default 60 s.
	AgeAfter time.Duration
	// TapComplete declares that the tap sees every path between any two hosts. A false declaration
	// makes wrong pairs. Default false.
	TapComplete bool
	// IgnoreVLAN takes the two directions of a pair together when their VLAN tags differ, as on a
	// router whose two sides are tagged differently. Default false: the tag separates hosts.
	IgnoreVLAN bool
	// ICRCSample verifies the ICRC of one in so many packets; 1 means all, negative means none.
	// A wrong one is counted and its packet is used all the same. Default 64.
	ICRCSample int
}

func (c Config) withDefaults() Config {
	if c.MaxEntries == 0 {
		c.MaxEntries = DefaultMaxEntries
	}
	if c.AgeAfter == 0 {
		c.AgeAfter = DefaultAgeAfter
	}
	if c.ICRCSample == 0 {
		c.ICRCSample = DefaultICRCSample
	}
	return c
}

// Validate says which field is out of range.
func (c Config) Validate() error {
	if c.MaxEntries < 0 {
		return fmt.Errorf("flowmap: MaxEntries %d: must not be negative", c.MaxEntries)
	}
	if c.AgeAfter < 0 {
		return fmt.Errorf("flowmap: AgeAfter %v: must not be negative", c.AgeAfter)
	}
	return nil
}
