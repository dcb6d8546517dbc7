package engine

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Community is a community (RFC 1997) or a large one (RFC 8092). Communities compare with ==.
type Community struct {
	Large bool
	// Global and Local are the two halves of a community, 16 bits each; with Large, Global, Local and
	// Local2 are the three parts, 32 bits each.
	Global, Local, Local2 uint32
}

// The well-known communities of RFC 1997 by their names in configuration.
var wellKnown = map[string]Community{
	"no-export":    {Global: 0xFFFF, Local: 0xFF01},
	"no-advertise": {Global: 0xFFFF, Local: 0xFF02},
}

// ParseCommunity reads 65000:1, 65000:1:2, no-export or no-advertise.
func ParseCommunity(s string) (Community, error) {
	if c, ok := wellKnown[s]; ok {
		return c, nil
	}
	parts := strings.Split(s, ":")
	limit := uint64(math.MaxUint16)
	if len(parts) == 3 {
		limit = math.MaxUint32
	}
	var n [3]uint32
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 10, 32)
		if err != nil || v > limit || len(parts) < 2 || len(parts) > 3 {
			return Community{}, fmt.Errorf("%q is not a community such as 65000:1, 65000:1:2 or no-export", s)
		}
		n[i] = uint32(v)
	}
	return Community{Large: len(parts) == 3, Global: n[0], Local: n[1], Local2: n[2]}, nil
}

// String gives what ParseCommunity reads.
func (c Community) String() string {
	for name, w := range wellKnown {
		if c == w {
			return name
		}
	}
	if c.Large {
		return fmt.Sprintf("%d:%d:%d", c.Global, c.Local, c.Local2)
	}
	return fmt.Sprintf("%d:%d", c.Global, c.Local)
}
