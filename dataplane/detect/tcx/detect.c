//go:build ignore

// The congestion detector in the kernel, for TCX egress. Every packet goes on, whatever comes of it.
//
// It watches for RoCEv2 data packets that are marked CE, and where a rate is given it keeps a virtual queue, marks CE by
// its depth, and reports what it marks. A flow is reported once in gate_ns: the event says how many packets it stands for.
// What is a RoCEv2 packet is what roce.ParseEthernet takes, and what counts is detect.Counts; a test holds them together.

#include "roce.h"

#define ECN_MASK 3 // of the TOS or traffic class (RFC 3168)
#define NOT_ECT  0
#define CE       3

// Sources, as in events and counters.
#define S_CE      0 // the packet was marked before
#define S_QUEUE   1 // the virtual queue marked it, or would have
#define N_SOURCES 2

#define DEPTH_SHIFT 20    // the queue's depth is kept in 2^-20 octets
#define LONG_NS     (1ULL << 34) // 17 s: no queue holds as much, and the product below is within 64 bits

// gate_key is a flow as the notifier paces it.
struct gate_key {
	__be32 src[4], dst[4]; // IPv4 as IPv4-mapped
	__u32  dest_qp;
	__u32  source;
};

struct gate {
	__u64 told_at; // CLOCK_MONOTONIC, nanoseconds
	__u64 pending; // packets since then
};

struct event {
	__u64            at;
	__u64            packets; // since the flow's last event, this one included
	__u64            depth;   // of the virtual queue before the packet, octets
	struct addresses addr;
	__u32            dest_qp;
	__u16            src_port;
	__u16            vlan;
	__u32            source;
	__u32            unused;
};

struct counters {
	__u64 ignored;     // marked, and RoCEv2, but no data
	__u64 refused;     // marked and to RoCEv2's port, but not sound
	__u64 mark_failed; // should have been marked
	__u64 entered;     // flows that the gate made an entry for
	__u64 events[N_SOURCES];
	__u64 gated[N_SOURCES];     // within gate_ns of the flow's last event
	__u64 lost[N_SOURCES];      // packets whose event found the ring buffer full
	__u64 gate_full[N_SOURCES]; // packets for whose flow no entry could be made
};

// queue is the virtual queue: it drains at a rate, whatever the link does.
struct queue {
	struct bpf_spin_lock lock;
	__u32                unused;
	__u64                at;     // of depth
	__u64                depth;  // in 2^-DEPTH_SHIFT octets
	__u64                random; // state of xorshift64, never 0; seeded by user space
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
	__type(key, struct gate_key);
	__type(value, struct gate);
} gates SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct queue);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); // set by user space
	__type(value, struct event);
} events SEC(".maps");

volatile const __u8  watch_ce; // packets that come marked are reported
volatile const __u64 gate_ns;
volatile const __u64 drain; // of the virtual queue, 2^-DEPTH_SHIFT octets in a nanosecond; 0: there is none
volatile const __u32 kmin, kmax, depth_max; // octets; kmin < kmax <= depth_max
volatile const __u64 pmax; // of 2^32

// enqueue puts a packet into the virtual queue and returns the depth before it. mark says whether the depth marks it.
INLINE __u64 enqueue(__u32 octets, __u64 now, int *mark)
{
	__u32 zero = 0;
	struct queue *q = bpf_map_lookup_elem(&queues, &zero);
	*mark = 0;
	if (!q)
		return 0;
	bpf_spin_lock(&q->lock);
	__u64 idle = now > q->at ? now - q->at : 0; // another processor may have been here at a later time
	__u64 drained = idle < LONG_NS ? idle * drain : ~0ULL;
	__u64 depth = q->depth > drained ? q->depth - drained : 0;
	q->depth = depth + ((__u64)octets << DEPTH_SHIFT);
	if (q->depth > (__u64)depth_max << DEPTH_SHIFT)
		q->depth = (__u64)depth_max << DEPTH_SHIFT;
	if (idle)
		q->at = now;
	depth >>= DEPTH_SHIFT;
	if (depth > kmax) {
		*mark = 1;
	} else if (depth > kmin) {
		__u64 r = q->random;
		r ^= r << 13;
		r ^= r >> 7;
		r ^= r << 17;
		q->random = r;
		*mark = (r >> 32) * (kmax - kmin) < pmax * (depth - kmin);
	}
	bpf_spin_unlock(&q->lock);
	return depth;
}

// counts_as_data is detect.Counts without the mark: requests of RC and UC, and READ responses.
INLINE int counts_as_data(__u8 opcode)
{
	__u8 op = opcode & 0x1F;
	switch (opcode >> 5) {
	case T_RC:
		return op <= 0x10 || op == 0x13 || op == 0x14 || op == 0x16 || op == 0x17 || op == 0x1C || op == 0x1D;
	case T_UC:
		return op <= 0x0B;
	}
	return 0;
}

// mark_ce sets CE in the packet, and puts the checksum of an IPv4 header right. The frame's pointers are not valid afterwards.
INLINE int mark_ce(struct __sk_buff *skb, const struct ip_packet *ip)
{
	// The first two octets: version and header length, and the TOS; or version, traffic class and four bits of flow label.
	__be16 from, to;
	if (bpf_skb_load_bytes(skb, ip->ip, &from, sizeof(from)))
		return 0;
	to = from | bpf_htons(ip->v6 ? CE << 4 : CE);
	if (!ip->v6 && bpf_l3_csum_replace(skb, ip->ip + offsetof(struct ipv4_header, sum), from, to, sizeof(to)))
		return 0;
	return bpf_skb_store_bytes(skb, ip->ip, &to, sizeof(to), 0) == 0;
}

// tell reports a packet, unless its flow was reported less than gate_ns ago.
INLINE void tell(struct counters *c, struct gate_key *key, const struct event *e)
{
	__u32 s = key->source & 1;
	__u64 packets = 1;
	struct gate *g = bpf_map_lookup_elem(&gates, key);
	if (!g) {
		struct gate made = {.told_at = e->at};
		long err = bpf_map_update_elem(&gates, key, &made, BPF_NOEXIST);
		if (!err)
			c->entered++;
		g = bpf_map_lookup_elem(&gates, key);
		if (!g) {
			c->gate_full[s]++;
			return;
		}
		if (err) { // another processor made it just now
			__sync_fetch_and_add(&g->pending, 1);
			c->gated[s]++;
			return;
		}
	} else {
		__u64 told = g->told_at;
		// One processor of those that find the time passed takes it.
		if ((__s64)(e->at - told) < (__s64)gate_ns || __sync_val_compare_and_swap(&g->told_at, told, e->at) != told) {
			__sync_fetch_and_add(&g->pending, 1);
			c->gated[s]++;
			return;
		}
		packets += __sync_lock_test_and_set(&g->pending, 0);
	}
	struct event *out = bpf_ringbuf_reserve(&events, sizeof(*out), 0);
	if (!out) {
		__sync_fetch_and_add(&g->pending, packets); // the flow's next event stands for them
		c->lost[s]++;
		return;
	}
	*out = *e;
	out->packets = packets;
	bpf_ringbuf_submit(out, 0);
	c->events[s]++;
}

SEC("tc")
int detect_tcx(struct __sk_buff *skb)
{
	const int next = -1; // TCX_NEXT: whatever comes after decides
	__u32 zero = 0;
	struct counters *c = bpf_map_lookup_elem(&counts, &zero);
	if (!c)
		return next;
	struct event e = {.at = bpf_ktime_get_ns()};
	int mark = 0;
	if (drain) {
		__u32 octets = skb->wire_len; // with the headers of each packet that is cut out of this one (GSO)
		e.depth = enqueue(octets > skb->len ? octets : skb->len, e.at, &mark);
	}

	struct frame f = frame_of_skb(skb);
	struct ip_packet ip = {};
	struct roce_packet r = {};
	if (parse_ip(&f, &ip, &e.addr) != P_OK)
		return next;
	__u8 ecn = ip.tos & ECN_MASK;
	int was_marked = watch_ce && ecn == CE;
	if (!was_marked && (!mark || ecn == NOT_ECT))
		return next;
	switch (parse_roce(&f, &ip, &e.addr, &r)) {
	case P_OK:
		break;
	case P_REFUSED:
		c->refused += was_marked;
		return next;
	default:
		return next;
	}
	if (!counts_as_data(r.opcode)) {
		c->ignored += was_marked;
		return next;
	}
	if (ecn != CE && !mark_ce(skb, &ip)) {
		c->mark_failed++;
		return next;
	}
	struct gate_key key = {.dest_qp = r.dest_qp, .source = was_marked ? S_CE : S_QUEUE};
	for (int i = 0; i < 4; i++) {
		key.src[i] = e.addr.src[i];
		key.dst[i] = e.addr.dst[i];
	}
	e.dest_qp = r.dest_qp;
	e.src_port = r.src_port;
	e.vlan = ip.vlan;
	e.source = key.source;
	tell(c, &key, &e);
	return next;
}

char _license[] SEC("license") = "Apache-2.0"; // no helper that needs the GPL
