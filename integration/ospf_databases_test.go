package integration

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pncv1 "pncd/api/pnc/v1"
)

// ospfLSA is an LSA as a router or leaf lists it.
type ospfLSA struct {
	version  int
	typ      string // as the program names it
	id       string
	age      int
	sequence uint32
}

// isMark says whether the LSA is one that marks a prefix, in a leaf's hands: an Opaque LSA of OSPFv2, an Extended LSA of
// OSPFv3.
func (a ospfLSA) isMark() bool {
	return slices.Contains([]string{
		"Area-Local Opaque-LSA", "Unk", // FRR
		"000a", "a029", "a023", // BIRD
		"extended-prefix", "e-intra-area-prefix", "e-inter-area-prefix",
	}, a.typ)
}

var (
	frrLSA  = regexp.MustCompile(`^(\d+\.\d+\.\d+\.\d+)\s+(\S+)\s+(\d+)\s+0x([0-9a-f]{8})\s`)
	frrLSA6 = regexp.MustCompile(`^(\S+)\s+(\d+\.\d+\.\d+\.\d+)\s+(\S+)\s+(\d+)\s+([0-9a-f]{8})\s`)
	birdLSA = regexp.MustCompile(`^\s*([0-9a-f]{4})\s+(\d+\.\d+\.\d+\.\d+)\s+(\S+)\s+([0-9a-f]{8})\s+(\d+)\s`)
)

// lsas lists the LSAs of a router ID that a router has.
func (l *ospfLab) lsas(node, router string) (out []ospfLSA) {
	l.t.Helper()
	if slices.Contains(l.leaves, node) {
		return l.leafLSAs(node, router)
	}
	for version := 2; version <= 3; version++ {
		text := l.said(node, []string{map[int]string{2: "show ip ospf database", 3: "show ipv6 ospf6 database"}[version]},
			[]string{map[int]string{2: "show ospf lsadb ospf4", 3: "show ospf lsadb ospf6"}[version]})
		section := ""
		for line := range strings.Lines(text) {
			if before, _, found := strings.Cut(line, " (Area"); found {
				section = strings.TrimSpace(before)
			} else if strings.Contains(line, "Link States") || strings.Contains(line, "Opaque-LSA") { // AS-wide
				section = strings.TrimSpace(line)
			}
			a := ospfLSA{version: version, typ: section}
			adv, age, sequence := "", "", ""
			switch m := []string(nil); {
			case slices.Contains(l.birds, node):
				if m = birdLSA.FindStringSubmatch(line); m != nil {
					a.typ, a.id, adv, sequence, age = m[1], m[2], m[3], m[4], m[5]
				}
			case version == 2:
				if m = frrLSA.FindStringSubmatch(line); m != nil {
					a.id, adv, age, sequence = m[1], m[2], m[3], m[4]
				}
			default:
				if m = frrLSA6.FindStringSubmatch(line); m != nil {
					a.typ, a.id, adv, age, sequence = m[1], m[2], m[3], m[4], m[5]
				}
			}
			if adv == router {
				n, err := strconv.ParseUint(sequence, 16, 32)
				if err != nil {
					l.t.Fatalf("%s: %v", line, err)
				}
				a.sequence = uint32(n)
				if a.age, err = strconv.Atoi(age); err != nil {
					l.t.Fatalf("%s: %v", line, err)
				}
				if !slices.ContainsFunc(out, func(o ospfLSA) bool { return o == a }) { // FRR lists some of each interface
					out = append(out, a)
				}
			}
		}
	}
	return out
}

// marks waits until these nodes have so many live LSAs of a router that mark a prefix, of each version, and no
// others of it that do but those at MaxAge.
func (l *ospfLab) marks(router string, want int, nodes ...string) {
	l.t.Helper()
	for _, node := range nodes {
		l.eventually(fmt.Sprintf("%s has %d marks of %s of each version", node, want, router), func() string {
			have := map[int]int{}
			all := l.lsas(node, router)
			for _, a := range all {
				if a.isMark() && a.age < 3600 {
					have[a.version]++
				}
			}
			if have[2] != want || have[3] != want {
				return fmt.Sprint(all)
			}
			return ""
		})
	}
}

func (l *ospfLab) leafLSAs(node, router string) (out []ospfLSA) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
	defer cancel()
	r, err := pncv1.NewOspfServiceClient(l.dial(node)).ListLsas(ctx, &pncv1.ListLsasRequest{Router: router})
	if err != nil && status.Code(err) != codes.NotFound { // nothing of the router is there yet, or any more
		l.t.Fatalf("%s: %v", node, err)
	}
	for _, a := range r.GetLsas() {
		out = append(out, ospfLSA{version: int(a.GetVersion()), typ: a.GetTypeName(), id: a.GetId(), age: int(a.GetAge()), sequence: a.GetSequence()})
	}
	return out
}
