package kernel

import (
	"time"

	"golang.org/x/sys/unix"
)

// clockInterval is how often the kernel's clock is compared with the wall clock.
const clockInterval = time.Second

// WallClock turns times of CLOCK_MONOTONIC, which the programs read, into wall time and back. The zero value is for
// Compare to begin with.
type WallClock struct {
	offset int64 // nanoseconds that the wall clock is ahead
	at     time.Time
}

// Compare takes the difference of the two clocks anew when the last time is a second ago.
func (c *WallClock) Compare(now time.Time) {
	if !c.at.IsZero() && now.Sub(c.at) < clockInterval {
		return
	}
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return
	}
	c.at = now
	c.offset = time.Now().UnixNano() - ts.Nano()
}

// Wall gives the wall time of mono, nanoseconds of CLOCK_MONOTONIC.
func (c *WallClock) Wall(mono uint64) time.Time { return time.Unix(0, int64(mono)+c.offset) }

// Mono gives the nanoseconds of CLOCK_MONOTONIC at a wall time; 0 when it did not run yet.
func (c *WallClock) Mono(at time.Time) uint64 { return uint64(max(at.UnixNano()-c.offset, 0)) }

// tickShift: the program keeps times in ticks of 2^20 ns, modulo 2^32.
const tickShift = 20

// ticksOf is the least number of ticks between two of them that are so far apart.
func ticksOf(d time.Duration) uint32 { return uint32((d-1)>>tickShift) + 2 }

// ticks returns the wall time of a tick within 26 days of the clock.
func (c *WallClock) ticks(t uint32) time.Time {
	now := (c.at.UnixNano() - c.offset) >> tickShift
	return c.Wall(uint64(now+int64(int32(t-uint32(now)))) << tickShift)
}
