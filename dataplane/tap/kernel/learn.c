//go:build ignore

// The learner's tap in the kernel, for TCX ingress and for XDP. It changes no packet and drops none.
//
// It counts every RoCEv2 packet, keeps one entry for each flow, and hands to user space, by a ring buffer, the
// packets that learning needs. doc.go says which those are. What is a RoCEv2 packet is what package roce takes of
// the first SNAP octets of the frame, and a test holds the two together.

#include "roce.h"

#define SLOTS 256 // interfaces that are counted apart
#define SHORT 128 // octets handed up of other packets: all headers, unless there are options

#define EXT_LEN   16 // the longest header behind the BTH that learning reads: RETH

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
	__be16 mac[3];
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
	__u64 lost_mads; // of those, management datagrams
	__u64 flows_made;
	__u64 flows_refused; // no entry could be made
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS);
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
volatile const __u32 slot; // of counts: each interface has a program of its own, that differs in this

// packet is one RoCEv2 packet in its frame.
struct packet {
	struct frame       f;
	struct ip_packet   ip;
	struct roce_packet roce;
};

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
INLINE int follow_request(const struct packet *p, struct flow *f, enum kind kind)
{
	__u32 read_len = 0;
	if (kind == K_READ) {
		__be32 room;
		const __be32 *dma = VIEW(&p->f, p->roce.bth + BTH_LEN + 12, room);
		if (!dma)
			return 1; // cut: user space would not learn from it either
		read_len = bpf_ntohl(*dma);
	}
	__s32 d = psn_diff(p->roce.psn, f->req_high);
	__s32 ahead = REQ_AHEAD;
	if (f->read_len)
		ahead += f->read_len < (1U << 30) ? f->read_len / READ_MTU : 1U << 22;
	int fits = f->seen & SEEN_REQ && d <= ahead && d >= -PSN_BACK;
	if (!(f->seen & SEEN_REQ) || d > 0 || d < -REQ_AHEAD) {
		f->req_high = p->roce.psn;
		f->read_len = read_len;
		f->seen |= SEEN_REQ;
	}
	return fits;
}

// follow_response does so for the responses, with the MSN of their AETH.
INLINE int follow_response(const struct packet *p, struct flow *f, enum kind kind, __u64 now)
{
	int fits = 1;
	if (kind == K_RESPONSE) {
		__be32 room;
		const __be32 *aeth = VIEW(&p->f, p->roce.bth + BTH_LEN, room);
		if (!aeth)
			return 1;
		__u32 msn = bpf_ntohl(*aeth) & 0xFFFFFF;
		__s32 d = psn_diff(msn, f->msn);
		if (!(f->seen & SEEN_MSN))
			fits = 0;
		else if (d < -MSN_BACK && msn < MSN_LOW)
			fits = 0;
		if (!fits || d > 0)
			f->msn = msn;
		f->seen |= SEEN_MSN;
	}
	__s32 d = psn_diff(p->roce.psn, f->resp_high);
	if (!(f->seen & SEEN_RESP) || d > RESP_AHEAD || d < -RESP_BACK ||
	    (d < -PSN_BACK && now - f->last_seen >= IDLE_NS))
		fits = 0;
	if (!(f->seen & SEEN_RESP) || d > 0 || d < -RESP_BACK) {
		f->resp_high = p->roce.psn;
		f->seen |= SEEN_RESP;
	}
	return fits;
}

// follow_ud compares the source QP of a UD packet with the flow's.
INLINE int follow_ud(const struct packet *p, struct flow *f)
{
	__be32 room;
	const __be32 *qp = VIEW(&p->f, p->roce.bth + BTH_LEN + 4, room);
	if (!qp)
		return 1;
	__u32 source = bpf_ntohl(*qp) & 0xFFFFFF;
	int fits = f->seen & SEEN_REQ && source == f->req_high;
	f->req_high = source;
	f->seen |= SEEN_REQ;
	return fits;
}

INLINE int same_sender(const struct packet *p, const struct flow *f)
{
	__s32 ttl = (__s32)p->ip.ttl - f->ttl;
	__u16 differ = 0;
	for (int i = 0; i < 3; i++)
		differ |= f->mac[i] ^ p->ip.mac[i];
	return f->ifindex == p->f.ifindex && ttl >= -1 && ttl <= 1 && !differ;
}

INLINE void take_sender(const struct packet *p, struct flow *f)
{
	f->ifindex = p->f.ifindex;
	f->ttl = p->ip.ttl;
	for (int i = 0; i < 3; i++)
		f->mac[i] = p->ip.mac[i];
}

// observe moves a flow on by a packet and says why the packet is handed up, if it is.
INLINE __u8 observe(const struct packet *p, struct flow *f, int is_new, __u64 now)
{
	__u8 t = p->roce.opcode >> 5, op = p->roce.opcode & 0x1F, reason = NOT_TOLD;
	enum kind kind = t == T_RC || t == T_UC ? kind_of(t, op) : K_OTHER;
	int bulk = (kind == K_MIDDLE && !p->roce.ack_req) || kind == K_RESP_MIDDLE;
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
		fits = follow_request(p, f, kind);
		break;
	case K_RESPONSE: case K_RESP_MIDDLE:
		fits = follow_response(p, f, kind, now);
		break;
	default:
		if (t == T_UD)
			fits = follow_ud(p, f);
	}
	f->last_seen = now;
	f->packets++;
	if (reason)
		return reason;
	if (!fits && f->state != QUIET) {
		f->state = WATCHED;
		return t == T_UD ? R_SOURCE : R_STEP;
	}
	int learns = (kind != K_OTHER || t == T_UD) && (!bulk || !(p->roce.psn & BULK_EVERY));
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
INLINE int fill(const struct packet *p, struct event *h, __u8 *data, const __u32 cap)
{
	__u64 n = p->f.limit;
	if (n > cap)
		n = cap;
	barrier_var(n); // the verifier wants each bound tested by itself
	if (n > cap)
		return 0;
	barrier_var(n);
	if (n < sizeof(struct ether_header) || copy(&p->f, 0, data, n))
		return 0;
	h->len = n;
	return 1;
}

INLINE void hand_up(const struct packet *p, struct counters *c, const struct event *h)
{
	if (h->reason == R_MAD || p->roce.bth + BTH_LEN + EXT_LEN > SHORT) {
		struct large_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
		if (!e) {
			c->lost++;
			if (h->reason == R_MAD)
				c->lost_mads++;
			return;
		}
		e->head = *h;
		if (!fill(p, &e->head, e->data, SNAP)) {
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
		if (!fill(p, &e->head, e->data, SHORT)) {
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

INLINE struct flow *make_flow(const struct packet *p, const struct flow_key *key, struct counters *c)
{
	struct flow f = {.transport = p->roce.opcode >> 5};
	take_sender(p, &f);
	if (f.transport != T_RC && f.transport != T_UC && f.transport != T_UD)
		f.state = QUIET; // no one can learn it
	if (bpf_map_update_elem(&flows, key, &f, BPF_NOEXIST) == 0)
		c->flows_made++;
	struct flow *made = bpf_map_lookup_elem(&flows, key);
	if (!made)
		c->flows_refused++;
	return made;
}

INLINE void tap(const struct frame f)
{
	__u32 at = slot;
	struct counters *c = bpf_map_lookup_elem(&counts, &at);
	if (!c)
		return;
	struct packet p = {.f = f};
	struct addresses a;
	enum parsed what = parse_ip(&p.f, &p.ip, &a);
	if (what == P_OK)
		what = parse_roce(&p.f, &p.ip, &a, &p.roce);
	switch (what) {
	case P_ROCE_V1:
		c->roce_v1++;
		return;
	case P_REFUSED:
		c->refused++;
		return;
	case P_OTHER:
		return;
	case P_OK:
		break;
	}
	__u8 t = p.roce.opcode >> 5;
	c->packets++;
	c->octets += p.ip.end - p.ip.ip;
	c->transport[t & 7]++;

	struct event h = {.at = bpf_ktime_get_ns(), .ifindex = f.ifindex, .wire = f.len,
			  .vlan_tci = f.vlan_tci, .vlan_tpid = f.vlan_tpid};
	if (t == T_CNP)
		return;
	if (t == T_UD && p.roce.dest_qp <= 1) { // management: no flow
		h.reason = R_MAD;
		if (p.roce.dest_qp == 1)
			hand_up(&p, c, &h);
		return;
	}
	struct flow_key key = {.dest_qp = p.roce.dest_qp, .src_port = p.roce.src_port, .vlan = p.ip.vlan};
	__builtin_memcpy(key.src, a.src, sizeof(key.src));
	__builtin_memcpy(key.dst, a.dst, sizeof(key.dst));
	struct flow *flow = bpf_map_lookup_elem(&flows, &key);
	int is_new = !flow;
	if (!flow) {
		flow = make_flow(&p, &key, c);
		if (!flow)
			return;
	}
	remember(&h, flow);
	h.reason = observe(&p, flow, is_new, h.at);
	if (h.reason == NOT_TOLD)
		return;
	flow->told_at = h.at;
	flow->skipped = 0;
	hand_up(&p, c, &h);
}

SEC("tc")
int learn_tcx(struct __sk_buff *skb)
{
	tap(frame_of_skb(skb));
	return -1; // TCX_NEXT: whatever comes after decides
}

SEC("xdp.frags")
int learn_xdp(struct xdp_md *xdp)
{
	tap(frame_of_xdp(xdp));
	return XDP_PASS;
}

char _license[] SEC("license") = "Apache-2.0"; // no helper that needs the GPL
