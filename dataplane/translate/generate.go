package translate

//go:generate sh ../bpf/generate.sh translate event answer ready flow_key counters policy port pace total prefix_key
