//go:build ignore

// The learner's tap in the kernel, for TCX ingress and for XDP. It changes no packet and drops none.
//
// It counts every RoCEv2 packet, keeps one entry for each flow, and hands to user space, by a ring buffer, the
// packets that learning needs. doc.go says which those are. What is a RoCEv2 packet is what package roce takes of
// the first SNAP octets of the frame, and a test holds the two together.

#include "flows.h"
#include "tunnel.h"

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
#define IDLE       96 // ticks: 100 ms

// Times are kept in ticks of 2^20 ns, modulo 2^32: 52 days.
#define TICK_SHIFT 20

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
	__u64 octets; // of the IP packets
	__u64 transport[8];
	__u64 roce_v1;
	__u64 refused; // UDP to port 4791, but no sound RoCEv2 packet
	__u64 told[REASONS];
	__u64 lost; // the ring buffer was full
	__u64 lost_mads; // of those, management datagrams
	__u64 flows_made;
	__u64 flows_evicted;
	__u64 flows_refused; // no entry could be made
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct counters);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); // set by user space
	__type(value, struct event);
} events SEC(".maps");

volatile const __u32 interval; // ticks
volatile const __u32 wake_octets; // wake the reader when so much waits for it
volatile const __u32 tunnels; // bits: the outer headers that are looked behind
volatile const __u64 jiffies_at, jiffy_nanos; // jiffies.go
volatile const __u32 slot; // of counts: each interface has a program of its own, that differs in this

// ticks is the time. The count of timer interrupts costs no call; that for the clock is a fifth of what the program takes for most packets.
INLINE __u32 ticks(void)
{
	__u64 now = jiffy_nanos ? bpf_jiffies64() * jiffy_nanos + jiffies_at : bpf_ktime_get_coarse_ns();
	return now >> TICK_SHIFT;
}

// packet is one RoCEv2 packet in its frame.
struct packet {
	struct frame       f;
	struct ip_packet   ip;
	struct roce_packet roce;
};

// Kinds of packets, as sets of the opcodes of RC (0x00 to 0x1F) and UC (0x20 to 0x3F).
#define OP(opcode)    (1ULL << (opcode))
#define RC_UC(opcode) (OP(opcode) | OP(0x20 + (opcode)))
#define MIDDLES       (RC_UC(0x01) | RC_UC(0x07))
#define READS         OP(0x0C)
#define RESP_MIDDLES  OP(0x0E)
#define RESPONSES     (OP(0x0D) | OP(0x0F) | OP(0x10) | OP(0x11) | OP(0x12))
#define REQUESTS                                                                                                           \
	(RC_UC(0x00) | RC_UC(0x02) | RC_UC(0x03) | RC_UC(0x04) | RC_UC(0x05) | RC_UC(0x06) | RC_UC(0x08) | RC_UC(0x09) |   \
	 RC_UC(0x0A) | RC_UC(0x0B) | OP(0x13) | OP(0x14) | OP(0x16) | OP(0x17) | OP(0x1C) | OP(0x1D))

// is_kind tells whether an opcode is in a set.
INLINE int is_kind(__u8 opcode, __u64 kinds) { return opcode < 64 && OP(opcode) & kinds; }

enum kind { K_OTHER, K_REQUEST, K_MIDDLE, K_READ, K_RESPONSE, K_RESP_MIDDLE };

INLINE enum kind kind_of(__u8 opcode)
{
	if (opcode >= 64)
		return K_OTHER;
	__u64 op = OP(opcode);
	return op & REQUESTS ? K_REQUEST : op & MIDDLES ? K_MIDDLE : op & READS ? K_READ : op & RESPONSES ? K_RESPONSE :
	       op & RESP_MIDDLES ? K_RESP_MIDDLE : K_OTHER;
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
	__s32 d = psn_diff(p->roce.psn, f->p.req_high);
	__s32 ahead = REQ_AHEAD;
	if (f->p.read_len)
		ahead += f->p.read_len < (1U << 30) ? f->p.read_len / READ_MTU : 1U << 22;
	int fits = f->p.seen & SEEN_REQ && d <= ahead && d >= -PSN_BACK;
	if (!(f->p.seen & SEEN_REQ) || d > 0 || d < -REQ_AHEAD) {
		f->p.req_high = p->roce.psn;
		f->p.read_len = read_len;
		f->p.seen |= SEEN_REQ;
	}
	return fits;
}

// follow_response does so for the responses, with the MSN of their AETH.
INLINE int follow_response(const struct packet *p, struct flow *f, enum kind kind, __u32 now)
{
	int fits = 1;
	if (kind == K_RESPONSE) {
		__be32 room;
		const __be32 *aeth = VIEW(&p->f, p->roce.bth + BTH_LEN, room);
		if (!aeth)
			return 1;
		__u32 msn = bpf_ntohl(*aeth) & 0xFFFFFF;
		__s32 d = psn_diff(msn, f->p.msn);
		if (!(f->p.seen & SEEN_MSN))
			fits = 0;
		else if (d < -MSN_BACK && msn < MSN_LOW)
			fits = 0;
		if (!fits || d > 0)
			f->p.msn = msn;
		f->p.seen |= SEEN_MSN;
	}
	__s32 d = psn_diff(p->roce.psn, f->p.resp_high);
	if (!(f->p.seen & SEEN_RESP) || d > RESP_AHEAD || d < -RESP_BACK ||
	    (d < -PSN_BACK && (__s32)(now - f->p.last_seen) >= IDLE))
		fits = 0;
	if (!(f->p.seen & SEEN_RESP) || d > 0 || d < -RESP_BACK) {
		f->p.resp_high = p->roce.psn;
		f->p.seen |= SEEN_RESP;
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
	int fits = f->p.seen & SEEN_REQ && source == f->p.req_high;
	f->p.req_high = source;
	f->p.seen |= SEEN_REQ;
	return fits;
}

INLINE int same_sender(const struct ip_packet *p, __u32 ifindex, const struct flow *f)
{
	__u32 ttl = p->ttl + 1 - f->p.ttl; // 1 where they are the same
	return !((ttl > 2) | (f->ifindex ^ (__u16)ifindex) | (f->mac_head ^ p->mac_head) | (f->mac_tail ^ p->mac_tail));
}

INLINE void take_sender(const struct packet *p, struct flow *f)
{
	f->ifindex = p->f.ifindex;
	f->p.ttl = p->ip.ttl;
	f->mac_head = p->ip.mac_head;
	f->mac_tail = p->ip.mac_tail;
}

// observe moves a flow on by a packet and says why the packet is handed up, if it is.
INLINE __u8 observe(const struct packet *p, struct flow *f, int is_new, __u32 now)
{
	__u8 t = p->roce.opcode >> 5, reason = NOT_TOLD;
	enum kind kind = kind_of(p->roce.opcode);
	int bulk = (kind == K_MIDDLE && !p->roce.ack_req) || kind == K_RESP_MIDDLE;
	int due = (__s32)(now - f->told_at) >= (__s32)interval;
	if (is_new) {
		reason = R_NEW;
	} else if (f->p.state == FOLLOWED && !same_sender(&p->ip, p->f.ifindex, f)) {
		// It may be forged: it moves nothing.
		f->p.skipped++;
		return !bulk || due ? R_IDENTITY : NOT_TOLD;
	} else if (f->p.transport != t) {
		reason = R_TRANSPORT;
		f->p.state = WATCHED;
		f->p.transport = t;
		f->p.seen = 0;
	}
	if (f->p.state != FOLLOWED)
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
	f->p.last_seen = now;
	f->packets++;
	if (reason)
		return reason;
	if (!fits && f->p.state != QUIET) {
		f->p.state = WATCHED;
		return t == T_UD ? R_SOURCE : R_STEP;
	}
	int learns = (kind != K_OTHER || t == T_UD) && (!bulk || !(p->roce.psn & BULK_EVERY));
	if (f->p.state == WATCHED && learns)
		return R_VOTE;
	if (due)
		return R_INTERVAL;
	f->p.skipped++;
	return NOT_TOLD;
}

INLINE __u64 wake(int now)
{
	if (now || bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) >= wake_octets)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

// since is a time in ticks of the past, in nanoseconds.
INLINE __u64 nanoseconds(__u32 ticks, __u64 now)
{
	__u64 t = now >> TICK_SHIFT;
	return (t - (__u32)((__u32)t - ticks)) << TICK_SHIFT;
}

// fill writes an event with at most cap octets of the frame.
INLINE int fill(const struct packet *p, struct event *h, __u8 *data, const __u32 cap, __u8 reason,
		const struct progress *before, __u64 at)
{
	h->at = at;
	h->last_seen = before->last_seen ? nanoseconds(before->last_seen, at) : 0;
	h->ifindex = p->f.ifindex;
	h->wire = frame_len(&p->f);
	h->skipped = before->skipped;
	h->req_high = before->req_high;
	h->resp_high = before->resp_high;
	h->msn = before->msn;
	h->read_len = before->read_len;
	h->vlan_tci = p->f.vlan_tci;
	h->vlan_tpid = p->f.vlan_tpid;
	h->reason = reason;
	h->state = before->state;
	h->seen = before->seen;
	__builtin_memset(h->unused, 0, sizeof(h->unused));
	__u64 n = h->wire;
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

// hand_up puts a packet into the ring buffer, with what was known of its flow before it.
INLINE void hand_up(const struct packet *p, struct counters *c, __u8 reason, const struct progress *before, __u64 at)
{
	if (reason == R_MAD || p->roce.bth + BTH_LEN + EXT_LEN > SHORT) {
		struct large_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
		if (!e) {
			c->lost++;
			if (reason == R_MAD)
				c->lost_mads++;
			return;
		}
		if (!fill(p, &e->head, e->data, SNAP, reason, before, at)) {
			bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
			c->lost++;
			return;
		}
		bpf_ringbuf_submit(e, wake(reason == R_MAD));
	} else {
		struct small_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
		if (!e) {
			c->lost++;
			return;
		}
		if (!fill(p, &e->head, e->data, SHORT, reason, before, at)) {
			bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
			c->lost++;
			return;
		}
		bpf_ringbuf_submit(e, wake(0));
	}
	c->told[reason]++;
}

// flow_of returns the flow of a packet, made now if need be, or NULL where none can be.
INLINE struct flow *flow_of(const struct packet *p, const struct addresses *a, const int v6, struct counters *c, __u32 now,
			    int *is_new)
{
	__u64 key[WORDS6];
	make_key(key, v6, a, p->roce.dest_qp, p->ip.vlan, p->roce.src_port);
	struct windows w = windows_of(key, v6);
	struct entry *e = find_flow(key, v6, w);
	if (e)
		return &e->f;
	int evicted = 0;
	e = make_flow(key, v6, w, now, &evicted);
	if (!e) {
		c->flows_refused++;
		return NULL;
	}
	*is_new = 1;
	c->flows_made++;
	c->flows_evicted += evicted;
	take_sender(p, &e->f);
	__u8 t = p->roce.opcode >> 5;
	e->f.p.transport = t;
	if (t != T_RC && t != T_UC && t != T_UD)
		e->f.p.state = QUIET; // no one can learn it
	show_flow(e);
	return &e->f;
}

// goes_on is observe for a request or a response of a followed flow whose step plainly fits: it moves the flow on. It is 0, and has
// moved nothing, for any other packet.
INLINE int goes_on(struct flow *f, __u8 opcode, __u32 psn, __u32 aeth, __u32 now)
{
	__s32 d;
	if (is_kind(opcode, REQUESTS | MIDDLES)) {
		d = psn_diff(psn, f->p.req_high);
		if (!(f->p.seen & SEEN_REQ) || d < -PSN_BACK || d > REQ_AHEAD)
			return 0;
		if (d > 0) {
			f->p.req_high = psn;
			f->p.read_len = 0;
		}
	} else if (is_kind(opcode, RESPONSES)) {
		const __u8 responses = SEEN_RESP | SEEN_MSN;
		__u32 msn = aeth & 0xFFFFFF;
		__s32 dm = psn_diff(msn, f->p.msn);
		d = psn_diff(psn, f->p.resp_high);
		if ((f->p.seen & responses) != responses || d < -PSN_BACK || d > RESP_AHEAD || dm < -MSN_BACK)
			return 0;
		if (d > 0)
			f->p.resp_high = psn;
		if (dm > 0)
			f->p.msn = msn;
	} else {
		return 0;
	}
	f->p.last_seen = now;
	f->packets++;
	f->p.skipped++;
	return 1;
}

INLINE struct counters *counters_of_slot(void)
{
	__u32 which = slot;
	return bpf_map_lookup_elem(&counts, &which);
}

// pass_by takes a packet as nearly all are: IPv4 without options and tags, in one piece, of a followed flow that is in one of the
// FIRST places of its window, and goes on. It is 0, and has done nothing, for any other: the rules are those of parse_ip, parse_roce and
// observe, and a packet of which they say something else is not taken here. Headers are read again behind each call: that
// is cheaper than to keep what they say.
INLINE int pass_by(const struct frame *f)
{
	const struct ether_header *eth = f->data;
	const struct ipv4_header *ip = (const void *)(eth + 1);
	const struct udp_header *udp = (const void *)(ip + 1);
	const struct bth_header *bth = (const void *)(udp + 1);
	const __be32 *aeth = (const void *)(bth + 1);
	if ((const void *)(aeth + 1) > f->end || f->vlan_tpid || eth->type != bpf_htons(ETH_IPV4) || ip->version != 0x45 ||
	    ip->frag & bpf_htons(0x3FFF) || ip->proto != IP_UDP || udp->dst != bpf_htons(ROCE_PORT))
		return 0;
	__u64 key[WORDS4] = {pair(ip->src, ip->dst), rest_of(bpf_ntohl(bth->dest_qp) & 0xFFFFFF, 0, bpf_ntohs(udp->src))};
	int absent = 0;
	struct entry *e = find_near(key, 0, windows_of(key, 0), FIRST, &absent);
	if (!e)
		return 0;
	__u32 now = ticks();
	struct counters *c = counters_of_slot();
	if (!c)
		return 0; // there are some
	struct flow *flow = &e->f;
	const struct ip_packet p = {.mac_head = mac_head(eth), .mac_tail = eth->src[2], .ttl = ip->ttl};
	__u32 total = bpf_ntohs(ip->total);
	__u8 opcode = bth->opcode, t = opcode >> 5;
	if (total < sizeof(*ip) + sizeof(*udp) + BTH_LEN + ICRC_LEN || bpf_ntohs(udp->len) != total - sizeof(*ip) ||
	    flow->p.state != FOLLOWED || flow->p.transport != t || (__s32)(now - flow->told_at) >= (__s32)interval ||
	    !same_sender(&p, f->ifindex, flow) ||
	    !goes_on(flow, opcode, bpf_ntohl(bth->psn) & 0xFFFFFF, bpf_ntohl(*aeth), now))
		return 0;
	c->octets += total;
	c->transport[t & 1]++; // goes_on takes RC and UC
	return 1;
}

INLINE void tap(const struct frame f)
{
	if (pass_by(&f))
		return;
	struct counters *c = counters_of_slot();
	if (!c)
		return;
	struct packet p = {.f = f};
	struct addresses a = {}; // set also where parsing ends early: the verifier follows the compiler there
	enum parsed what = parse_ip(&p.f, &p.ip, &a);
	if (what == P_OK)
		what = parse_roce(&p.f, &p.ip, &a, &p.roce);
	if (what == P_OTHER && tunnels && parse_through(&p.f, &p.ip, &a, tunnels) == P_OK)
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
	c->octets += p.ip.end - p.ip.ip;
	c->transport[t & 7]++;

	if (t == T_CNP)
		return;
	if (t == T_UD && p.roce.dest_qp <= 1) { // management: no flow
		const struct progress none = {};
		if (p.roce.dest_qp == 1)
			hand_up(&p, c, R_MAD, &none, bpf_ktime_get_ns());
		return;
	}
	__u32 now = ticks();
	int is_new = 0;
	struct flow *flow = p.ip.v6 ? flow_of(&p, &a, 1, c, now, &is_new) : flow_of(&p, &a, 0, c, now, &is_new);
	if (!flow)
		return;
	struct progress before = flow->p;
	__u8 reason = observe(&p, flow, is_new, now);
	if (reason == NOT_TOLD)
		return;
	__u64 at = bpf_ktime_get_ns();
	flow->told_at = at >> TICK_SHIFT;
	flow->p.skipped = 0;
	hand_up(&p, c, reason, &before, at);
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
