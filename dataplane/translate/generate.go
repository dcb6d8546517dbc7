package translate

//go:generate sh ../bpf/generate.sh translate event answer bucket ready flow_key counters policy port pace total prefix_key
