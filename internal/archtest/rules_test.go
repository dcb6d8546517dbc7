package archtest

import "strings"

// everything is a pattern that matches each package of the module.
const everything = "..."

// rule says which packages of this module a package may import outside of its tests. Paths are without
// the module's name; a pattern that ends in /... matches the path before it and all below.
type rule struct {
	pkg string
	may []string
}

// rules, the first that matches a package holds for it. A package without a rule fails the test, so that
// whoever adds one decides where it stands.
var rules = []rule{
	// The domain and the codecs stand alone.
	{"pnc", nil},
	{"bgp/nhc", nil},
	{"bgp/guard", nil},
	{"igp/wire", nil},
	{"igp/keys", nil},
	{"igp/spf", nil},
	{"igp/due", nil},
	{"igp/shell", []string{"igp"}},
	{"igp/internal/...", nil},
	{"igp/isis/packet", []string{"igp/wire"}},
	{"igp/ospf/packet", []string{"igp/wire"}},
	{"igp/ospf/marks", []string{"igp/ospf/packet"}},
	{"igp/ospf/spf", []string{"igp/ospf/packet", "igp/spf"}},
	{"igp/ospf/neighbor", []string{"igp/ospf/packet"}},
	{"igp/ospf/iface", []string{"igp/ospf/packet", "igp/ospf/neighbor"}},
	{"igp/ospf/auth", []string{"igp/keys", "igp/ospf/packet"}},
	{"igp/ospf/learn", []string{"igp", "igp/backoff", "igp/ospf/packet", "igp/ospf/lsdb", "igp/ospf/spf", "igp/ospf/marks"}},
	{"igp/ospf/ospfapi/message", []string{"igp/wire", "igp/ospf/packet"}},
	{"proxyagent/message", nil},
	{"dataplane/roce", nil},

	// Only the engine knows GoBGP, and what stands in front of it.
	{"bgp/bmp", nil},
	{"bgp/relay", []string{"bgp/guard"}},
	{"bgp/engine", []string{"bgp/bmp", "bgp/guard", "bgp/relay"}},
	{"bgp/engine/enginetest", nil},
	{"bgp", []string{"pnc", "bgp/engine", "bgp/nhc"}},
	{"bgp/speakertest", []string{"pnc", "bgp"}},
	{"igp/...", []string{"pnc", "igp/..."}},

	// The agents reach the kernel through interfaces that they declare themselves.
	{"proxyagent/...", []string{"pnc", "dataplane/roce", "api/pnc/v1", "proxyagent/..."}},

	// The kernel's side knows packets and no protocol. The detector reads its own ring.
	{"dataplane/detect", []string{"dataplane/roce", "dataplane/tap"}},
	{"dataplane/detect/qdisc", nil},
	{"dataplane/detect/tcx", []string{"dataplane/roce", "dataplane/detect", "dataplane/tap/kernel"}},
	{"dataplane/tap/taptest", []string{"dataplane/roce", "dataplane/tap"}},
	{"dataplane/tap/kernel", []string{"dataplane/roce", "dataplane/tap"}},
	{"dataplane/tap/kernel/kerneltest", []string{"dataplane/roce"}},
	{"dataplane/translate", []string{"dataplane/roce", "dataplane/tap/kernel"}},
	{"dataplane/...", []string{"dataplane/roce"}},

	// The server asks the daemon through interfaces of its own.
	{"api/pnc/v1", nil},
	{"api/apitest", []string{"api", "api/pnc/v1", "pnc", "proxyagent/evidence"}},
	{"api", []string{"api/pnc/v1", "pnc", "proxyagent/evidence"}},

	// The command line knows the API and the names of outcomes.
	{"internal/ctl", []string{"api", "api/pnc/v1", "proxyagent/evidence", "internal/version"}},

	// Glue that is of use to several and knows none of them.
	{"deploy", nil},
	{"internal/archtest", nil},
	{"internal/config", nil},
	{"internal/telemetry", nil},
	{"internal/testwait", nil},
	{"internal/testvectors", nil},
	{"internal/version", nil},
	{"internal/labtraffic", []string{"dataplane/roce"}},

	// These see everything.
	{"internal/daemon", []string{everything}},
	{"integration/...", []string{everything}},
	{"cmd/...", []string{everything}},
}

// closed are packages that only their own kind imports, whatever the rules above allow.
var closed = []rule{
	{"cmd/...", nil},
	{"integration/...", []string{"integration/...", "cmd/pnclab"}},
	{"internal/daemon", []string{"cmd/pncd", "integration/..."}},
	{"api/apitest", nil},      // tests only
	{"igp/internal/...", nil}, // tests only
	{"igp/shell", []string{"igp/isis/speaker", "igp/ospf/speaker"}},
	{"bgp/engine/enginetest", []string{"integration/bench"}}, // GoBGP as it comes, and a raw neighbour
	{"bgp/speakertest", []string{"integration/..."}},
	{"dataplane/tap/taptest", []string{"integration/..."}},
	{"dataplane/bpf/bpftest", nil},
	{"dataplane/tap/kernel/kerneltest", nil}, // tests only
	{"internal/testwait", nil},               // tests only
	{"internal/testvectors", nil},
}

// libraries are modules that only some packages may import.
var libraries = []struct {
	prefix string
	by     []string
}{
	{"github.com/osrg/gobgp", []string{"bgp/engine", "bgp/engine/enginetest"}}, // the latter: a baseline to measure
	{"github.com/prometheus", []string{"internal/telemetry"}},
	{"github.com/spf13/cobra", []string{"internal/ctl", "cmd/..."}},
	{"github.com/coreos/go-systemd", []string{"internal/daemon"}},
	{"github.com/vishvananda", []string{"dataplane/boundary", "dataplane/detect/qdisc", "dataplane/host", "dataplane/tap/kernel", "dataplane/tap/taptest", "dataplane/translate", "internal/labtraffic", "integration/...", "cmd/pnclab"}},
	{"github.com/google/nftables", []string{"dataplane/boundary"}},
	{"github.com/mdlayher/netlink", []string{"dataplane/boundary"}},
	{"github.com/cilium/ebpf", []string{"integration/bench", "dataplane/bpf/bpftest", "dataplane/detect/tcx", "dataplane/translate", "dataplane/tap/kernel"}},
	{"github.com/gopacket", []string{"internal/labtraffic", "integration/..."}},
	{"google.golang.org/grpc", []string{"api/...", "bgp/engine", "internal/ctl", "integration/...", "cmd/pnclab"}},
	{"net/http", []string{"internal/telemetry", "internal/ctl"}},
}

// pure are packages without I/O: time is passed in, and nothing reaches the network, files or the kernel.
var pure = []string{
	"igp/spf", "igp/ospf/spf", "igp/ospf/marks", "igp/ospf/learn",
	"pnc", "bgp/nhc", "bgp/guard", "igp/wire", "igp/keys", "igp/due", "igp/backoff", "igp/isis/packet", "igp/isis/auth", "igp/isis/adjacency", "igp/isis/lsdb", "igp/isis/flooding", "igp/isis/origin", "igp/isis/spf",
	"igp/ospf/packet", "igp/ospf/neighbor", "igp/ospf/iface", "igp/ospf/lsdb", "igp/ospf/flooding", "igp/ospf/auth", "igp/ospf/ospfapi/message", "igp/ospf/ospfapi/learner", "proxyagent/message", "proxyagent/flowmap", "proxyagent/evidence", "proxyagent/readiness", "dataplane/roce",
}

// inputOutput are the imports that a pure package must not have. net/netip holds addresses only.
var inputOutput = []string{"net", "os", "os/...", "syscall", "io/fs", "net/http/...", "golang.org/x/sys/...", "golang.org/x/net/..."}

// match reports whether a pattern matches a path.
func match(pattern, path string) bool {
	if pattern == everything {
		return true
	}
	if dir, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == dir || strings.HasPrefix(path, dir+"/")
	}
	return path == pattern
}

func matchAny(patterns []string, path string) bool {
	for _, p := range patterns {
		if match(p, path) {
			return true
		}
	}
	return false
}
