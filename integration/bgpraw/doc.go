// Package bgpraw is a BGP neighbour that sends what a test tells it to, octet by octet. It brings a session
// up, keeps it alive, and tells what came back; it checks nothing of what it sends and keeps no routes.
//
// The wire format is RFC 4271 section 4; capabilities are given as octets.
package bgpraw
