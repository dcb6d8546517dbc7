package tap

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// block is one block of the ring, memory that the kernel writes. Its status word says whose it is: the
// kernel's release store of TP_STATUS_USER comes after all else that it wrote, and ours of
// TP_STATUS_KERNEL after all that we read, hence the atomic operations.
type block []byte

// tpacket_block_desc: version 4 octets, offset to private data 4, then tpacket_hdr_v1.
const blockHeaderAt = 8

func (b block) header() *unix.TpacketHdrV1 {
	return (*unix.TpacketHdrV1)(unsafe.Pointer(&b[blockHeaderAt]))
}

// closed reports that the block is ours to read.
func (b block) closed() bool {
	return atomic.LoadUint32(&b.header().Block_status)&unix.TP_STATUS_USER != 0
}

// open gives the block back to the kernel.
func (b block) open() { atomic.StoreUint32(&b.header().Block_status, unix.TP_STATUS_KERNEL) }

// cursor walks the frames of a closed block.
type cursor struct {
	b    block
	left uint32
	at   int // of the next frame's header
}

func (b block) cursor() cursor {
	h := b.header()
	return cursor{b: b, left: h.Num_pkts, at: int(h.Offset_to_first_pkt)}
}

// next fills f with the next frame. It returns false at the end, or where the block contradicts itself.
func (c *cursor) next(f *Frame) bool {
	if c.left == 0 || c.at+unix.SizeofTpacket3Hdr > len(c.b) {
		return false
	}
	h := (*unix.Tpacket3Hdr)(unsafe.Pointer(&c.b[c.at]))
	from := c.at + int(h.Mac)
	to := from + int(h.Snaplen)
	if to > len(c.b) {
		return false
	}
	f.Data = c.b[from:to:to]
	f.At = time.Unix(int64(h.Sec), int64(h.Nsec))
	f.Wire = int(h.Len)
	f.Truncated = h.Snaplen < h.Len
	f.HasVLAN = h.Status&unix.TP_STATUS_VLAN_VALID != 0
	f.VLANTCI, f.VLANTPID = 0, 0
	if f.HasVLAN {
		f.VLANTCI, f.VLANTPID = uint16(h.Hv1.Vlan_tci), etherVLAN
		if h.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
			f.VLANTPID = h.Hv1.Vlan_tpid
		}
	}
	c.left--
	c.at += int(h.Next_offset)
	return true
}

// frames hands every frame of a closed block to fn.
func (b block) frames(f *Frame, fn func(*Frame)) {
	for c := b.cursor(); c.next(f); {
		fn(f)
	}
}
