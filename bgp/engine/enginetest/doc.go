// Package enginetest is what benchmarks and tests put beside the engine: a BGP neighbour that sends
// prepared octets as fast as TCP takes them (Feeder), and GoBGP as it comes, without anything of ours
// (Bare), as a baseline.
//
// It is not for production use, and holds no test itself.
package enginetest
