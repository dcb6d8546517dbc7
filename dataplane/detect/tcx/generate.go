package tcx

//go:generate sh ../../bpf/generate.sh detect event gate_key gate queue counters
