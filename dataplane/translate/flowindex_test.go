package translate

import (
	"errors"
	"testing"
)

// alike finds n flows for which same is equal, by their place in the index.
func alike(x *flowIndex, n int, same func(bucket, slot uint32) uint64) (qps []uint32) {
	found := map[uint64][]uint32{}
	for qp := uint32(1); ; qp++ {
		f := flowOf(qp)
		k := f.key()
		at := same(x.of(&k, 0))
		if found[at] = append(found[at], qp); len(found[at]) == n {
			return found[at]
		}
	}
}

// Flows that the index can't tell apart are told apart by their answers.
func TestFlowsWithOneTagHaveTheirOwnAnswers(t *testing.T) {
	b := newBench(t, Config{MaxAnswers: 64}, false)
	qps := alike(&b.answers.index, 3, func(bucket, slot uint32) uint64 { return uint64(bucket)<<32 | uint64(slot) })
	answered := func(want ...bool) {
		t.Helper()
		for i, qp := range qps {
			if got := b.notify(t, qp) == xdpTx; got != want[i] {
				t.Errorf("QP %#x, the %d. of one tag: answered: %v, want %v", qp, i+1, got, want[i])
			}
		}
	}
	p := testPolicy()
	p.Window = 0
	if err := errors.Join(b.SetPolicy(p), putFlow(b.Translator, qps[0]), putFlow(b.Translator, qps[1])); err != nil {
		t.Fatal(err)
	}
	answered(true, true, false)
	if err := errors.Join(b.Remove(flowOf(qps[0])), putFlow(b.Translator, qps[2])); err != nil {
		t.Fatal(err)
	}
	answered(false, true, true)
}

// A bucket without a free slot is no room, and eviction makes it there.
func TestAFullBucketIsNoRoom(t *testing.T) {
	b := newBench(t, Config{MaxAnswers: 64}, false)
	x := &b.answers.index
	slots := len(x.buckets[0].Slots)
	qps := alike(x, slots+1, func(bucket, _ uint32) uint64 { return uint64(bucket) })
	other := alike(x, 1, func(bucket, _ uint32) uint64 { return uint64(bucket) })[0]
	for i, qp := range append(qps[:slots:slots], other) {
		if err := putFlow(b.Translator, qp); err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
	}
	last := qps[slots]
	if err := putFlow(b.Translator, last); !errors.Is(err, ErrFull) {
		t.Fatalf("beyond the slots: %v", err)
	}
	if b.notify(t, last) != xdpPass {
		t.Error("a flow without a slot was decided")
	}
	before := b.Answers()
	if err := b.Evict(flowOf(last)); err != nil {
		t.Fatal(err)
	}
	if err := putFlow(b.Translator, last); err != nil || b.Answers() != before {
		t.Errorf("after room was made: %v, %d answers, %d before", err, b.Answers(), before)
	}
	if b.notify(t, last) != xdpTx {
		t.Error("the flow that room was made for is not answered")
	}
}

func TestBucketsAreAPowerOfTwoAndEnough(t *testing.T) {
	for answers, want := range map[int]int{1: 1, 4: 1, 5: 2, 64: 16, 65: 32, 65536: 16384, maxAnswers: 1 << 22} {
		if got := bucketsFor(answers); got != want {
			t.Errorf("%d answers: %d buckets, want %d", answers, got, want)
		}
	}
}
