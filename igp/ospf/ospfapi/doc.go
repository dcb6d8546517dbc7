// Package ospfapi learns the P flag from the database of the host router's own ospfd, over FRR's OSPF API, for
// operators who don't want another OSPF neighbour. It only reads: it originates nothing, registers no opaque type,
// and announces no prefix. Client is the shell with sockets, a clock and goroutines; what it says and remembers is in
// the packages learner and message, which are pure.
//
// # What it needs
//
// It is off by default. It needs FRR's ospfd with the API switched on, `-a` (or --apiserver) among ospfd_options in
// /etc/frr/daemons and a restart of ospfd, and OSPF in the default VRF. FRR 8.4.4 is what it was measured with; a
// release so old that its API can't be asked for the router ID doesn't answer, and the connection ends after 10 s.
//
//	ospfd_options="  -A 127.0.0.1 -a"
//
// and opaque LSAs in the router's configuration, or it keeps no Extended Prefix LSAs of others:
//
//	router ospf
//	 capability opaque
//
// pncd runs on the router itself, in the same network namespace, and connects to 127.0.0.1, port 2607. ospfd then
// connects back, to a port of pncd that is open for that moment only, on loopback, for one connection from the
// router's address. Only router, network, summary and opaque LSAs of area scope are asked for, of all areas. What a
// router says is believed while it is reachable from the host router by SPF with the two-way check. When the
// connection is lost, what was learned is kept for 10 s; after a new one, what ospfd doesn't tell again goes. A
// deletion takes effect after 0.5 s, for ospfd deletes an LSA before it tells each new instance.
//
// Another address than loopback is called only when the configuration names it, together with the own address that
// the router connects back to.
//
// # Dangers
//
// The API has no authentication, and ospfd listens on all addresses. FRR 8.4.4 has no option against that; where
// `ospfd --help` shows --apiserver_addr, give it 127.0.0.1. Who reaches port 2607 can make the router originate opaque
// LSAs, or crash it, so let only loopback in:
//
//	nft add table inet ospfapi
//	nft add chain inet ospfapi input '{ type filter hook input priority 0; }'
//	nft add rule inet ospfapi input iifname != "lo" tcp dport 2607 drop
//
// Users of the router itself reach it all the same.
//
// What was measured with FRR 8.4.4, and what this package does about it:
//
//   - A message with an empty body, of any type, makes ospfd abort. None can be made.
//   - To ask for the database, or for the router ID, makes ospfd crash when there is no `router ospf` in the default
//     VRF, as in the moment between ospfd's start and its configuration. It is asked before, in a way that is
//     safe, whether it has an OSPF interface of an address of this host; the question leaves a line in ospfd's log,
//     "Not registered" or "unknown interface". Of a router that is not this host the address that is called must be
//     one of an OSPF interface, or nothing more is asked until ospfd itself names one.
//   - After `no router ospf`, the next client that connects makes ospfd crash, even if `router ospf` is there again.
//     When ospfd has ended the connection, it isn't called again until another process listens: restart ospfd
//     after `no router ospf`. pncd can't know when it is started itself after that, or when the router is not
//     this host.
//   - ospfd waits for its clients, both for the rest of a message and for room to write. Requests are written
//     whole, and a client that can't keep up leaves after 1 s. A pncd that stands still as a whole, as in a debugger,
//     stops ospfd when the sockets' buffers are full.
//   - An ospfd that ends three connections in place of an answer, one after the other, is left alone for a minute,
//     then for longer: it may be a release that crashes at what is asked.
//   - An LSA that the router itself flushes is told to be gone only when ospfd forgets it, up to a minute later. What
//     others flush, and what the router withdraws in its router LSA, is told at once.
//   - Opaque LSAs of type 7 can't be originated over the API: ospfd has registered the type itself. So the P flag is
//     learned this way, and announced only by an OSPF speaker.
package ospfapi
