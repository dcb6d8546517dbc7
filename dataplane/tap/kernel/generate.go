package kernel

// Needs clang, llvm and libbpf-dev of Debian. The result is committed, so that building needs none of them; learn.sum
// says of which source and by which clang it is.
//
//go:generate go tool -modfile=../../../tools/go.mod bpf2go -type event -type flow -type flow_key -type counters learn learn.c -- -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu -mcpu=v3 -Wall -Werror
//go:generate sh -c "(sha256sum learn.c; clang --version | head -n 1) > learn.sum"
