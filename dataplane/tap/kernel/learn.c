//go:build ignore

// The learner's tap in the kernel, for TCX ingress and for XDP. It changes no packet and drops none.
//
// It counts every RoCEv2 packet, keeps one entry for each flow, and hands to user space, by a ring buffer, the
// packets that learning needs. doc.go says which those are. What is a RoCEv2 packet is what package roce takes of
// the first SNAP octets of the frame, and a test holds the two together.

#include <stddef.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define SNAP  512 // octets of a frame that are read, and handed up of a MAD
#define SHORT 128 // octets handed up of other packets: all headers, unless there are options

#define ETH_IPV4  0x0800
#define ETH_IPV6  0x86DD
#define ETH_VLAN  0x8100
#define ETH_QINQ  0x88A8
#define ETH_ROCE1 0x8915

#define IP_UDP  17
#define IP_HOP  0
#define IP_DEST 60

#define ROCE_PORT 4791
#define BTH_LEN   12
#define EXT_LEN   16 // the longest header behind the BTH that learning reads: RETH

// Transports, the top three bits of an opcode (IBTA volume 1, table 38).
#define T_RC  0
#define T_UC  1
#define T_RD  2
#define T_UD  3
#define T_CNP 4

// Steps of a PSN within which a decided flow goes on (flowmap/rules.go, rule 8).
#define REQ_AHEAD  1024
#define RESP_AHEAD 16384
#define RESP_BACK  1024
#define PSN_BACK   64
#define MSN_BACK   4
#define MSN_LOW    64
#define READ_MTU   256 // the smallest path MTU: a READ takes at most so many PSNs
#define BULK_EVERY 255 // MIDDLE packets of a watched flow whose PSN has none of these bits are handed up
#define IDLE_NS    100000000ULL

// States of a flow; user space sets them.
#define WATCHED  0 // every packet that can vote is handed up
#define FOLLOWED 1 // decided: only what may end the answer, and one packet in an interval
#define QUIET    2 // can't be decided: one packet in an interval

// Why a packet is handed up.
#define NOT_TOLD    0
#define R_MAD       1
#define R_NEW       2 // the flow's first packet
#define R_VOTE      3 // the flow is watched
#define R_INTERVAL  4
#define R_STEP      5 // a PSN or MSN out of sequence, or a first one
#define R_TRANSPORT 6
#define R_IDENTITY  7 // another interface, source MAC or TTL than the flow's
#define R_SOURCE    8 // UD: another source QP
#define REASONS     9

// Bits of flow.seen.
#define SEEN_REQ  1
#define SEEN_RESP 2
#define SEEN_MSN  4

struct flow_key {
	__u8  src[16]; // IPv4 as IPv4-mapped
	__u8  dst[16];
	__u32 dest_qp;
	__u16 src_port;
	__u16 vlan; // identifier of the outer tag
};

struct flow {
	__u64 last_seen; // CLOCK_MONOTONIC, nanoseconds
	__u64 told_at;   // when a packet was handed up last
	__u32 packets;
	__u32 skipped; // packets since then
	__u32 req_high; // highest PSN of the requests; UD: the source QP
	__u32 resp_high;
	__u32 msn;
	__u32 read_len; // octets of the READ that req_high is of, or 0
	__u32 ifindex;
	__u8  mac[6];
	__u8  ttl;
	__u8  state;
	__u8  transport;
	__u8  seen;
	__u16 unused;
};

// What is known of the flow is as it was before the packet.
struct event {
	__u64 at;
	__u64 last_seen;
	__u32 ifindex;
	__u32 wire; // octets of the frame, without a tag that the kernel took off
	__u32 skipped;
	__u32 req_high;
	__u32 resp_high;
	__u32 msn;
	__u32 read_len;
	__u16 len; // octets of data
	__u16 vlan_tci;  // of a tag that the kernel took off
	__u16 vlan_tpid; // 0: it took none
	__u8  reason;
	__u8  state;
	__u8  seen;
	__u8  unused[11];
};

struct small_event {
	struct event head;
	__u8         data[SHORT];
};

struct large_event {
	struct event head;
	__u8         data[SNAP];
};

struct counters {
	__u64 packets;
	__u64 octets; // of the IP packets
	__u64 transport[8];
	__u64 roce_v1;
	__u64 refused; // UDP to port 4791, but no sound RoCEv2 packet
	__u64 told[REASONS];
	__u64 lost; // the ring buffer was full
	__u64 flows_made;
	__u64 flows_refused; // no entry could be made
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024); // set by user space
	__type(key, struct flow_key);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); // set by user space
	__type(value, struct event);
} events SEC(".maps");

volatile const __u64 interval_ns;
volatile const __u32 wake_octets; // wake the reader when so much waits for it

// packet is one frame: where it is, and what the parser found.
struct packet {
	void *ctx;
	void *data, *end;
	__u32 frame; // octets of the whole frame
	__u32 limit; // octets that are looked at
	__u32 ifindex;
	__u16 vlan_tci, vlan_tpid;

	__u32           bth; // offset
	__u32           octets;
	__u8            mac[6];
	__u8            ttl;
	__u8            opcode, ack_req;
	__u32           psn;
	struct flow_key key;
};

#define INLINE static __always_inline

INLINE int copy(struct packet *p, int xdp, __u32 off, void *to, __u32 len)
{
	return xdp ? bpf_xdp_load_bytes(p->ctx, off, to, len) : bpf_skb_load_bytes(p->ctx, off, to, len);
}

// LOAD takes sizeof(to) octets at off, which is at most SNAP. It is false where the frame ends before.
#define LOAD(p, xdp, off, to) load(p, xdp, off, &(to), sizeof(to))
INLINE int load(struct packet *p, int xdp, __u32 off, void *to, const __u32 len)
{
	if (off > SNAP || off + len > p->limit)
		return 0;
	if (p->data + off + len <= p->end) {
		__builtin_memcpy(to, p->data + off, len);
		return 1;
	}
	return copy(p, xdp, off, to, len) == 0;
}

struct ether {
	__u8   dst[6], src[6];
	__be16 type;
};

struct tag {
	__be16 tci, type;
};

struct ipv4 {
	__u8   version, tos;
	__be16 total, id, frag;
	__u8   ttl, proto;
	__be16 sum;
	__u8   src[4], dst[4];
};

struct ipv6 {
	__be32 version;
	__be16 payload;
	__u8   next, hops;
	__u8   src[16], dst[16];
};

struct udp {
	__be16 src, dst, len, sum;
};

struct bth {
	__u8   opcode, flags;
	__be16 pkey;
	__be32 dest_qp, psn; // with the octets before them
};

// span is where the UDP header is and where the IP packet ends, in octets from the frame's start.
struct span {
	__u32 udp, end;
};

// layoutIPv4
INLINE int layout_ipv4(struct packet *p, int xdp, __u32 ip, struct span *s)
{
	struct ipv4 h;
	if (!LOAD(p, xdp, ip, h) || h.version >> 4 != 4)
		return 0;
	__u32 ihl = (h.version & 0x0F) * 4, total = bpf_ntohs(h.total);
	if (ihl < 20 || total < ihl || h.frag & bpf_htons(0x3FFF) || h.proto != IP_UDP)
		return 0;
	s->udp = ip + ihl;
	s->end = ip + total;
	p->octets = total;
	p->ttl = h.ttl;
	p->key.src[10] = p->key.src[11] = p->key.dst[10] = p->key.dst[11] = 0xFF;
	__builtin_memcpy(p->key.src + 12, h.src, 4);
	__builtin_memcpy(p->key.dst + 12, h.dst, 4);
	return 1;
}

// layoutIPv6
INLINE int layout_ipv6(struct packet *p, int xdp, __u32 ip, struct span *s)
{
	struct ipv6 h;
	if (!LOAD(p, xdp, ip, h) || (bpf_ntohl(h.version) >> 28) != 6)
		return 0;
	s->udp = ip + sizeof(h);
	s->end = s->udp + bpf_ntohs(h.payload);
	p->octets = s->end - ip;
	p->ttl = h.hops;
	__builtin_memcpy(p->key.src, h.src, 16);
	__builtin_memcpy(p->key.dst, h.dst, 16);
	__u8 next = h.next;
	for (int i = 0; i < 3; i++) {
		__u8 ext[8];
		if (next == IP_UDP)
			return 1;
		if ((next != IP_HOP && next != IP_DEST) || !LOAD(p, xdp, s->udp, ext))
			return 0;
		next = ext[0];
		s->udp += 8 + ext[1] * 8;
		if (s->udp > s->end || s->udp > SNAP)
			return 0;
	}
	return next == IP_UDP;
}

INLINE int mapped(const __u8 a[16])
{
	const __u32 *w = (const __u32 *)a;
	return w[0] == 0 && w[1] == 0 && w[2] == bpf_htonl(0xFFFF);
}

// parse is ParseEthernet. It returns whether the packet is RoCEv2; c counts what is nearly so.
INLINE int parse(struct packet *p, int xdp, struct counters *c)
{
	struct ether e;
	if (!LOAD(p, xdp, 0, e))
		return 0;
	__builtin_memcpy(p->mac, e.src, 6);
	__u32 ip = sizeof(e);
	__u16 type = bpf_ntohs(e.type), vlan = p->vlan_tci & 0x0FFF;
#pragma unroll
	for (int i = 0; i < 2; i++) {
		struct tag t;
		if (type != ETH_VLAN && type != ETH_QINQ)
			break;
		if (!LOAD(p, xdp, ip, t))
			return 0;
		if (i == 0 && !p->vlan_tpid)
			vlan = bpf_ntohs(t.tci) & 0x0FFF;
		type = bpf_ntohs(t.type);
		ip += sizeof(t);
	}
	struct span s;
	switch (type) {
	case ETH_IPV4:
		if (!layout_ipv4(p, xdp, ip, &s))
			return 0;
		break;
	case ETH_IPV6:
		if (!layout_ipv6(p, xdp, ip, &s))
			return 0;
		break;
	case ETH_ROCE1:
		c->roce_v1++;
		return 0;
	default:
		return 0;
	}
	struct udp u;
	if (s.end < s.udp + sizeof(u) || !LOAD(p, xdp, s.udp, u) || u.dst != bpf_htons(ROCE_PORT))
		return 0;
	struct bth b;
	p->bth = s.udp + sizeof(u);
	if (bpf_ntohs(u.len) != s.end - s.udp || s.end < p->bth + BTH_LEN + 4 || !LOAD(p, xdp, p->bth, b) ||
	    (type == ETH_IPV6 && (mapped(p->key.src) || mapped(p->key.dst)))) {
		c->refused++;
		return 0;
	}
	p->opcode = b.opcode;
	p->psn = bpf_ntohl(b.psn) & 0xFFFFFF;
	p->ack_req = bpf_ntohl(b.psn) >> 31;
	p->key.dest_qp = bpf_ntohl(b.dest_qp) & 0xFFFFFF;
	p->key.src_port = bpf_ntohs(u.src);
	p->key.vlan = vlan;
	return 1;
}

// Kinds of packets of RC and UC.
enum kind { K_OTHER, K_REQUEST, K_MIDDLE, K_READ, K_RESPONSE, K_RESP_MIDDLE };

INLINE enum kind kind_of(__u8 transport, __u8 op)
{
	if (transport == T_UC && op > 0x0B)
		return K_OTHER;
	switch (op) {
	case 0x01: case 0x07:
		return K_MIDDLE;
	case 0x0C:
		return K_READ;
	case 0x0E:
		return K_RESP_MIDDLE;
	case 0x0D: case 0x0F: case 0x10: case 0x11: case 0x12:
		return K_RESPONSE;
	case 0x13: case 0x14: case 0x16: case 0x17: case 0x1C: case 0x1D:
		return K_REQUEST;
	}
	return op <= 0x0B ? K_REQUEST : K_OTHER;
}

// psn_diff is a - b in the space of 24 bits.
INLINE __s32 psn_diff(__u32 a, __u32 b) { return (__s32)((a - b) << 8) >> 8; }

// follow_request moves the requests of a flow on, and tells whether the step is one of a flow that goes on.
INLINE int follow_request(struct packet *p, int xdp, struct flow *f, enum kind kind)
{
	__be32 dma = 0;
	if (kind == K_READ && !LOAD(p, xdp, p->bth + BTH_LEN + 12, dma))
		return 1; // cut: user space would not learn from it either
	__u32 read_len = bpf_ntohl(dma);
	__s32 d = psn_diff(p->psn, f->req_high);
	__s32 ahead = REQ_AHEAD;
	if (f->read_len)
		ahead += f->read_len < (1U << 30) ? f->read_len / READ_MTU : 1U << 22;
	int fits = f->seen & SEEN_REQ && d <= ahead && d >= -PSN_BACK;
	if (!(f->seen & SEEN_REQ) || d > 0 || d < -REQ_AHEAD) {
		f->req_high = p->psn;
		f->read_len = read_len;
		f->seen |= SEEN_REQ;
	}
	return fits;
}

// follow_response does so for the responses, with the MSN of their AETH.
INLINE int follow_response(struct packet *p, int xdp, struct flow *f, enum kind kind, __u64 now)
{
	int fits = 1;
	if (kind == K_RESPONSE) {
		__be32 aeth;
		if (!LOAD(p, xdp, p->bth + BTH_LEN, aeth))
			return 1;
		__u32 msn = bpf_ntohl(aeth) & 0xFFFFFF;
		__s32 d = psn_diff(msn, f->msn);
		if (!(f->seen & SEEN_MSN))
			fits = 0;
		else if (d < -MSN_BACK && msn < MSN_LOW)
			fits = 0;
		if (!fits || d > 0)
			f->msn = msn;
		f->seen |= SEEN_MSN;
	}
	__s32 d = psn_diff(p->psn, f->resp_high);
	if (!(f->seen & SEEN_RESP) || d > RESP_AHEAD || d < -RESP_BACK ||
	    (d < -PSN_BACK && now - f->last_seen >= IDLE_NS))
		fits = 0;
	if (!(f->seen & SEEN_RESP) || d > 0 || d < -RESP_BACK) {
		f->resp_high = p->psn;
		f->seen |= SEEN_RESP;
	}
	return fits;
}

// follow_ud compares the source QP of a UD packet with the flow's.
INLINE int follow_ud(struct packet *p, int xdp, struct flow *f)
{
	__be32 qp;
	if (!LOAD(p, xdp, p->bth + BTH_LEN + 4, qp))
		return 1;
	__u32 source = bpf_ntohl(qp) & 0xFFFFFF;
	int fits = f->seen & SEEN_REQ && source == f->req_high;
	f->req_high = source;
	f->seen |= SEEN_REQ;
	return fits;
}

INLINE int same_sender(const struct packet *p, const struct flow *f)
{
	__s32 ttl = (__s32)p->ttl - f->ttl;
	__u8 differ = 0;
	for (int i = 0; i < 6; i++)
		differ |= f->mac[i] ^ p->mac[i];
	return f->ifindex == p->ifindex && ttl >= -1 && ttl <= 1 && !differ;
}

INLINE void take_sender(const struct packet *p, struct flow *f)
{
	f->ifindex = p->ifindex;
	f->ttl = p->ttl;
	__builtin_memcpy(f->mac, p->mac, 6);
}

// observe moves a flow on by a packet and says why the packet is handed up, if it is.
INLINE __u8 observe(struct packet *p, int xdp, struct flow *f, int is_new, __u64 now)
{
	__u8 t = p->opcode >> 5, op = p->opcode & 0x1F, reason = NOT_TOLD;
	enum kind kind = t == T_RC || t == T_UC ? kind_of(t, op) : K_OTHER;
	int bulk = (kind == K_MIDDLE && !p->ack_req) || kind == K_RESP_MIDDLE;
	int due = now - f->told_at >= interval_ns;
	if (is_new) {
		reason = R_NEW;
	} else if (f->state == FOLLOWED && !same_sender(p, f)) {
		// It may be forged: it moves nothing.
		f->skipped++;
		return !bulk || due ? R_IDENTITY : NOT_TOLD;
	} else if (f->transport != t) {
		reason = R_TRANSPORT;
		f->state = WATCHED;
		f->transport = t;
		f->seen = 0;
	}
	if (f->state != FOLLOWED)
		take_sender(p, f);

	int fits = 1;
	switch (kind) {
	case K_REQUEST: case K_MIDDLE: case K_READ:
		fits = follow_request(p, xdp, f, kind);
		break;
	case K_RESPONSE: case K_RESP_MIDDLE:
		fits = follow_response(p, xdp, f, kind, now);
		break;
	default:
		if (t == T_UD)
			fits = follow_ud(p, xdp, f);
	}
	f->last_seen = now;
	f->packets++;
	if (reason)
		return reason;
	if (!fits && f->state != QUIET) {
		f->state = WATCHED;
		return t == T_UD ? R_SOURCE : R_STEP;
	}
	int learns = (kind != K_OTHER || t == T_UD) && (!bulk || !(p->psn & BULK_EVERY));
	if (f->state == WATCHED && learns)
		return R_VOTE;
	if (due)
		return R_INTERVAL;
	f->skipped++;
	return NOT_TOLD;
}

INLINE __u64 wake(int now)
{
	if (now || bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) >= wake_octets)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

// fill copies at most cap octets of the frame, and the head but its flow.
INLINE int fill(struct packet *p, int xdp, struct event *h, __u8 *data, const __u32 cap)
{
	__u64 n = p->limit;
	if (n > cap)
		n = cap;
	barrier_var(n); // the verifier wants each bound tested by itself
	if (n > cap)
		return 0;
	barrier_var(n);
	if (n < sizeof(struct ether) || copy(p, xdp, 0, data, n))
		return 0;
	h->len = n;
	return 1;
}

INLINE void hand_up(struct packet *p, int xdp, struct counters *c, const struct event *h)
{
	if (h->reason == R_MAD || p->bth + BTH_LEN + EXT_LEN > SHORT) {
		struct large_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
		if (!e) {
			c->lost++;
			return;
		}
		e->head = *h;
		if (!fill(p, xdp, &e->head, e->data, SNAP)) {
			bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
			c->lost++;
			return;
		}
		bpf_ringbuf_submit(e, wake(h->reason == R_MAD));
	} else {
		struct small_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
		if (!e) {
			c->lost++;
			return;
		}
		e->head = *h;
		if (!fill(p, xdp, &e->head, e->data, SHORT)) {
			bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
			c->lost++;
			return;
		}
		bpf_ringbuf_submit(e, wake(0));
	}
	c->told[h->reason]++;
}

INLINE void remember(struct event *h, const struct flow *f)
{
	h->last_seen = f->last_seen;
	h->skipped = f->skipped;
	h->req_high = f->req_high;
	h->resp_high = f->resp_high;
	h->msn = f->msn;
	h->read_len = f->read_len;
	h->state = f->state;
	h->seen = f->seen;
}

INLINE struct flow *make_flow(struct packet *p, struct counters *c)
{
	struct flow f = {.transport = p->opcode >> 5};
	take_sender(p, &f);
	if (f.transport != T_RC && f.transport != T_UC && f.transport != T_UD)
		f.state = QUIET; // no one can learn it
	if (bpf_map_update_elem(&flows, &p->key, &f, BPF_NOEXIST) == 0)
		c->flows_made++;
	struct flow *made = bpf_map_lookup_elem(&flows, &p->key);
	if (!made)
		c->flows_refused++;
	return made;
}

INLINE void tap(struct packet *p, int xdp)
{
	__u32 zero = 0;
	struct counters *c = bpf_map_lookup_elem(&counts, &zero);
	p->limit = p->frame < SNAP ? p->frame : SNAP;
	if (!c || !parse(p, xdp, c))
		return;
	__u8 t = p->opcode >> 5;
	c->packets++;
	c->octets += p->octets;
	c->transport[t & 7]++;

	struct event h = {.at = bpf_ktime_get_ns(), .ifindex = p->ifindex, .wire = p->frame,
			  .vlan_tci = p->vlan_tci, .vlan_tpid = p->vlan_tpid};
	if (t == T_CNP)
		return;
	if (t == T_UD && p->key.dest_qp <= 1) { // management: no flow
		h.reason = R_MAD;
		if (p->key.dest_qp == 1)
			hand_up(p, xdp, c, &h);
		return;
	}
	struct flow *f = bpf_map_lookup_elem(&flows, &p->key);
	int is_new = !f;
	if (!f) {
		f = make_flow(p, c);
		if (!f)
			return;
	}
	remember(&h, f);
	h.reason = observe(p, xdp, f, is_new, h.at);
	if (h.reason == NOT_TOLD)
		return;
	f->told_at = h.at;
	f->skipped = 0;
	hand_up(p, xdp, c, &h);
}

SEC("tc")
int learn_tcx(struct __sk_buff *skb)
{
	struct packet p = {.ctx = skb,
			   .data = (void *)(long)skb->data,
			   .end = (void *)(long)skb->data_end,
			   .frame = skb->len,
			   .ifindex = skb->ifindex};
	if (skb->vlan_present) {
		p.vlan_tci = skb->vlan_tci;
		p.vlan_tpid = bpf_ntohs(skb->vlan_proto);
	}
	tap(&p, 0);
	return -1; // TCX_NEXT: whatever comes after decides
}

SEC("xdp.frags")
int learn_xdp(struct xdp_md *xdp)
{
	struct packet p = {.ctx = xdp,
			   .data = (void *)(long)xdp->data,
			   .end = (void *)(long)xdp->data_end,
			   .frame = bpf_xdp_get_buff_len(xdp),
			   .ifindex = xdp->ingress_ifindex};
	tap(&p, 1);
	return XDP_PASS;
}

char _license[] SEC("license") = "Apache-2.0"; // no helper that needs the GPL
