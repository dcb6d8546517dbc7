package flowmap

import "maps"

// shrink gives the memory of the streams' map back when that has become mostly empty.
func (sh *shard) shrink() {
	if n := len(sh.streams); sh.peak > shrinkFrom && n < sh.peak/4 {
		sh.streams, sh.peak = smaller(sh.streams), n
	}
}

// shrink does so for the map of the claims.
func (c *claims) shrink() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.held); c.peak > shrinkFrom && n < c.peak/4 {
		c.held, c.peak = smaller(c.held), n
	}
}

const shrinkFrom = 64

// smaller copies a map into one that has room for what is in it; maps.Clone keeps the room.
func smaller[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m))
	maps.Copy(out, m)
	return out
}
