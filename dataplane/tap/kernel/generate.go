package kernel

//go:generate sh ../../bpf/generate.sh learn event progress flow entry4 entry6 counters
