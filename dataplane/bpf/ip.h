// From the Ethernet header to that of UDP, by the rules of roce.ParseEthernet.

#ifndef PNCD_IP_H
#define PNCD_IP_H

#include "frame.h"

#define ETH_IPV4  0x0800
#define ETH_IPV6  0x86DD
#define ETH_VLAN  0x8100
#define ETH_QINQ  0x88A8
#define ETH_ROCE1 0x8915

#define IP_UDP  17
#define IP_HOP  0
#define IP_DEST 60

// Headers: their fields are read as they are aligned behind an Ethernet header at an even address.

struct ether_header {
	__be16 dst[3], src[3];
	__be16 type;
};

// mac_head is the first four octets of the source's address, which isn't aligned for them everywhere.
INLINE __be32 mac_head(const struct ether_header *e)
{
	union {
		__be16 half[2];
		__be32 word;
	} u = {.half = {e->src[0], e->src[1]}};
	return u.word;
}

struct vlan_tag {
	__be16 tci, type;
};

struct ipv4_header {
	__u8   version, tos;
	__be16 total, id, frag;
	__u8   ttl, proto;
	__be16 sum;
	__be32 src, dst;
};

struct ipv6_header {
	__be32 version;
	__be16 payload;
	__u8   next, hops;
	__be32 src[4], dst[4];
};

struct udp_header {
	__be16 src, dst, len, sum;
};

// addresses are IPv6, or IPv4-mapped.
struct addresses {
	__be32 src[4], dst[4];
};

// ip_packet is where the parts of an IP packet with UDP are, in octets from the frame's start, and what its headers say.
struct ip_packet {
	__u32  ip;  // the IP header
	__u32  udp; // that of UDP
	__u32  end; // behind the packet, by its own length: it may be past the frame's end
	__be32 mac_head; // of the source: four octets
	__be16 mac_tail; // and two
	__u16  vlan; // identifier of the outer tag, in the frame or taken off by the kernel; 0: none
	__u8   v6;
	__u8   tos; // or the traffic class
	__u8   ttl; // or the hop limit
};

enum parsed {
	P_OTHER,   // something else
	P_OK,      // what was looked for
	P_ROCE_V1, // RoCE without IP
	P_REFUSED, // the right port, but not sound
};

INLINE enum parsed parse_ipv4(const struct frame *f, struct ip_packet *p, struct addresses *a)
{
	struct ipv4_header room;
	const struct ipv4_header *h = VIEW(f, p->ip, room);
	if (!h || h->version >> 4 != 4)
		return P_OTHER;
	__u32 ihl = (h->version & 0x0F) * 4, total = bpf_ntohs(h->total);
	if (ihl < 20 || total < ihl || h->frag & bpf_htons(0x3FFF) || h->proto != IP_UDP)
		return P_OTHER;
	p->udp = p->ip + ihl;
	p->end = p->ip + total;
	p->tos = h->tos;
	p->ttl = h->ttl;
	a->src[0] = a->src[1] = a->dst[0] = a->dst[1] = 0;
	a->src[2] = a->dst[2] = bpf_htonl(0xFFFF);
	a->src[3] = h->src;
	a->dst[3] = h->dst;
	return P_OK;
}

INLINE enum parsed parse_ipv6(const struct frame *f, struct ip_packet *p, struct addresses *a)
{
	struct ipv6_header room;
	const struct ipv6_header *h = VIEW(f, p->ip, room);
	if (!h || (bpf_ntohl(h->version) >> 28) != 6)
		return P_OTHER;
	p->v6 = 1;
	p->udp = p->ip + sizeof(*h);
	p->end = p->udp + bpf_ntohs(h->payload);
	p->tos = bpf_ntohl(h->version) >> 20;
	p->ttl = h->hops;
#pragma unroll
	for (int i = 0; i < 4; i++) {
		a->src[i] = h->src[i];
		a->dst[i] = h->dst[i];
	}
	__u8 next = h->next;
	for (int i = 0; i < 3; i++) {
		struct { __u8 next, len, data[6]; } ext_room;
		if (next == IP_UDP)
			return P_OK;
		if (next != IP_HOP && next != IP_DEST)
			return P_OTHER;
		const __typeof__(ext_room) *ext = VIEW(f, p->udp, ext_room);
		if (!ext)
			return P_OTHER;
		next = ext->next;
		p->udp += 8 + ext->len * 8;
		if (p->udp > p->end || p->udp > SNAP)
			return P_OTHER;
	}
	return next == IP_UDP ? P_OK : P_OTHER;
}

// is_mapped says whether an address of an IPv6 header is IPv4-mapped, which must not be on a wire.
INLINE int is_mapped(const __be32 a[4]) { return a[0] == 0 && a[1] == 0 && a[2] == bpf_htonl(0xFFFF); }

// parse_ip finds the UDP header of an Ethernet frame with up to two tags, and IPv4, or IPv6 with up to three options headers: where it
// is, not what it says. It is P_OTHER, P_OK or P_ROCE_V1.
INLINE enum parsed parse_ip(const struct frame *f, struct ip_packet *p, struct addresses *a)
{
	struct ether_header room;
	const struct ether_header *e = VIEW(f, 0, room);
	if (!e)
		return P_OTHER;
	p->mac_head = mac_head(e);
	p->mac_tail = e->src[2];
	p->ip = sizeof(*e);
	p->v6 = 0;
	p->vlan = f->vlan_tci & 0x0FFF;
	__u16 type = bpf_ntohs(e->type);
#pragma unroll
	for (int i = 0; i < 2; i++) {
		struct vlan_tag tag_room;
		if (type != ETH_VLAN && type != ETH_QINQ)
			break;
		const struct vlan_tag *t = VIEW(f, p->ip, tag_room);
		if (!t)
			return P_OTHER;
		if (i == 0 && !f->vlan_tpid)
			p->vlan = bpf_ntohs(t->tci) & 0x0FFF;
		type = bpf_ntohs(t->type);
		p->ip += sizeof(*t);
	}
	switch (type) {
	case ETH_IPV4:
		return parse_ipv4(f, p, a);
	case ETH_IPV6:
		return parse_ipv6(f, p, a);
	case ETH_ROCE1:
		return P_ROCE_V1;
	}
	return P_OTHER;
}

#endif
