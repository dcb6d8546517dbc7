// Package qdisc tells from the statistics of a link's queueing disciplines when its queue is congested: packets were
// marked CE (RFC 3168) since the last look, or more than a threshold waits. It asks the kernel (rtnetlink, RTM_GETQDISC)
// at an interval, changes nothing, and knows no flow: who uses it asks for the link's top flows.
//
// Which disciplines count their marks, and where: see the table in stats.go. Others have a backlog only.
//
// Source: the kernel's include/uapi/linux/pkt_sched.h, rtnetlink.h and gen_stats.h; tc(8).
package qdisc
