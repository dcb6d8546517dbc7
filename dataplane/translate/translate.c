//go:build ignore

// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

// Translation in the kernel, for XDP: a notification that can be decided here becomes a CNP, or a counted drop; any
// other packet goes on untouched, and so to the translator in user space. doc.go says which is which.

#include "ip.h"

// OPAQUE keeps clang from using what it knows of a value and the kernel's verifier doesn't.
#define OPAQUE(x) asm volatile("" : "+r"(x))

#define AF_INET  2
#define AF_INET6 10
#define LOOPBACK 1 // index of a namespace's loopback interface: routes are those of what this host sends

#define ETH_LEN     14
#define IPV4_LEN    20
#define IPV6_LEN    40
#define UDP_LEN     8
#define FORMAT1_V4  16
#define FORMAT1_V6  40
#define FORMAT2_V4  20
#define FORMAT2_V6  44
#define CNP_V4      60
#define CNP_V6      80
#define CNP_UDP     40
#define CNP_OPCODE  0x81
#define BECN        0x40
#define ROCE_PORT   4791
#define PORT_BASE   49152 // message.EventPortBase, EventPortCount
#define PORT_COUNT  16384
#define HASH_FACTOR 0x9E3779B97F4A7C15ULL
#define SECOND      1000000000ULL
#define WAKE        4000000 // nanoseconds

// Outcomes, by their numbers in pnc.v1.Outcome.
#define TRANSLATED     32
#define NOT_OUR_DOMAIN 36
#define TTL_TOO_LOW    37
#define NOT_ROCEV2     38
#define NOT_OUR_PREFIX 40
#define PACED          47
#define RATE_LIMITED   48
#define SEND_ERROR     50
#define OUTCOMES       64

// Why a notification to us goes on to user space.
#define UP_DISABLED   0
#define UP_CHECKSUM   1
#define UP_FORMAT     2 // another length than those of the port's format, or addresses that no flow has
#define UP_ANSWER     3 // no answer, or one that is too old
#define UP_ROUTE      4 // no way to the sender by an interface of ours, or no neighbour there
#define UP_RING       5 // it was to be recorded, and there was no room
#define UP_FRAME      6 // the frame has no room for a CNP
#define UP_UNATTENDED 7 // user space has not been heard of
#define UPS           8

struct prefix_key {
	__u32 bits;   // 32 more than of the address
	__u32 family; // 4, 6
	__u8  addr[16];
};

// flow_key is what a notification names. In format 2 that is not the flow's VPN but its NRP Selector ID: which one that
// stands for is in the answer.
#define FORMAT2 0x80000000
struct flow_key {
	__u8  sender[16]; // IPv4 as IPv4-mapped
	__u8  receiver[16];
	__u32 name; // Destination QP; in format 2 FORMAT2 and the UDP source port
	__u32 nrp;  // in format 2
};

// bucket says which answers there are for flows of one hash: in each slot a tag of the hash, not zero, in the top 8 bits,
// and the index of the answer; zero where there is none. It is one cache line.
#define SLOTS 16
struct bucket {
	__u32 slots[SLOTS];
};

// ready is what a CNP has that is not of its flow, with its checksums made ready.
struct ready {
	__u64 version;     // of the entry of the Source-QP map; 0: none
	__u64 nrp_version; // of that of the NRP map; 0: none
	__u32 source_qp;
	__u32 pace; // index of the Source QP's pacing
	__u32 icrc; // with source port and IPv4 identification zero
	__u32 sum;  // of what the IPv4 header's, or the IPv6 UDP checksum covers, without those two and the ICRC
	__u16 pkey;
	__u8  tos, ttl;
	__u32 table; // the routing table of the sender's VPN; 0: none
};

// answer is one entry of the Source-QP map. It is read and written under its lock, and names its flow: an index that was
// looked up may belong to another one by then. It is two cache lines.
struct answer {
	struct bpf_spin_lock lock;
	__u32           unused;
	__u64           until; // CLOCK_MONOTONIC, nanoseconds; 0: no answer
	struct flow_key key;
	struct ready    ready;
	__u64           rest[4];
};

// pace is what one Source QP has used. The lock is that of the total.
struct pace {
	__u64 last;  // when it last sent
	__u32 since; // nanoseconds before that, less than a second, its current second began
	__u32 used;  // sent in the current second; 0: none ever
};

struct total {
	struct bpf_spin_lock lock;
	__u32 started;
	__u64 credit; // nanoseconds
	__u64 last;
	__u64 receipt; // CNPs numbered
};

struct policy {
	__u32  enabled;
	__u32  sample; // one of so many decisions is recorded; 1: each, and none without
	__u64  window;
	__u64  interval; // of the total: nanoseconds of credit that a CNP costs
	__u64  depth;    // nanoseconds of credit that the full bucket holds
	__u32  per_second;
	__be16 port;
	__be16 port2; // of format 2; 0: none
	__u8   own4[4];
	__u8   own6[16];
	__u8   min_ttl;
	__u8   families; // 1: IPv4, 2: IPv6
	__u8   unused[2];
};

// port is an interface that the program is on.
struct port {
	__u8  mac[6];
	__u16 accepted; // notifications may come in by it
};

struct event {
	__u64  at;
	__u64  took; // nanoseconds
	__u64  receipt;
	__u64  version, nrp_version;
	__u8   from[16], to[16];
	__u8   payload[FORMAT2_V6];
	__u32  ifindex;
	__u32  source_qp;
	__be16 from_port;
	__u8   ttl, outcome, length, unused[7];
};

struct counters {
	__u64 outcomes[OUTCOMES];
	__u64 up[UPS];
	__u64 lost;    // decisions that were to be recorded, in sampling, and there was no room
	__u64 decided; // all outcomes
};

// work is what is known of the packet.
struct work {
	__u8   from[16], to[16];
	__u8   payload[FORMAT2_V6];
	__be16 from_port;
	__u8   ttl, length, v6;
	__u8   format2, flow6; // whether it is of format 2, and names IPv6 addresses
	__u8   unused[5];
	__u64  frame; // octets
	__u64  now;
	__u64  woken; // when this processor last woke the reader of events
	struct flow_key key;
	struct ready    answer;
	__u64  fib[sizeof(struct bpf_fib_lookup) / 8];
};

struct request {
	__u32 pace;
	__u32 outcome;
	__u64 receipt;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct policy);
} policies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct total);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); // set by user space
	__type(key, __u32);
	__type(value, struct pace);
} paces SEC(".maps");

// Mappable ones begin at a page, and so their elements at a cache line.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); // set by user space
	__type(key, __u32);
	__type(value, struct answer);
} answers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); // set by user space: a power of two
	__type(key, __u32);
	__type(value, struct bucket);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct prefix_key);
	__type(value, __u32);
} accept SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct prefix_key);
	__type(value, __u32);
} served SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct port);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct work);
} works SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); // set by user space
	__type(value, struct event);
} events SEC(".maps");

// flow_seed is random and flow_mask the number of buckets less one.
volatile const __u64 flow_seed;
volatile const __u32 flow_mask;

// How an octet of the IPv4 identification, high and low, and of the source port changes the ICRC.
volatile const __u32 icrc_tables[4][256];

// Until when the answers are looked after: user space moves it on all the time, so that those of a process that hangs are used no more.
__u64 attended_until;

// Tests turn the clock.
volatile const __u32 turned;
__u64 turned_to;

INLINE __u64 clock(void)
{
	return turned ? turned_to : bpf_ktime_get_ns();
}

// Loops over packets are unrolled, so that offsets are constants.
#define UNROLL _Pragma("clang loop unroll(full)")

INLINE int same(const void *a, const void *b, const int n)
{
	const __u16 *x = a, *y = b;
	int d = 0;
	UNROLL
	for (int i = 0; i < n / 2; i++)
		d |= x[i] ^ y[i];
	return !d;
}

// fold is the one's complement sum, in the order of the octets that were added.
INLINE __u16 fold(__u64 sum)
{
	sum = (sum >> 32) + (sum & 0xFFFFFFFF);
	sum = (sum >> 32) + (sum & 0xFFFFFFFF);
	sum = (sum >> 16) + (sum & 0xFFFF);
	sum = (sum >> 16) + (sum & 0xFFFF);
	return (sum >> 16) + (sum & 0xFFFF);
}

// add sums n octets, a multiple of 4.
INLINE __u64 add(__u64 sum, const void *p, const int n)
{
	UNROLL
	for (int i = 0; i < n; i += 4) {
		__u32 v;
		__builtin_memcpy(&v, p + i, 4);
		sum += v;
	}
	return sum;
}

INLINE void map4(__u8 to[16], const void *from)
{
	__builtin_memset(to, 0, 10);
	to[10] = to[11] = 0xFF;
	__builtin_memcpy(to + 12, from, 4);
}

INLINE int up(struct counters *c, __u32 why)
{
	c->up[why & (UPS - 1)]++;
	return XDP_PASS;
}

// Results of reading the packet.
#define NOT_OURS -1
#define OURS     -2 // else one of the reasons to go on

// TAKE takes a payload of n octets.
#define TAKE(n) (octets == UDP_LEN + (n) && data + (n) <= end) { \
	__builtin_memcpy(w->payload, data, n);                  \
	sum = add(sum, u, UDP_LEN + (n));                       \
}

// read_udp takes the datagram after sum, that of the pseudo header without the length.
INLINE int read_udp(struct work *w, struct udp_header *u, void *end, __u32 octets, __u64 sum)
{
	__u16 given = u->sum, len = u->len;
	if (bpf_ntohs(len) != octets)
		return NOT_OURS; // the stack drops it, or takes less than there is
	w->from_port = u->src;
	w->length = octets - UDP_LEN;
	const void *data = u + 1;
	if (!w->format2) {
		if TAKE(FORMAT1_V4)
		else if TAKE(FORMAT1_V6)
		else
			return UP_FORMAT;
	} else {
		if TAKE(FORMAT2_V4)
		else if TAKE(FORMAT2_V6)
		else
			return UP_FORMAT;
	}
	w->flow6 = w->length >= FORMAT1_V6;
	if (given ? fold(sum + len) != 0xFFFF : w->v6)
		return UP_CHECKSUM;
	return OURS;
}

// to_us says whether a UDP port is one of ours, and takes the format that it is for.
INLINE int to_us(struct work *w, struct policy *p, __be16 port)
{
	w->format2 = port != p->port;
	return port == p->port || (p->port2 && port == p->port2);
}

INLINE int read_ipv4(struct xdp_md *ctx, struct work *w, struct policy *p, void *data, void *end)
{
	struct ipv4_header *h = data + ETH_LEN;
	struct udp_header *u = (void *)(h + 1);
	if ((void *)(u + 1) > end || h->version != 0x45 || h->proto != IP_UDP || h->frag & bpf_htons(0x3FFF) ||
	    !to_us(w, p, u->dst) || !(p->families & 1) || !same(&h->dst, p->own4, 4))
		return NOT_OURS;
	__u32 total = bpf_ntohs(h->total);
	w->frame = bpf_xdp_get_buff_len(ctx);
	if (total < IPV4_LEN + UDP_LEN || ETH_LEN + total > w->frame || fold(add(0, h, IPV4_LEN)) != 0xFFFF)
		return NOT_OURS;
	map4(w->from, &h->src);
	map4(w->to, &h->dst);
	w->ttl = h->ttl;
	w->v6 = 0;
	return read_udp(w, u, end, total - IPV4_LEN, add(bpf_htons(IP_UDP), &h->src, 8));
}

INLINE int read_ipv6(struct xdp_md *ctx, struct work *w, struct policy *p, void *data, void *end)
{
	struct ipv6_header *h = data + ETH_LEN;
	struct udp_header *u = (void *)(h + 1);
	if ((void *)(u + 1) > end || bpf_ntohl(h->version) >> 28 != 6 || h->next != IP_UDP ||
	    !to_us(w, p, u->dst) || !(p->families & 2) || !same(h->dst, p->own6, 16))
		return NOT_OURS;
	__u32 payload = bpf_ntohs(h->payload);
	w->frame = bpf_xdp_get_buff_len(ctx);
	if (payload < UDP_LEN || ETH_LEN + IPV6_LEN + payload > w->frame)
		return NOT_OURS;
	__builtin_memcpy(w->from, h->src, 16);
	__builtin_memcpy(w->to, h->dst, 16);
	w->ttl = h->hops;
	w->v6 = 1;
	return read_udp(w, u, end, payload, add(bpf_htons(IP_UDP), h->src, 32));
}

// within looks an address up in a set of prefixes; an IPv4 one as IPv4-mapped.
INLINE int within(void *set, const __u8 *addr, int v6)
{
	struct prefix_key k = {};
	if (v6) {
		k.bits = 32 + 128;
		k.family = 6;
		__builtin_memcpy(k.addr, addr, 16);
	} else {
		k.bits = 32 + 32;
		k.family = 4;
		__builtin_memcpy(k.addr, addr + 12, 4);
	}
	return bpf_map_lookup_elem(set, &k) != NULL;
}

// host is isHost of the translator in user space.
INLINE int host4(const __u8 *a)
{
	const __u32 v = *(const __u32 *)a;
	return v != 0 && v != 0xFFFFFFFF && (a[0] & 0xF0) != 0xE0;
}

INLINE int host6(const __u8 *a)
{
	const __be32 *w = (const __be32 *)a;
	return (w[0] | w[1] | w[2] | w[3]) && a[0] != 0xFF && !is_mapped(w);
}

// read_flow makes the key of the flow named, and says whether it can be one; proto_port is protocol and destination port.
INLINE int read_flow(struct work *w, int *roce)
{
	const __u8 *at;
	int hosts;
	if (!w->flow6) {
		map4(w->key.sender, w->payload);
		map4(w->key.receiver, w->payload + 4);
		hosts = host4(w->key.sender + 12) && host4(w->key.receiver + 12);
		at = w->payload + 8;
	} else {
		__builtin_memcpy(w->key.sender, w->payload, 16);
		__builtin_memcpy(w->key.receiver, w->payload + 16, 16);
		hosts = host6(w->key.sender) && host6(w->key.receiver);
		at = w->payload + 32;
	}
	*roce = at[2] == ROCE_PORT >> 8 && at[3] == (ROCE_PORT & 0xFF) && at[4] == IP_UDP;
	if (w->format2) {
		w->key.name = FORMAT2 | at[0] << 8 | at[1];
		w->key.nrp = (__u32)at[8] << 24 | at[9] << 16 | at[10] << 8 | at[11];
	} else {
		w->key.name = at[5] << 16 | at[6] << 8 | at[7];
		w->key.nrp = 0;
	}
	return hosts;
}

// record takes room for what is to be recorded. It is false when there has to be a record and is no room.
INLINE int record(struct policy *p, struct counters *c, struct event **e)
{
	*e = NULL;
	__u32 n = p->sample;
	if (n > 1 && c->decided % n)
		return 1;
	*e = bpf_ringbuf_reserve(&events, sizeof(**e), 0);
	if (*e)
		return 1;
	if (n <= 1)
		return 0;
	c->lost++;
	return 1;
}

INLINE void submit(struct xdp_md *ctx, struct counters *c, struct work *w, struct event *e, __u32 outcome, __u64 receipt)
{
	c->decided++;
	c->outcomes[outcome & (OUTCOMES - 1)]++;
	if (!e)
		return;
	int answered = outcome == TRANSLATED || outcome == PACED || outcome == RATE_LIMITED;
	e->at = w->now;
	e->took = clock() - w->now;
	e->receipt = receipt;
	e->version = answered ? w->answer.version : 0;
	e->nrp_version = answered ? w->answer.nrp_version : 0;
	e->source_qp = answered ? w->answer.source_qp : 0;
	__builtin_memcpy(e->from, w->from, 16);
	__builtin_memcpy(e->to, w->to, 16);
	__builtin_memcpy(e->payload, w->payload, FORMAT2_V6);
	e->ifindex = ctx->ingress_ifindex;
	e->from_port = w->from_port;
	e->ttl = w->ttl;
	e->outcome = outcome;
	e->length = w->length;
	__builtin_memset(e->unused, 0, sizeof(e->unused));
	// A wake-up is an interrupt and a switch: not one for each event. A reader that is not woken looks from time to time.
	__u64 wake = BPF_RB_NO_WAKEUP;
	if (w->now - w->woken >= WAKE) {
		wake = BPF_RB_FORCE_WAKEUP;
		w->woken = w->now;
	}
	bpf_ringbuf_submit(e, wake);
}

INLINE int refuse(struct xdp_md *ctx, struct policy *p, struct counters *c, struct work *w, __u32 outcome)
{
	struct event *e;
	if (!record(p, c, &e))
		return up(c, UP_RING);
	submit(ctx, c, w, e, outcome, 0);
	return XDP_DROP;
}

// take uses up a share of the Source QP and of the total, and gives a receipt number, or nothing of all three: as
// package pace has it, but that times only go on. It returns the outcome.
INLINE __u32 take(struct policy *p, __u32 index, __u64 now, __u64 *receipt)
{
	__u32 zero = 0, outcome;
	struct total *t = bpf_map_lookup_elem(&totals, &zero);
	struct pace *q = bpf_map_lookup_elem(&paces, &index);
	if (!t || !q)
		return SEND_ERROR; // no array has such a hole
	__u64 window = p->window, interval = p->interval, depth = p->depth, at, second;
	__u32 per_second = p->per_second;

	bpf_spin_lock(&t->lock);
	at = now < q->last ? q->last : now;
	second = q->last - q->since;
	if (q->used && (at - q->last < window || (at - second < SECOND && q->used >= per_second))) {
		outcome = PACED;
		goto out;
	}
	__u64 credit = t->credit, due = now < t->last ? t->last : now;
	if (credit > depth)
		credit = depth;
	if (t->started) {
		__u64 idle = due - t->last;
		credit = idle >= depth - credit ? depth : credit + idle;
	}
	t->started = 1;
	t->last = due;
	if (credit < interval) {
		t->credit = credit;
		outcome = RATE_LIMITED;
		goto out;
	}
	t->credit = credit - interval;
	if (!q->used || at - second >= SECOND) {
		second = at;
		q->used = 0;
	}
	q->since = at - second;
	q->last = at;
	q->used++;
	*receipt = ++t->receipt;
	outcome = TRANSLATED;
out:
	bpf_spin_unlock(&t->lock);
	return outcome;
}

// flow_hash is flowHash of flowindex.go.
INLINE __u64 flow_hash(const struct flow_key *k)
{
	const __u64 *v = (const void *)k;
	__u64 h = flow_seed;
	UNROLL
	for (int i = 0; i < sizeof(*k) / 8; i++) {
		h = (h ^ v[i]) * HASH_FACTOR;
		h ^= h >> 32;
	}
	return h;
}

// take_answer copies an answer, if it is one now and that of the flow.
INLINE int take_answer(struct work *w, struct answer *a)
{
	const __u64 *x = (const void *)&w->key, *y = (const void *)&a->key;
	bpf_spin_lock(&a->lock);
	__u64 other = w->now >= a->until;
	UNROLL
	for (int i = 0; i < sizeof(w->key) / 8; i++)
		other |= x[i] ^ y[i];
	__builtin_memcpy(&w->answer, &a->ready, sizeof(a->ready));
	bpf_spin_unlock(&a->lock);
	return !other;
}

// touch reads a value for its cache line only, early, so that it comes while something else is done.
#define touch(x) ((void)*(volatile __typeof__(x) *)&(x))

// place is where the answer of a flow may be.
struct place {
	struct bucket *bucket; // NULL: nowhere
	struct answer *first;  // that of the first slot with its tag; NULL: none
	__u32 tag;
};

// begin looks up the bucket of the flow.
INLINE void begin(struct work *w, struct place *l)
{
	__u64 h = flow_hash(&w->key);
	__u32 n = h & flow_mask;
	l->tag = (h >> 32) % 255 + 1;
	l->first = NULL;
	l->bucket = bpf_map_lookup_elem(&flows, &n);
	if (l->bucket)
		touch(l->bucket->slots[0]);
}

INLINE struct answer *at_slot(struct place *l, int i)
{
	__u32 slot = l->bucket->slots[i];
	if (slot >> 24 != l->tag)
		return NULL;
	slot &= 0xFFFFFF;
	return bpf_map_lookup_elem(&answers, &slot);
}

// locate looks up the first answer that may be the flow's, and its pacing.
INLINE void locate(struct place *l)
{
	if (!l->bucket)
		return;
	for (int i = 0; i < SLOTS; i++) {
		struct answer *a = at_slot(l, i);
		if (!a)
			continue;
		l->first = a;
		touch(a->until);
		__u32 pace = *(volatile __u32 *)&a->ready.pace;
		struct pace *q = bpf_map_lookup_elem(&paces, &pace);
		if (q)
			touch(q->last);
		return;
	}
}

// find gives the answer of the flow, as one copy.
INLINE int find(struct work *w, struct place *l)
{
	if (!l->first)
		return 0;
	if (take_answer(w, l->first))
		return 1;
	for (int i = 0; i < SLOTS; i++) {
		struct answer *a = at_slot(l, i);
		if (a && take_answer(w, a))
			return 1;
	}
	return 0;
}

// route finds the way to the sender, as for a packet of this host's own, or in a VPN: by its table and no other, for what that has
// no route for would go to somebody else with the same address.
INLINE int route(struct xdp_md *ctx, struct work *w)
{
	struct bpf_fib_lookup *f = (void *)w->fib;
	__builtin_memset(f, 0, sizeof(*f));
	f->l4_protocol = IP_UDP;
	f->ifindex = LOOPBACK;
	// No length: no MTU is less than a CNP.
	if (!w->flow6) {
		f->family = AF_INET;
		__builtin_memcpy(&f->ipv4_src, w->key.receiver + 12, 4);
		__builtin_memcpy(&f->ipv4_dst, w->key.sender + 12, 4);
	} else {
		f->family = AF_INET6;
		__builtin_memcpy(f->ipv6_src, w->key.receiver, 16);
		__builtin_memcpy(f->ipv6_dst, w->key.sender, 16);
		if (w->key.sender[0] == 0xFE && (w->key.sender[1] & 0xC0) == 0x80)
			return 0; // link-local: which link is not known
	}
	__u32 flags = 0;
	if (w->answer.table) {
		f->tbid = w->answer.table;
		flags = BPF_FIB_LOOKUP_DIRECT | BPF_FIB_LOOKUP_TBID;
	}
	if (bpf_fib_lookup(ctx, f, sizeof(*f), flags) != BPF_FIB_LKUP_RET_SUCCESS)
		return 0;
	__u32 to = f->ifindex;
	return to == ctx->ingress_ifindex || bpf_map_lookup_elem(&ports, &to) != NULL;
}

// The CNP is written in words, from the IP header on.

// finish_udp writes from the UDP header to the ICRC.
INLINE void finish_udp(__be32 *udp, struct work *w, __u32 port, __u32 sum, __u32 icrc)
{
	udp[0] = bpf_htonl(port << 16 | ROCE_PORT);
	udp[1] = bpf_htonl(CNP_UDP << 16 | sum);
	udp[2] = bpf_htonl((__u32)CNP_OPCODE << 24 | w->answer.pkey);
	udp[3] = bpf_htonl(BECN << 24 | w->answer.source_qp);
	udp[4] = udp[5] = udp[6] = udp[7] = udp[8] = 0;
	udp[9] = bpf_htonl(__builtin_bswap32(icrc)); // in little-endian order
}

INLINE void finish_ipv4(__be32 *ip, struct work *w, __u64 receipt)
{
	__u32 id = (receipt - 1) % 0xFFFF + 1, port = PORT_BASE + receipt % PORT_COUNT;
	OPAQUE(id); // bounds of the tables
	OPAQUE(port);
	__u32 icrc = w->answer.icrc ^ icrc_tables[0][id >> 8 & 0xFF] ^ icrc_tables[1][id & 0xFF] ^
		     icrc_tables[2][port >> 8 & 0xFF] ^ icrc_tables[3][port & 0xFF];
	__u16 sum = ~fold((__u64)w->answer.sum + id);
	const __be32 *sender = (const void *)w->key.sender, *receiver = (const void *)w->key.receiver;
	ip[0] = bpf_htonl(0x45000000 | w->answer.tos << 16 | CNP_V4);
	ip[1] = bpf_htonl(id << 16 | 0x4000); // Don't Fragment
	ip[2] = bpf_htonl((__u32)w->answer.ttl << 24 | IP_UDP << 16 | sum);
	ip[3] = receiver[3];
	ip[4] = sender[3];
	finish_udp(ip + IPV4_LEN / 4, w, port, 0, icrc);
}

INLINE void finish_ipv6(__be32 *ip, struct work *w, __u64 receipt)
{
	__u32 port = PORT_BASE + receipt % PORT_COUNT;
	OPAQUE(port);
	__u32 icrc = w->answer.icrc ^ icrc_tables[2][port >> 8 & 0xFF] ^ icrc_tables[3][port & 0xFF];
	__u16 sum = ~fold((__u64)w->answer.sum + port + __builtin_bswap32(icrc));
	if (!sum)
		sum = 0xFFFF;
	ip[0] = bpf_htonl(6 << 28 | w->answer.tos << 20);
	ip[1] = bpf_htonl(CNP_UDP << 16 | IP_UDP << 8 | w->answer.ttl);
	__builtin_memcpy(ip + 2, w->key.receiver, 16);
	__builtin_memcpy(ip + 6, w->key.sender, 16);
	finish_udp(ip + IPV6_LEN / 4, w, port, sum, icrc);
}

// send makes the CNP out of the notification. Before a share is taken everything is there that it needs.
INLINE int send(struct xdp_md *ctx, struct policy *p, struct counters *c, struct work *w)
{
	struct event *e;
	if (!route(ctx, w))
		return up(c, UP_ROUTE);
	if (!record(p, c, &e))
		return up(c, UP_RING);
	int length = w->flow6 ? CNP_V6 : CNP_V4;
	int spare = (int)w->frame - ETH_LEN - length;
	if (bpf_xdp_adjust_head(ctx, spare)) {
		if (e)
			bpf_ringbuf_discard(e, 0);
		return up(c, UP_FRAME);
	}
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ether_header *h = data;
	if (data + ETH_LEN + CNP_V4 > end || (length == CNP_V6 && data + ETH_LEN + CNP_V6 > end)) {
		bpf_xdp_adjust_head(ctx, -spare); // part of the frame is in another piece: as it was
		if (e)
			bpf_ringbuf_discard(e, 0);
		return up(c, UP_FRAME);
	}
	__u64 receipt = 0;
	__u32 outcome = take(p, w->answer.pace, w->now, &receipt);
	if (outcome == TRANSLATED) {
		if (length == CNP_V4 && data + ETH_LEN + CNP_V4 <= end) {
			h->type = bpf_htons(ETH_IPV4);
			finish_ipv4(data + ETH_LEN, w, receipt);
		} else if (length == CNP_V6 && data + ETH_LEN + CNP_V6 <= end) {
			h->type = bpf_htons(ETH_IPV6);
			finish_ipv6(data + ETH_LEN, w, receipt);
		} else {
			outcome = SEND_ERROR; // adjust_head has made the room
		}
	}
	submit(ctx, c, w, e, outcome, receipt);
	if (outcome != TRANSLATED || data + ETH_LEN > end)
		return XDP_DROP;
	const struct bpf_fib_lookup *f = (const void *)w->fib;
	__builtin_memcpy(h->dst, f->dmac, 6);
	__builtin_memcpy(h->src, f->smac, 6);
	if (f->ifindex == ctx->ingress_ifindex)
		return XDP_TX;
	return bpf_redirect(f->ifindex, 0);
}

// frags: so that drivers take it whatever their MTU.
SEC("xdp.frags")
int translate(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ether_header *h = data;
	__u32 zero = 0;
	struct policy *p = bpf_map_lookup_elem(&policies, &zero);
	struct work *w = bpf_map_lookup_elem(&works, &zero);
	if (!p || !w || data + sizeof(*h) > end)
		return XDP_PASS;
	int r = NOT_OURS;
	if (h->type == bpf_htons(ETH_IPV4))
		r = read_ipv4(ctx, w, p, data, end);
	else if (h->type == bpf_htons(ETH_IPV6))
		r = read_ipv6(ctx, w, p, data, end);
	if (r == NOT_OURS)
		return XDP_PASS;
	int hosts = 0, roce = 0;
	struct place l = {};
	if (r == OURS) {
		hosts = read_flow(w, &roce);
		begin(w, &l);
	}
	__u32 ifindex = ctx->ingress_ifindex;
	struct port *port = bpf_map_lookup_elem(&ports, &ifindex);
	struct counters *c = bpf_map_lookup_elem(&counts, &zero);
	if (!port || !c || !same(h->dst, port->mac, 6) )
		return XDP_PASS;
	if (!p->enabled)
		return up(c, UP_DISABLED);
	if (r != OURS)
		return up(c, r);
	w->now = clock();
	if (w->now > attended_until)
		return up(c, UP_UNATTENDED);
	if (!hosts)
		return up(c, UP_FORMAT);
	locate(&l);
	if (!port->accepted || !within(&accept, w->from, w->v6))
		return refuse(ctx, p, c, w, NOT_OUR_DOMAIN);
	if (w->ttl < p->min_ttl)
		return refuse(ctx, p, c, w, TTL_TOO_LOW);
	if (!roce)
		return refuse(ctx, p, c, w, NOT_ROCEV2);
	// Of format 2 the prefixes are those of the VPN: who put the answer has looked.
	if (!w->format2 && !within(&served, w->key.sender, w->flow6))
		return refuse(ctx, p, c, w, NOT_OUR_PREFIX);
	if (!find(w, &l))
		return up(c, UP_ANSWER);
	return send(ctx, p, c, w);
}

// share is for user space, which runs it for the CNPs that it sends itself: so that limits and receipt numbers hold for both.
SEC("xdp")
int share(struct xdp_md *ctx)
{
	struct request *r = (void *)(long)ctx->data;
	__u32 zero = 0;
	struct policy *p = bpf_map_lookup_elem(&policies, &zero);
	if (!p || (void *)(r + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	__u64 receipt = 0;
	r->outcome = take(p, r->pace, clock(), &receipt);
	r->receipt = receipt;
	return XDP_DROP;
}

// bpf_fib_lookup is for programs under the GPL only, hence the second licence of this file.
char _license[] SEC("license") = "GPL";
