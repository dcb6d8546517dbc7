package api

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The names of LSA types, and of opaque LSAs by their opaque type, which say more than that they are opaque.
var (
	lsaV2Names = map[uint32]string{
		1: "router", 2: "network", 3: "summary", 4: "asbr-summary", 5: "external", 7: "nssa-external",
		9: "opaque-link", 10: "opaque-area", 11: "opaque-as",
	}
	lsaOpaqueNames = map[uint8]string{1: "traffic-engineering", 3: "grace", 4: "router-information", 7: "extended-prefix", 8: "extended-link"}
	lsaV3Names     = map[uint32]string{
		0x2001: "router", 0x2002: "network", 0x2003: "inter-area-prefix", 0x2004: "inter-area-router", 0x4005: "external", 0x2007: "nssa-external",
		0x0008: "link", 0x2009: "intra-area-prefix", 0x000B: "grace", 0xA00A: "intra-area-te",
		0xA021: "e-router", 0xA022: "e-network", 0xA023: "e-inter-area-prefix", 0xA024: "e-inter-area-router", 0xC025: "e-external", 0xA027: "e-nssa-external",
		0x8028: "e-link", 0xA029: "e-intra-area-prefix",
	}
)

// LsaTypeName gives the name of an LSA's type in OSPFv2 or OSPFv3; opaque is the first octet of its link state ID,
// which names the types of opaque LSAs (RFC 5250). A type that nobody defined has its number.
func LsaTypeName(version, typ uint32, opaque uint8) string {
	if version == 3 {
		if name, known := lsaV3Names[typ]; known {
			return name
		}
		return fmt.Sprintf("%#04x", typ)
	}
	if name, known := lsaOpaqueNames[opaque]; known && typ >= 9 && typ <= 11 {
		return name
	}
	if name, known := lsaV2Names[typ]; known {
		return name
	}
	return strconv.FormatUint(uint64(typ), 10)
}

// LsaTypeNames lists the names, sorted.
func LsaTypeNames() []string {
	names := slices.Concat(slices.Collect(maps.Values(lsaV2Names)), slices.Collect(maps.Values(lsaOpaqueNames)), slices.Collect(maps.Values(lsaV3Names)))
	slices.Sort(names)
	return slices.Compact(names)
}

// lsaType reads a name, or a number in decimal or hexadecimal, which it gives in decimal.
func lsaType(s string) (string, error) {
	if n, err := strconv.ParseUint(s, 0, 16); err == nil {
		return strconv.FormatUint(n, 10), nil
	}
	if s != "" && !slices.Contains(LsaTypeNames(), s) {
		return "", Invalid("type", "%q is neither a number nor one of %s", s, strings.Join(LsaTypeNames(), ", "))
	}
	return s, nil
}
