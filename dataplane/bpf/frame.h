// A frame as a program meets it, in TCX (a socket buffer) or in XDP, and how to read of it.

#ifndef PNCD_FRAME_H
#define PNCD_FRAME_H

#include <stddef.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define INLINE static __always_inline

#define SNAP 512 // octets of a frame that are read

struct frame {
	void *ctx;
	void *data, *end; // what of it is in one piece
	__u32 ifindex;    // of ingress in XDP and at TCX ingress, of egress at TCX egress
	int   xdp;        // a constant in each program, so that the other's helpers are left out
	__u16 vlan_tci, vlan_tpid; // of a tag that the kernel took off; vlan_tpid 0: it took none
};

INLINE struct frame frame_of_skb(struct __sk_buff *skb)
{
	struct frame f = {.ctx = skb,
			  .data = (void *)(long)skb->data,
			  .end = (void *)(long)skb->data_end,
			  .ifindex = skb->ifindex};
	if (skb->vlan_present) {
		f.vlan_tci = skb->vlan_tci;
		f.vlan_tpid = bpf_ntohs(skb->vlan_proto);
	}
	return f;
}

INLINE struct frame frame_of_xdp(struct xdp_md *xdp)
{
	struct frame f = {.ctx = xdp,
			  .data = (void *)(long)xdp->data,
			  .end = (void *)(long)xdp->data_end,
			  .ifindex = xdp->ingress_ifindex,
			  .xdp = 1};
	return f;
}

// frame_len is the length of the whole frame, without a tag that the kernel took off. In XDP it costs a call, which
// most packets can do without.
INLINE __u32 frame_len(const struct frame *f)
{
	return f->xdp ? bpf_xdp_get_buff_len(f->ctx) : ((struct __sk_buff *)f->ctx)->len;
}

// copy takes len octets at off, wherever they are. It is 0, or an error.
INLINE int copy(const struct frame *f, __u32 off, void *to, __u32 len)
{
	return f->xdp ? bpf_xdp_load_bytes(f->ctx, off, to, len) : bpf_skb_load_bytes(f->ctx, off, to, len);
}

// VIEW points to the octets at off of a header of room's type: in the frame, or in room, where they were copied because
// the frame is not in one piece there. It is NULL where the frame, or its first SNAP octets, end before.
#define VIEW(f, off, room) ((const __typeof__(room) *)view(f, off, &(room), sizeof(room)))
INLINE const void *view(const struct frame *f, __u32 off, void *room, const __u32 len)
{
	if (off > SNAP - len)
		return NULL;
	if (f->data + off + len <= f->end)
		return f->data + off;
	return copy(f, off, room, len) == 0 ? room : NULL;
}

#endif
