package translator

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/roce"
	"pncd/proxyagent/evidence"
	"pncd/proxyagent/flowmap"
	"pncd/proxyagent/message"
)

// others is a Shares whose numbers another translator uses, too: each second one is ours.
type others struct {
	last  uint64
	never evidence.Outcome
	err   error
	want  []Flow2
}

func (o *others) Take(uint32, netip.Addr, uint32) (evidence.Outcome, uint64, error) {
	if o.err != nil || o.never != 0 {
		return o.never, 0, o.err
	}
	o.last += 2
	return translated, o.last, nil
}

func (o *others) Want(f Flow2, _ time.Time) { o.want = append(o.want, f) }

func TestSharedReceiptNumbersAreUsedAsTheyCome(t *testing.T) {
	r := newRig(t, nil)
	o := &others{last: 100}
	if err := r.Share(func(uint64) (Shares, error) { return nil, errQueue }); !errors.Is(err, errQueue) {
		t.Errorf("an error of begin gives %v", err)
	}
	if err := r.Share(func(used uint64) (Shares, error) { return o, nil }); err != nil {
		t.Fatal(err)
	}
	r.wire.fail = func(p []byte) error {
		if c, err := roce.ParseCNP(p); err != nil || c.DestQP == 0x1000+2 {
			return errQueue
		}
		return nil
	}
	r.Process(batchOf(5), start)
	want := map[uint32]uint64{0: 102, 1: 104, 2: 0, 3: 108, 4: 110} // 106 could not be sent, and is gone
	for _, rec := range r.rec.List(evidence.Filter{}, 0) {
		if rec.Translation.Receipt != want[rec.Flow.DestQP] {
			t.Errorf("QP %d: receipt %d, want %d", rec.Flow.DestQP, rec.Translation.Receipt, want[rec.Flow.DestQP])
		}
	}
	if c, err := roce.ParseCNP(r.wire.packets[2]); err != nil || c.SrcPort != message.EventPort(108) {
		t.Errorf("third CNP: %+v, %v", c, err)
	}
	for _, never := range []evidence.Outcome{paced, pncv1.Outcome_OUTCOME_PROXY_RATE_LIMITED} {
		o.never = never
		if got := r.one(notification(9, 9), 0).Outcome; got != never {
			t.Errorf("outcome %v, want %v", got, never)
		}
	}
	o.err = errors.New("closed")
	if rec := r.one(notification(9, 9), 0); rec.Outcome != failed || rec.Err != "closed" {
		t.Errorf("record %+v", rec)
	}
	r.Unshare(func() uint64 { return 120 })
	if rec := r.one(notification(9, 9), 0); rec.Outcome != translated || rec.Translation.Receipt != 121 {
		t.Errorf("outcome %v, receipt %d; want 121", rec.Outcome, rec.Translation.Receipt)
	}
	r.checkSum(t, 9)
}

// elsewhere records a notification of an event number that was decided in front of the translator.
func (r *rig) elsewhere(number uint64, o evidence.Outcome, version uint64) evidence.Record {
	x := Decided{Format: message.Format1, Datagram: notification(5, number), Outcome: o, SourceQP: 0x1005, Version: version}
	if o == translated {
		x.Receipt, x.Latency = 7, time.Microsecond
	}
	r.Record(&x, flows{}, start)
	return r.rec.List(evidence.Filter{}, 1)[0]
}

func TestDecisionsElsewhereAreRecordedAndNotCounted(t *testing.T) {
	r := newRig(t, nil)
	r.flows[5] = flowmap.Miss // another map than the one that Record is given
	rec := r.elsewhere(1, translated, 7)
	if tr := rec.Translation; rec.Outcome != translated || rec.Flow.Sender != sender4 || tr.Node != node4 || tr.SourceQP != 0x1005 || tr.Receipt != 7 ||
		tr.ReceiptPort != message.EventPort(7) || tr.Latency != time.Microsecond || tr.Entry.State != pncv1.FlowState(flowmap.StateConfirmed) || tr.Entry.PKey != 0x8001 {
		t.Errorf("record %+v", rec)
	}
	if rec := r.elsewhere(4, paced, 6); rec.Translation.Gap != 2 || rec.Translation.Entry.State != 0 || rec.Translation.Entry.Version != 6 || rec.Translation.SourceQP != 0 {
		t.Errorf("of an entry that has changed since: %+v", rec)
	}
	r.elsewhere(9, pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_DOMAIN, 0)
	if n := r.Nodes(); len(n) != 1 || n[0].Lost != 2 || n[0].Received != 2 {
		t.Errorf("nodes %+v", n)
	}
	if r.rec.Sum(evidence.PartProxy) != 0 || r.rec.Made() != 3 {
		t.Errorf("%d counted, %d records", r.rec.Sum(evidence.PartProxy), r.rec.Made())
	}
}

// What is missing was decided elsewhere, and is no loss.
func TestNoGapIsToldWhileOnlyASampleIsRecorded(t *testing.T) {
	sampled := func(c *Config) { c.Sampled = true }
	r := newRig(t, sampled)
	for i, rec := range []evidence.Record{r.one(notification(5, 1), 0), r.elsewhere(40, translated, 7), r.one(notification(5, 90), 0), r.elsewhere(93, paced, 7)} {
		if rec.Translation.Gap != 0 {
			t.Errorf("record %d: gap %d", i, rec.Translation.Gap)
		}
	}
	if n := r.Nodes(); len(n) != 0 {
		t.Errorf("nodes %+v", n)
	}
	if err := r.Reconfigure(testConfig()); err != nil {
		t.Fatal(err)
	}
	if rec := r.one(notification(5, 100), 0); rec.Translation.Gap != 0 {
		t.Errorf("the first one that is followed: gap %d", rec.Translation.Gap)
	}
	if rec := r.elsewhere(103, translated, 7); rec.Translation.Gap != 2 {
		t.Errorf("followed: gap %d, want 2", rec.Translation.Gap)
	}
	cfg := testConfig()
	sampled(&cfg)
	if err := errors.Join(r.Reconfigure(cfg), r.Reconfigure(testConfig())); err != nil {
		t.Fatal(err)
	}
	if rec := r.one(notification(5, 200), 0); rec.Translation.Gap != 0 {
		t.Errorf("followed again: gap %d", rec.Translation.Gap)
	}
}

// tuples is a map of flows by tuple for who keeps copies.
type tuples struct{ flows }

func (f tuples) LookupTupleAlone(t flowmap.Tuple, now time.Time) (flowmap.Entry, flowmap.Verdict) {
	return f.LookupTuple(t, now)
}

// What Want tells of is what Resolve resolves, to the VPN, Source QP and versions of the record; for the rest neither has anything.
func TestResolveSaysWhatAFlowOfFormat2Gets(t *testing.T) {
	for _, tc := range []struct {
		nrp    uint32
		sender netip.Addr
	}{{10, sender4}, {20, sender4}, {40, sender4}, {42, sender6}, {43, sender4}, {11, sender4}, {30, sender4}, {41, sender4}, {10, sender6}, {10, own4.Next()}, {20, own4.Next()}} {
		v, o := newVPNRig(t), &others{}
		if err := v.Share(func(uint64) (Shares, error) { return o, nil }); err != nil {
			t.Fatal(err)
		}
		v.Format2().Process([]Datagram{format2Datagram(tc.nrp, tc.sender)}, start)
		rec := v.last()
		receiver := recv4
		if tc.sender.Is6() {
			receiver = recv6
		}
		f := Flow2{Sender: tc.sender, Receiver: receiver, SrcPort: 50000, NRP: tc.nrp}
		r, ok := v.Resolve(f, tuples{v.flows}, start)
		if ok != (rec.Outcome == translated) || ok != (len(o.want) == 1) || ok && o.want[0] != f {
			t.Errorf("NRP %d of %s: %v, resolved: %v, wanted: %v", tc.nrp, tc.sender, rec.Outcome, ok, o.want)
		}
		if tr := rec.Translation; ok && (r.SourceQP != tr.SourceQP || r.Name != rec.Flow.Context || r.NRPVersion != tr.NRPVersion || r.Entry.Version != tr.Entry.Version) {
			t.Errorf("NRP %d of %s: %+v, record %+v", tc.nrp, tc.sender, r, rec)
		}
		if !ok {
			continue
		}
		x := Decided{Format: message.Format2, Datagram: format2Datagram(tc.nrp, tc.sender), Outcome: translated, SourceQP: r.SourceQP, Version: r.Entry.Version, NRP: r.NRPVersion, Receipt: rec.Translation.Receipt}
		v.Record(&x, v.flows, start)
		got := v.last()
		got.Sequence, got.Translation.Gap, got.Translation.Latency = rec.Sequence, rec.Translation.Gap, rec.Translation.Latency
		if got != rec {
			t.Errorf("NRP %d of %s, decided elsewhere: record\n%+v\n%+v", tc.nrp, tc.sender, got, rec)
		}
	}
}
