// Package flooding is the update process of OSPF for both versions: receiving LSAs, acknowledging and passing them
// on, retransmitting, ageing, and originating one's own (RFC 2328 sections 12.4, 13 and 14; RFC 5340 sections
// 4.4.3 and 4.5; RFC 5250 sections 3 and 4).
//
// It is pure, with the time passed in. It is that of a leaf: never Designated Router or Backup, and nothing is
// passed between areas but LSAs whose scope is the domain.
package flooding
