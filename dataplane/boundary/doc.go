// Package boundary keeps the domain closed with the kernel's packet filter: notifications don't cross border
// interfaces in either direction, reach this node only from the domain's prefixes and at a bounded rate, and
// CNPs don't leave by the border.
//
// What is to be in the kernel is a plain value first, the Ruleset, which prints itself as nft does; a Filter
// programs it in one transaction, puts it back when somebody changes it, and reads its counters. It owns the
// tables named TableName that carry its mark, and touches no other one. It decides nothing about what the
// notifications say: that is the translator's part, whose own checks hold without this filter, too.
package boundary
