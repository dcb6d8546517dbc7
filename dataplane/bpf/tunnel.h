// Behind one outer header, by the rules of roce.Tunnels.ParseThrough.

#ifndef PNCD_TUNNEL_H
#define PNCD_TUNNEL_H

#include "roce.h"

// What is looked behind: bits, as in roce.Tunnels.
#define TUNNEL_IP    1
#define TUNNEL_GRE   2
#define TUNNEL_VXLAN 4
#define TUNNEL_SRV6  8

#define IP_IPV4     4
#define IP_IPV6     41
#define IP_ROUTING  43
#define IP_GRE      47
#define IP_ETHERNET 143

#define ETH_BRIDGED 0x6558
#define VXLAN_PORT  4789
#define VXLAN_VNI   0x08
#define GRE_UNKNOWN 0x4FFF
#define ROUTING_SR  4

struct option_header {
	__u8 next, len, type, data[5];
};

struct vxlan_header {
	__u8   flags, reserved[3];
	__be32 vni;
};

struct gre_header {
	__be16 flags, type;
};

// payload is what an outer header carries: where it is in the frame, where it must end, and its type.
struct payload {
	__u32 at, end;
	__u8  proto; // of IP
	__u16 type;  // of Ethernet
};

// outer finds what is behind an IP header and its options headers. It is 1 where there is something.
INLINE int outer(const struct frame *f, struct payload *in)
{
	if (in->type == ETH_IPV4) {
		struct ipv4_header room;
		const struct ipv4_header *h = VIEW(f, in->at, room);
		if (!h || h->version >> 4 != 4)
			return 0;
		__u32 ihl = (h->version & 0x0F) * 4, total = bpf_ntohs(h->total);
		if (ihl < 20 || total < ihl || h->frag & bpf_htons(0x3FFF))
			return 0;
		in->end = in->at + total;
		in->at += ihl;
		in->proto = h->proto;
		return 1;
	}
	if (in->type != ETH_IPV6)
		return 0;
	struct ipv6_header room;
	const struct ipv6_header *h = VIEW(f, in->at, room);
	if (!h || bpf_ntohl(h->version) >> 28 != 6)
		return 0;
	in->at += sizeof(*h);
	in->end = in->at + bpf_ntohs(h->payload);
	in->proto = h->next;
	for (int i = 0; i < 3 && (in->proto == IP_HOP || in->proto == IP_DEST); i++) {
		struct option_header ext_room;
		const struct option_header *ext = VIEW(f, in->at, ext_room);
		if (!ext)
			return 0;
		in->proto = ext->next;
		in->at += 8 + ext->len * 8;
		if (in->at > in->end || in->at > SNAP)
			return 0;
	}
	return 1;
}

// skip takes n octets off; what is behind them must be within the packet.
INLINE int skip(struct payload *in, __u32 n)
{
	in->at += n;
	return in->at <= in->end && in->at <= SNAP;
}

INLINE int open_ethernet(const struct frame *f, struct payload *in)
{
	struct ether_header room;
	const struct ether_header *e = VIEW(f, in->at, room);
	if (!e)
		return 0;
	in->type = bpf_ntohs(e->type);
	return skip(in, sizeof(*e));
}

INLINE int open_gre(const struct frame *f, struct payload *in)
{
	struct gre_header room;
	const struct gre_header *g = VIEW(f, in->at, room);
	if (!g || g->flags & bpf_htons(GRE_UNKNOWN))
		return 0;
	__u32 n = sizeof(*g), flags = bpf_ntohs(g->flags);
	n += (flags >> 13 & 4) + (flags >> 11 & 4) + (flags >> 10 & 4); // checksum, key, sequence number
	in->type = bpf_ntohs(g->type);
	if (!skip(in, n))
		return 0;
	return in->type == ETH_BRIDGED ? open_ethernet(f, in) : 1;
}

INLINE int open_vxlan(const struct frame *f, struct payload *in)
{
	struct {
		struct udp_header   udp;
		struct vxlan_header vxlan;
	} room;
	const __typeof__(room) *h = VIEW(f, in->at, room);
	if (!h || h->udp.dst != bpf_htons(VXLAN_PORT) || bpf_ntohs(h->udp.len) != in->end - in->at ||
	    !(h->vxlan.flags & VXLAN_VNI) || !skip(in, sizeof(*h)))
		return 0;
	return open_ethernet(f, in);
}

// open_tunnel finds the IP packet behind the outer headers of the one at in.
INLINE int open_tunnel(const struct frame *f, struct payload *in, __u32 tunnels)
{
	if (!outer(f, in))
		return 0;
	int routed = in->proto == IP_ROUTING && tunnels & TUNNEL_SRV6;
	if (routed) {
		struct option_header room;
		const struct option_header *h = VIEW(f, in->at, room);
		if (!h || h->type != ROUTING_SR)
			return 0;
		in->proto = h->next;
		if (!skip(in, 8 + h->len * 8))
			return 0;
	}
	switch (in->proto) {
	case IP_IPV4:
	case IP_IPV6:
		in->type = in->proto == IP_IPV4 ? ETH_IPV4 : ETH_IPV6;
		return routed || tunnels & TUNNEL_IP;
	case IP_ETHERNET:
		return routed && open_ethernet(f, in);
	case IP_GRE:
		return !routed && tunnels & TUNNEL_GRE && open_gre(f, in);
	case IP_UDP:
		return !routed && tunnels & TUNNEL_VXLAN && open_vxlan(f, in);
	}
	return 0;
}

// parse_through finds the UDP header behind an outer header, where parse_ip and parse_roce have found none of RoCEv2 in the
// frame itself. It is P_OTHER or P_OK.
INLINE enum parsed parse_through(const struct frame *f, struct ip_packet *p, struct addresses *a, __u32 tunnels)
{
	__be16 room;
	const __be16 *type = VIEW(f, p->ip - sizeof(room), room);
	if (!type)
		return P_OTHER;
	struct payload in = {.at = p->ip, .type = bpf_ntohs(*type)};
	if (!open_tunnel(f, &in, tunnels))
		return P_OTHER;
	p->ip = in.at;
	p->v6 = 0;
	enum parsed what = P_OTHER;
	if (in.type == ETH_IPV4)
		what = parse_ipv4(f, p, a);
	else if (in.type == ETH_IPV6)
		what = parse_ipv6(f, p, a);
	return what == P_OK && p->end <= in.end ? P_OK : P_OTHER;
}

#endif
