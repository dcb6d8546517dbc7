// Package demo shows the whole path once, with real packets and times: a router marks CE, the proxy is
// found through a route that FRR passed on, the proxy names the sender's queue pair from the traffic it
// saw, and the CNP arrives at the sender. Then a second act: congestion of a flow whose queue pair nobody
// can know, and the named reason for the silence.
//
// It is what `make demo` runs. It fails when any of it was not seen.
package demo
