// Package guard checks every BGP message that a neighbour sends before GoBGP sees it. GoBGP decodes in
// a goroutine of its own, where a panic ends the process, and it resets sessions that RFC 7606 wants to
// keep; what this package passes, GoBGP decodes without either.
//
// A Session holds what both OPENs said and how far the session is. FromPeer passes a message unchanged
// (the common case, without memory), passes it mended, keeps it back, or says with which NOTIFICATION
// the session ends. What was mended is told as findings, for counters and the history.
//
// It is not for routes: it keeps none, has no policy, and looks into no attribute further than whether
// it is well formed. The TLVs of the NHC attribute are package bgp/nhc's business. It has no I/O.
//
// Defined by RFC 4271 sections 4 and 6, 2918, 4364, 4456, 4659, 4724, 4760, 5065 section 5, 5492, 6286,
// 6608, 6793, 7313, 7606, 7607, 7911, 8092, 8654, 8950, 9072 and draft-ietf-idr-nhc.
package guard
