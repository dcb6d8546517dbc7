// RoCEv2 behind the UDP header, by the rules of roce.ParseEthernet.

#ifndef PNCD_ROCE_H
#define PNCD_ROCE_H

#include "ip.h"

#define ROCE_PORT 4791
#define BTH_LEN   12
#define ICRC_LEN  4

// Transports, the top three bits of an opcode (IBTA volume 1, table 38).
#define T_RC  0
#define T_UC  1
#define T_RD  2
#define T_UD  3
#define T_CNP 4

struct bth_header {
	__u8   opcode, flags;
	__be16 pkey;
	__be32 dest_qp, psn; // with the octets before them
};

// roce_packet is what UDP header and BTH say.
struct roce_packet {
	__u32 bth;  // offset in the frame
	__u32 dest_qp;
	__u32 psn;
	__u16 src_port;
	__u8  opcode;
	__u8  ack_req;
};

// parse_roce reads on where parse_ip has found UDP. It is P_OTHER (another port), P_REFUSED or P_OK.
INLINE enum parsed parse_roce(const struct frame *f, const struct ip_packet *p, const struct addresses *a,
			      struct roce_packet *r)
{
	struct udp_header udp_room;
	const struct udp_header *u = VIEW(f, p->udp, udp_room);
	if (p->end < p->udp + sizeof(*u) || !u || u->dst != bpf_htons(ROCE_PORT))
		return P_OTHER;
	r->src_port = bpf_ntohs(u->src);
	r->bth = p->udp + sizeof(*u);
	if (bpf_ntohs(u->len) != p->end - p->udp || p->end < r->bth + BTH_LEN + ICRC_LEN ||
	    (p->v6 && (is_mapped(a->src) || is_mapped(a->dst))))
		return P_REFUSED;
	struct bth_header bth_room;
	const struct bth_header *b = VIEW(f, r->bth, bth_room);
	if (!b)
		return P_REFUSED;
	__u32 psn = bpf_ntohl(b->psn);
	r->opcode = b->opcode;
	r->dest_qp = bpf_ntohl(b->dest_qp) & 0xFFFFFF;
	r->psn = psn & 0xFFFFFF;
	r->ack_req = psn >> 31;
	return P_OK;
}

#endif
