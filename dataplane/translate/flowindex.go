package translate

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/cilium/ebpf"
)

// answersPerBucket is how many answers there are for a bucket at most, in the mean: with a good hash one bucket in some
// 500,000 has more than it has slots.
const answersPerBucket = 4

// bucketsFor is how many buckets there are for a number of answers.
func bucketsFor(answers int) int {
	n := max(1, (answers+answersPerBucket-1)/answersPerBucket)
	return 1 << bits.Len(uint(n-1))
}

// flowIndex is the program's index of answers by flow: an array of buckets of one cache line each, in place of a hash map,
// whose elements would be two or three lines more for each notification. What a slot says is a hint, for the answer names its flow.
type flowIndex struct {
	m       *ebpf.Map
	seed    uint64
	buckets []translateBucket // as the program has them
}

// flowHash is flow_hash of the program.
func flowHash(seed uint64, k *translateFlowKey) uint64 {
	const factor = 0x9E3779B97F4A7C15
	ne := binary.NativeEndian
	h := seed
	for _, v := range [...]uint64{
		ne.Uint64(k.Sender[:8]), ne.Uint64(k.Sender[8:]), ne.Uint64(k.Receiver[:8]), ne.Uint64(k.Receiver[8:]), pair(k.Name, k.Nrp),
	} {
		h = (h ^ v) * factor
		h ^= h >> 32
	}
	return h
}

// pair is what two numbers are in memory, as one.
func pair(a, b uint32) uint64 {
	var x [8]byte
	binary.NativeEndian.PutUint32(x[:4], a)
	binary.NativeEndian.PutUint32(x[4:], b)
	return binary.NativeEndian.Uint64(x[:])
}

// of gives the bucket of a flow, and what its slot holds.
func (x *flowIndex) of(k *translateFlowKey, answer uint32) (bucket, slot uint32) {
	h := flowHash(x.seed, k)
	return uint32(h) & uint32(len(x.buckets)-1), (uint32(h>>32)%255+1)<<24 | answer
}

// put takes a slot for an answer. Its error is ErrFull when all slots of the flow's bucket are taken.
func (x *flowIndex) put(k *translateFlowKey, answer uint32) error {
	n, slot := x.of(k, answer)
	return x.change(n, 0, slot, ErrFull)
}

// remove frees the slot of an answer.
func (x *flowIndex) remove(k *translateFlowKey, answer uint32) error {
	n, slot := x.of(k, answer)
	return x.change(n, slot, 0, nil)
}

func (x *flowIndex) change(n, from, to uint32, missing error) error {
	b := x.buckets[n]
	i := slices.Index(b.Slots[:], from)
	if i < 0 {
		return missing
	}
	b.Slots[i] = to
	if err := x.m.Update(n, &b, ebpf.UpdateAny); err != nil {
		return err
	}
	x.buckets[n] = b
	return nil
}

// full says which bucket has no slot for a flow.
func (x *flowIndex) full(k *translateFlowKey) (bucket uint32, is bool) {
	n, _ := x.of(k, 0)
	return n, !slices.Contains(x.buckets[n].Slots[:], 0)
}
