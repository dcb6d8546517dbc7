// Package bmp sends what a speaker reports over the BGP Monitoring Protocol (RFC 7854) to stations.
//
// The speaker knows its neighbours by loopback addresses. So its BMP goes to a listener of this package,
// which puts the neighbours' own addresses and ports in their place and passes the messages on. A connection of the
// speaker's exists only together with one to a station, so each station gets everything from the begin, and a
// station that is away or slow holds up nobody.
package bmp
