// Package host tells what the kernel knows about this host, by rtnetlink (RFC 3549, rtnetlink(7)):
// its links and addresses, whether an interface exists, and, followed as it changes, whether and how
// an address can be reached (next-hop tracking), and which prefixes an interface or a table has routes
// to.
//
// It reads, but for veth pairs that it is told to make (EnsureVeth): it never changes another link, nor an
// address of one, a route or a rule, and it moves no packets. It knows nothing of what the addresses are for.
package host
