// Package daemon wires the parts of pncd together: it opens them from a configuration, runs them, switches
// the mechanism on and off, applies a changed configuration as a whole or not at all, and stops
// everything in order.
//
// Two kinds of parts exist. Services (API, metrics, BGP, next-hop tracking) run as long as the process.
// Units (taps, detectors, sockets) make up the mechanism and exist only while it is enabled. The package decides
// nothing about packets or routes: it is glue, and no other package imports it.
package daemon
