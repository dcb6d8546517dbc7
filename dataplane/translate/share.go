package translate

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
)

// Outcome is what became of a notification, by its number in pnc.v1.Outcome.
type Outcome uint8

// The outcomes that the program gives.
const (
	Translated   Outcome = 32
	NotOurDomain Outcome = 36
	TTLTooLow    Outcome = 37
	NotRoCEv2    Outcome = 38
	NotOurPrefix Outcome = 40
	Paced        Outcome = 47
	RateLimited  Outcome = 48
)

// requestLen is that of the program's struct request.
const requestLen = 16

// Take takes, for a CNP that user space is to send, a share of the Source QP in a context and of the total with a receipt number: the
// outcome is Translated then, else Paced or RateLimited. It runs the program's own code, in some microseconds.
func (t *Translator) Take(context uint32, sender netip.Addr, qp uint32) (Outcome, uint64, error) {
	a := t.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	fail := func(err error) (Outcome, uint64, error) {
		return 0, 0, fmt.Errorf("kernel translator: take a share: %w", err)
	}
	if a.closed {
		return fail(ErrClosed)
	}
	p, err := a.pacing(sourceQP{context, sender, qp})
	if err != nil {
		return fail(err)
	}
	in, out := make([]byte, requestLen), make([]byte, requestLen)
	ne := binary.NativeEndian
	ne.PutUint32(in, p.index)
	if _, err := t.programs.Share.Run(&ebpf.RunOptions{Data: in, DataOut: out}); err != nil {
		return fail(err)
	}
	return Outcome(ne.Uint32(out[4:])), ne.Uint64(out[8:]), nil
}

// SetReceipts sets how many receipt numbers were given before; it is for before the policy is in force.
func (t *Translator) SetReceipts(n uint64) error {
	err := t.changeTotal(func(total *translateTotal) { total.Receipt = n })
	if err != nil {
		return fmt.Errorf("kernel translator: receipt numbers: %w", err)
	}
	return nil
}

// changeTotal is for while no packet is decided.
func (t *Translator) changeTotal(change func(*translateTotal)) error {
	var total translateTotal
	if err := t.maps.Totals.LookupWithFlags(uint32(0), &total, ebpf.LookupLock); err != nil {
		return err
	}
	change(&total)
	return t.maps.Totals.Update(uint32(0), &total, ebpf.UpdateLock)
}

// Receipts is how many receipt numbers were given, those before SetReceipts included.
func (t *Translator) Receipts() (uint64, error) {
	var total translateTotal
	if err := t.maps.Totals.LookupWithFlags(uint32(0), &total, ebpf.LookupLock); err != nil {
		return 0, fmt.Errorf("kernel translator: receipt numbers: %w", err)
	}
	return total.Receipt, nil
}
