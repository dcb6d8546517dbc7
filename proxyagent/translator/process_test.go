package translator

import (
	"encoding/binary"
	"strings"
	"sync"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/roce"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/flowmap"
)

func batchOf(n int) []Datagram {
	var all []Datagram
	for i := range n {
		all = append(all, notification(uint32(i), uint64(i)))
	}
	return all
}

func TestReceiptNumbersCountOnlyWhatTheKernelTook(t *testing.T) {
	r := newRig(t, nil)
	// Refused: every CNP for a Source QP that ends in 3 or 4 (neighbours), and the last of the batch.
	refused := func(qp uint32) bool { return qp%8 == 3 || qp%8 == 4 || qp == 0x1000+99 }
	r.wire.fail = func(p []byte) error {
		c, err := roce.ParseCNP(p)
		if err != nil {
			return err
		}
		if refused(c.DestQP) {
			return errQueue
		}
		return nil
	}
	r.Process(batchOf(100), start)
	var wantSent uint64
	records := map[uint32]evidence.Record{}
	for _, rec := range r.rec.List(evidence.Filter{}, 0) {
		records[rec.Flow.DestQP] = rec
	}
	for i := range uint32(100) {
		rec := records[i]
		if refused(0x1000 + i) {
			if rec.Outcome != failed || !strings.Contains(rec.Err, "no buffer space") || rec.Translation.Receipt != 0 || rec.Translation.ReceiptPort != 0 || rec.Translation.SourceQP != 0 {
				t.Errorf("QP %d: record %+v", i, rec)
			}
			continue
		}
		wantSent++
		if rec.Outcome != translated || rec.Translation.Receipt != wantSent {
			t.Errorf("QP %d: outcome %v, receipt %d, want %d", i, rec.Outcome, rec.Translation.Receipt, wantSent)
		}
	}
	if uint64(len(r.wire.packets)) != wantSent || r.Stats().Receipts != wantSent || r.rec.Outcome(translated) != wantSent {
		t.Fatalf("%d CNPs, receipt %d, counted %d; want %d", len(r.wire.packets), r.Stats().Receipts, r.rec.Outcome(translated), wantSent)
	}
	for i, p := range r.wire.packets {
		c, err := roce.ParseCNP(p)
		if err != nil {
			t.Fatal(err)
		}
		if want := uint16(49152 + i + 1); c.SrcPort != want {
			t.Errorf("CNP %d: source port %d, want %d", i, c.SrcPort, want)
		}
		if ok, _ := roce.VerifyICRC(p); !ok {
			t.Errorf("CNP %d: wrong ICRC", i)
		}
	}
	r.checkSum(t, 100)
}

type idle struct{}

func (idle) Send([][]byte) (int, error) { return 0, nil }

func TestASenderThatSendsNothingWithoutAnErrorIsASendError(t *testing.T) {
	r := newRig(t, nil)
	r.settings.Load().home.sender = idle{}
	r.Process(batchOf(3), start)
	if r.rec.Outcome(failed) != 3 || r.Stats().Receipts != 0 {
		t.Errorf("%d send errors, receipt %d", r.rec.Outcome(failed), r.Stats().Receipts)
	}
}

func TestACNPThatCannotBeBuiltIsASendError(t *testing.T) {
	r := newRig(t, nil)
	r.core.flows = wideQP{}
	r.Process(batchOf(3), start)
	if r.rec.Outcome(failed) != 1 || r.rec.Outcome(translated) != 2 || r.Stats().Receipts != 2 {
		t.Errorf("%d send errors, %d translated", r.rec.Outcome(failed), r.rec.Outcome(translated))
	}
}

// wideQP answers a Source QP of more than 24 bits for Destination QP 1.
type wideQP struct{ flows }

func (wideQP) Lookup(k flowmap.Key, _ time.Time) (flowmap.Entry, flowmap.Verdict) {
	e := flowmap.Entry{State: flowmap.StateLearned, SourceQP: k.DestQP}
	if k.DestQP == 1 {
		e.SourceQP = 1 << 24
	}
	return e, flowmap.Hit
}

func TestIPv4IdentificationIsNeverZero(t *testing.T) {
	var d decision
	d.cnp = roce.CNP{Src: recv4, Dst: sender4, DestQP: 1}
	for receipt := uint64(1); receipt < 140_000; receipt++ {
		if err := d.stamp(receipt); err != nil {
			t.Fatal(err)
		}
		if binary.BigEndian.Uint16(d.packet[4:]) == 0 {
			t.Fatalf("receipt %d has identification 0", receipt)
		}
		if want := uint16(49152 + receipt%16384); binary.BigEndian.Uint16(d.packet[20:]) != want {
			t.Fatalf("receipt %d: source port %d, want %d", receipt, binary.BigEndian.Uint16(d.packet[20:]), want)
		}
	}
}

func TestReconfigureKeepsReceiptsPacingAndCounters(t *testing.T) {
	r := newRig(t, nil)
	r.Process(batchOf(10), start)
	bad := testConfig()
	bad.TotalBurst = -1
	if err := r.Reconfigure(bad); err == nil {
		t.Error("a negative burst is taken")
	}
	cfg := testConfig()
	cfg.PaceWindow = time.Second
	cfg.MinTTL = 0
	if err := r.Reconfigure(cfg); err != nil {
		t.Fatal(err)
	}
	if got := r.one(notification(0, 11), time.Millisecond).Outcome; got != paced {
		t.Errorf("outcome %v: the new window does not hold for what was sent before", got)
	}
	dg := notification(50, 12)
	dg.TTL = 1
	if rec := r.one(dg, time.Millisecond); rec.Outcome != translated || rec.Translation.Receipt != 11 {
		t.Errorf("outcome %v, receipt %d; want translated, 11", rec.Outcome, rec.Translation.Receipt)
	}
	r.checkSum(t, 12)
}

func TestDatagramsReadWhileStoppingEndInShutdown(t *testing.T) {
	r := newRig(t, nil)
	r.Discard(batchOf(3), start)
	if got := r.rec.Outcome(pncv1.Outcome_OUTCOME_PROXY_SHUTDOWN); got != 3 || len(r.wire.packets) != 0 {
		t.Errorf("%d outcomes, %d CNPs", got, len(r.wire.packets))
	}
	if rec := r.rec.List(evidence.Filter{}, 1)[0]; rec.Flow.DestQP != 2 || rec.Translation.Node != node4 {
		t.Errorf("record %+v", rec)
	}
	r.checkSum(t, 3)
}

func TestWhatTheKernelDroppedIsCounted(t *testing.T) {
	r := newRig(t, nil)
	r.Lost(Loss{Overflow: 5, BadChecksum: 2}, start)
	r.Lost(Loss{}, start)
	if a, b := r.rec.Outcome(pncv1.Outcome_OUTCOME_PROXY_RECEIVE_OVERFLOW), r.rec.Outcome(pncv1.Outcome_OUTCOME_PROXY_BAD_CHECKSUM); a != 5 || b != 2 {
		t.Errorf("overflow %d, bad checksum %d; want 5, 2", a, b)
	}
	records := r.rec.List(evidence.Filter{}, 0)
	if len(records) != 2 || !strings.Contains(records[0].Err, "5 dropped") {
		t.Errorf("records %+v", records)
	}
	r.checkSum(t, 7)
}

// Every datagram ends in exactly one outcome, and CNPs sent equal those counted, while everything else changes.
func TestOutcomesSumUpToDatagramsUnderLoad(t *testing.T) {
	const workers, batches = 4, 500
	r := newRig(t, func(c *Config) { c.TotalPerSecond, c.TotalBurst, c.MaxQPs, c.MaxNodes = 100_000, 1000, 64, 2 })
	r.flows[5], r.flows[6] = flowmap.Miss, flowmap.Contradicted
	calls := 0
	r.wire.fail = func([]byte) error {
		if calls++; calls%13 == 0 {
			return errQueue
		}
		return nil
	}
	var wg sync.WaitGroup
	for g := range workers {
		wg.Go(func() {
			for i := range batches {
				batch := batchOf(100) // more than MaxBatch
				batch[3].TTL = 1
				batch[9] = batch[8]
				batch[4].Payload, batch[4].Length = nil, 0
				r.Process(batch, start.Add(time.Duration(g*batches+i)*time.Millisecond))
				switch i % 50 {
				case 10:
					r.SetEnabled(false)
				case 12:
					r.SetEnabled(true)
				case 20:
					if err := r.Reconfigure(testConfig()); err != nil {
						t.Error(err)
					}
				case 30:
					r.Lost(Loss{Overflow: 3, BadChecksum: 1}, start)
				case 40:
					r.Discard(batch[:7], start)
				}
			}
		})
	}
	wg.Wait()
	r.checkSum(t, workers*(batches*100+batches/50*(4+7)))
	if got := r.rec.Outcome(translated); got != uint64(len(r.wire.packets)) || got != r.Stats().Receipts {
		t.Errorf("%d counted, %d CNPs, receipt %d", got, len(r.wire.packets), r.Stats().Receipts)
	}
	for _, o := range []evidence.Outcome{translated, failed, malformed, paced, pncv1.Outcome_OUTCOME_PROXY_DISABLED} {
		if r.rec.Outcome(o) == 0 {
			t.Errorf("the load has no %v", o)
		}
	}
}

type sink struct{}

func (sink) Send(p [][]byte) (int, error) { return len(p), nil }

func TestProcessDoesNotAllocate(t *testing.T) {
	r := newRig(t, func(c *Config) { c.TotalPerSecond, c.TotalBurst = 1e9, 1<<30 })
	r.settings.Load().home.sender = sink{}
	r.flows[3] = flowmap.Miss
	batch, now := batchOf(MaxBatch), start
	if allocs := testing.AllocsPerRun(200, func() {
		now = now.Add(30 * time.Microsecond) // every other one is paced
		r.Process(batch, now)
	}); allocs != 0 {
		t.Errorf("%v allocations for each batch", allocs)
	}
}

// What arrives ends in one outcome; there is no CNP for what is not in the map.
func FuzzProcess(f *testing.F) {
	for _, dg := range []Datagram{notification(1, 1), notification(2, 2)} {
		f.Add(dg.Payload, uint16(49153), 255, false)
		f.Add(append(dg.Payload, 0, 0, 0, 1), uint16(1021), 1, true)
	}
	f.Add([]byte{}, uint16(0), 0, false)
	r := newRig(f, nil)
	r.flows[2] = flowmap.Undecided
	var n uint64
	f.Fuzz(func(t *testing.T, payload []byte, port uint16, ttl int, badSum bool) {
		dg := notification(1, 0)
		dg.Payload, dg.Length = payload[:min(len(payload), keep)], len(payload)
		dg.From, dg.TTL, dg.BadSum = netipPort(port), ttl, badSum
		before, cnps := r.rec.Sum(evidence.PartProxy), len(r.wire.packets)
		n++
		rec := r.one(dg, time.Duration(n)*time.Millisecond)
		if got := r.rec.Sum(evidence.PartProxy) - before; got != 1 {
			t.Fatalf("%d outcomes for one datagram", got)
		}
		if sent := len(r.wire.packets) - cnps; sent > 1 || (sent == 1) != (rec.Outcome == translated) {
			t.Fatalf("%d CNPs with outcome %v", sent, rec.Outcome)
		}
		r.wire.packets = r.wire.packets[:0]
	})
}

func BenchmarkProcess(b *testing.B) {
	b.ReportAllocs()
	r := newRig(b, func(c *Config) { c.TotalPerSecond, c.TotalBurst = 1e9, 1<<30 })
	r.settings.Load().home.sender = sink{}
	batch, now := batchOf(MaxBatch), start
	for b.Loop() {
		now = now.Add(2 * time.Millisecond)
		r.Process(batch, now)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*MaxBatch), "ns/notification")
	b.ReportMetric(float64(r.rec.Outcome(translated))/float64(b.N*MaxBatch), "translated/notification")
}
