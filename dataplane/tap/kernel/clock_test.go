package kernel

import (
	"testing"
	"time"
)

func TestWallTimesComeBackFromTheKernelsClock(t *testing.T) {
	var c WallClock
	before := time.Now()
	c.Compare(before)
	for _, d := range []time.Duration{0, time.Nanosecond, -time.Second, time.Hour} {
		at := before.Add(d)
		if got := c.Wall(c.Mono(at)); !got.Equal(at) {
			t.Errorf("%v: %v, want %v", d, got, at)
		}
	}
	if got := c.Mono(time.Unix(0, 0)); got != 0 {
		t.Errorf("before the clock ran: %d", got)
	}
	was := c
	if c.Compare(before.Add(clockInterval - 1)); c != was {
		t.Error("compared again within the interval")
	}
	if c.Compare(before.Add(clockInterval)); c.at == was.at {
		t.Error("not compared after the interval")
	}
}
