// Command run runs the benchmarks and prints one JSON object a line. Arguments choose scenarios by name or pattern
// (path.Match).
package main

import (
	"flag"
	"fmt"
	"os"
	"path"
	"slices"

	"pncd/integration/bench"
)

var scenarios = []bench.Scenario{
	{Name: "resolve-1m", Run: bench.Resolve1M},
	{Name: "bgp-learn-1m", Run: bench.BGPLearn1M},
	{Name: "bgp-learn-1m-distinct", Run: bench.BGPLearn1MDistinct},
	{Name: "bgp-withdraw-100k", Run: bench.BGPWithdraw100K},
	{Name: "bgp-flap", Run: bench.BGPFlap},
	{Name: "isis-parse", Run: bench.ISISParse},
	{Name: "isis-spf-1000", Run: bench.ISISSPF},
	{Name: "isis-converge", Run: bench.ISISConverge},
	{Name: "isis-memory-100k", Run: bench.ISISMemory},
	{Name: "ospf-parse", Run: bench.OSPFParse},
	{Name: "ospf-spf-1000", Run: bench.OSPFSPF},
	{Name: "ospf-converge", Run: bench.OSPFConverge},
	{Name: "ospf-memory-100k", Run: bench.OSPFMemory},
	{Name: "cnp-build", Run: bench.CNPBuild},
	{Name: "flowmap-learn", Run: bench.FlowmapLearn},
	{Name: "emit-frames", Run: bench.EmitFrames},
	{Name: "flowmap-1m", Run: bench.FlowmapMillion},
	{Name: "translate-user", Run: bench.TranslateUser},
	{Name: "translate-kernel", Run: bench.TranslateKernel},
	{Name: "translate-latency", Run: bench.TranslateLatency},
	{Name: "detect-event", Run: bench.DetectEvent},
	{Name: "tap-forwarding", Run: bench.TapForwarding},
	{Name: "tap-forwarding-tcx", Run: bench.TapForwardingTCX},
	{Name: "tap-forwarding-xdp", Run: bench.TapForwardingXDP},
}

func main() {
	bench.ServeBGP()
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: run [scenario or pattern ...]; all without:")
		for _, s := range scenarios {
			fmt.Fprintln(os.Stderr, "  "+s.Name)
		}
	}
	flag.Parse()
	for _, pattern := range flag.Args() {
		if !slices.ContainsFunc(scenarios, func(s bench.Scenario) bool { return matches(pattern, s) }) {
			fmt.Fprintf(os.Stderr, "run: no scenario %q\n", pattern)
			flag.Usage()
			os.Exit(2)
		}
	}
	failed := false
	for _, s := range scenarios {
		if flag.NArg() > 0 && !slices.ContainsFunc(flag.Args(), func(p string) bool { return matches(p, s) }) {
			continue
		}
		results, err := s.Run()
		for _, r := range results {
			if perr := bench.Print(os.Stdout, r); perr != nil {
				err = perr
			}
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", s.Name, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

func matches(pattern string, s bench.Scenario) bool {
	ok, err := path.Match(pattern, s.Name)
	return ok && err == nil
}
