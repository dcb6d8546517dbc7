// The flow table: where the entry of a packet's flow is. A packet of a known flow touches one cache line of it, which the
// kernel's own hash tables, with a line for the bucket and two or three for the element, do not allow.
//
// It is open addressing in an array: the entry of a flow is in the first place that was free in one of two windows, of
// WINDOW places each, which two halves of the hash of its key name. In a table that is half full, the first place is looked at for most flows, and of a
// million flows a few find no place free. Such a flow evicts the one of the windows that was seen the longest ago. User space reads and
// writes the array as memory (table.go): it sets states and removes flows.

#ifndef PNCD_FLOWS_H
#define PNCD_FLOWS_H

#include "roce.h"

#define WINDOW 32
#define SKEW   64 // ticks by which another processor may be ahead

// progress is how far a flow has come, as a packet that is handed up tells it.
struct progress {
	__u32 last_seen; // ticks of CLOCK_MONOTONIC_COARSE
	__u32 skipped; // packets since one was handed up
	__u32 req_high; // highest PSN of the requests; UD: the source QP
	__u32 resp_high;
	__u32 msn;
	__u32 read_len; // octets of the READ that req_high is of, or 0
	__u8  state;
	__u8  seen;
	__u8  transport;
	__u8  ttl;
};

struct flow {
	struct progress p;
	__u32  told_at; // ticks of CLOCK_MONOTONIC: when a packet was handed up last
	__u32  packets;
	__be32 mac_head; // of the sender, as in struct ip_packet
	__be16 mac_tail;
	__u16  ifindex; // modulo 2^16
};

// What is in a place of the table.
#define EMPTY   0 // nothing, and never was: who looks for a flow need not look on
#define USED    1
#define REMOVED 2 // by user space
#define BUSY    3 // being made

#define IS_TAKEN(what) ((what) & 1)

// entry is the common beginning of both kinds. The words of the key are the addresses, four octets each as they are in the packet, and
// last the rest: Destination QP, VLAN and UDP source port.
struct entry {
	__u32       what;
	struct flow f;
	__u64       key[];
};

#define WORDS4 2
#define WORDS6 5

struct entry4 {
	__u32       what;
	struct flow f;
	__u64       key[WORDS4];
};

struct entry6 {
	__u32       what;
	struct flow f;
	__u64       key[WORDS6];
};

_Static_assert(sizeof(struct entry4) == 64, "an entry is a cache line");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024); // set by user space, as that of flows6 is
	__type(key, __u32);
	__type(value, struct entry4);
} flows4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct entry6);
} flows6 SEC(".maps");

// A secret, so that no sender can choose flows that share a window. It stays as long as the tables do. It is a map, too, but one
// that is read without a call.
struct hash_seed {
	__u64 before, after;
};

volatile struct hash_seed seed SEC(".data.seed");

// Places in which a window begins: WINDOW - 1 less than the table has.
volatile const __u32 starts4, starts6;

INLINE struct entry *entry_at(const int v6, __u32 at)
{
	return v6 ? bpf_map_lookup_elem(&flows6, &at) : bpf_map_lookup_elem(&flows4, &at);
}

INLINE __u64 pair(__be32 a, __be32 b) { return a | (__u64)b << 32; }

// rest_of is the last word of a key.
INLINE __u64 rest_of(__u32 dest_qp, __u16 vlan, __u16 src_port) { return dest_qp | (__u64)vlan << 24 | (__u64)src_port << 36; }

// make_key fills the words of a packet's key.
INLINE void make_key(__u64 *key, const int v6, const struct addresses *a, __u32 dest_qp, __u16 vlan, __u16 src_port)
{
	__u64 rest = rest_of(dest_qp, vlan, src_port);
	if (!v6) {
		key[0] = pair(a->src[3], a->dst[3]);
		key[1] = rest;
		return;
	}
	key[0] = pair(a->src[0], a->src[1]);
	key[1] = pair(a->src[2], a->src[3]);
	key[2] = pair(a->dst[0], a->dst[1]);
	key[3] = pair(a->dst[2], a->dst[3]);
	key[4] = rest;
}

// windows are where the two windows of a key begin.
struct windows {
	__u32 first, second;
};

INLINE struct windows windows_of(const __u64 *key, const int v6)
{
	struct windows w;
	__u64 h = seed.before, starts = v6 ? starts6 : starts4;
#pragma unroll
	for (int i = 0; i < (v6 ? WORDS6 : WORDS4); i++) {
		h = (h ^ key[i]) * 0x9E3779B97F4A7C15ULL;
		h ^= h >> 32;
	}
	h = (h ^ seed.after) * 0x9E3779B97F4A7C15ULL;
	h ^= h >> 32;
	w.first = ((h & 0xFFFFFFFF) * starts) >> 32;
	w.second = ((h >> 32) * starts) >> 32;
	return w;
}

// place is the i-th of both windows.
INLINE __u32 place(struct windows w, __u32 i) { return i < WINDOW ? w.first + i : w.second + i - WINDOW; }

INLINE int has_key(const struct entry *e, const __u64 *key, const int v6)
{
	__u64 differ = 0;
#pragma unroll
	for (int i = 0; i < (v6 ? WORDS6 : WORDS4); i++)
		differ |= e->key[i] ^ key[i];
	return !differ;
}

// NEAR places of the first window are looked at without a call, and FIRST of them by pass_by.
#define NEAR  4
#define FIRST 2
#define NO_PLACE -1

// find_near returns the entry of a key's flow where it is in the first places of its window, or NULL; then absent says whether
// it is nowhere.
INLINE struct entry *find_near(const __u64 *key, const int v6, struct windows w, const __u32 places, int *absent)
{
#pragma unroll
	for (__u32 i = 0; i < places; i++) {
		struct entry *e = entry_at(v6, w.first + i);
		if (!e)
			return NULL;
		if (e->what == USED && has_key(e, key, v6))
			return e;
		if (e->what == EMPTY) {
			*absent = 1;
			return NULL;
		}
	}
	return NULL;
}

// find_far returns the place of a key's flow in the windows, or NO_PLACE.
INLINE int find_far(const __u64 *key, const int v6, struct windows w)
{
	for (__u32 i = NEAR; i < 2 * WINDOW; i++) {
		struct entry *e = entry_at(v6, place(w, i));
		if (!e || e->what == EMPTY)
			break;
		if (e->what == USED && has_key(e, key, v6))
			return place(w, i);
	}
	return NO_PLACE;
}

// oldest tells which entry of the windows was seen the longest ago. It has no branch: the verifier would walk each way through all
// of them.
INLINE __u32 oldest(const int v6, struct windows w, __u32 now)
{
	__s64 best = 0; // age, and which it is
	for (__u32 i = 0; i < 2 * WINDOW; i++) {
		struct entry *e = entry_at(v6, place(w, i));
		if (!e)
			break;
		__u32 age = now + SKEW - e->f.p.last_seen;
		__s64 this = (__s64)age << 8 | i, less = (best - this) >> 63;
		barrier_var(less);
		best += (this - best) & less;
	}
	return best & 0xFF;
}

// take_place takes a place for a flow that has none: one that is free, or that of the flow that was seen the longest ago. It
// returns the place, with EVICTED set when there was a flow, or NO_PLACE where another processor was faster.
#define EVICTED (1 << 30)
INLINE int take_place(const __u64 *key, const int v6, struct windows w, __u32 now)
{
	__u32 at = 0, what = USED;
	for (__u32 i = 0; i < 2 * WINDOW; i++) {
		at = place(w, i);
		struct entry *e = entry_at(v6, at);
		if (!e)
			return NO_PLACE;
		what = e->what;
		if (!IS_TAKEN(what))
			break;
	}
	if (IS_TAKEN(what))
		at = place(w, oldest(v6, w, now));
	struct entry *e = entry_at(v6, at);
	if (IS_TAKEN(what))
		what = USED;
	if (!e || __sync_val_compare_and_swap(&e->what, what, BUSY) != what)
		return NO_PLACE;
	__builtin_memset(&e->f, 0, sizeof(e->f));
#pragma unroll
	for (int i = 0; i < (v6 ? WORDS6 : WORDS4); i++)
		e->key[i] = key[i];
	return at | (what == USED ? EVICTED : 0);
}

// These are functions of their own, so that the verifier walks their loops once.
struct key4 {
	__u64 w[WORDS4];
};

struct key6 {
	__u64 w[WORDS6];
};

#define FAR(v6, key_type, name_find, name_take)                                                                            \
	__attribute__((noinline)) int name_find(const struct key_type *k, __u32 first, __u32 second)                       \
	{                                                                                                                  \
		struct windows w = {first, second};                                                                        \
		return k ? find_far(k->w, v6, w) : NO_PLACE;                                                               \
	}                                                                                                                  \
	__attribute__((noinline)) int name_take(const struct key_type *k, __u32 first, __u32 second, __u32 now)            \
	{                                                                                                                  \
		struct windows w = {first, second};                                                                        \
		return k ? take_place(k->w, v6, w, now) : NO_PLACE;                                                        \
	}
FAR(0, key4, find_far4, take_place4)
FAR(1, key6, find_far6, take_place6)

// find_flow returns the entry of a key's flow, or NULL.
INLINE struct entry *find_flow(const void *key, const int v6, struct windows w)
{
	int absent = 0;
	struct entry *e = find_near(key, v6, w, NEAR, &absent);
	if (e || absent)
		return e;
	int at = v6 ? find_far6(key, w.first, w.second) : find_far4(key, w.first, w.second);
	return at == NO_PLACE ? NULL : entry_at(v6, at);
}

// make_flow makes an entry for a flow that has none, with all of struct flow zero: no one finds it before show_flow. It returns
// NULL where another processor was faster. evicted says whether another flow had to go.
INLINE struct entry *make_flow(const void *key, const int v6, struct windows w, __u32 now, int *evicted)
{
	int at = v6 ? take_place6(key, w.first, w.second, now) : take_place4(key, w.first, w.second, now);
	if (at == NO_PLACE)
		return NULL;
	*evicted = !!(at & EVICTED);
	return entry_at(v6, at & ~EVICTED);
}

// show_flow lets others find a flow that make_flow made.
INLINE void show_flow(struct entry *e) { __sync_lock_test_and_set(&e->what, USED); }

#endif
