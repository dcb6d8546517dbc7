package kernel

//go:generate sh ../../bpf/generate.sh learn event flow flow_key counters
