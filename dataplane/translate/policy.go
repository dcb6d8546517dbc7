package translate

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
)

// prefixSet is one of the program's sets of prefixes.
type prefixSet struct {
	m  *ebpf.Map
	in map[translatePrefixKey]struct{}
}

// set makes the set what it is to be, by its differences.
func (s *prefixSet) set(prefixes []netip.Prefix) error {
	next := make(map[translatePrefixKey]struct{}, len(prefixes))
	for _, p := range prefixes {
		next[prefixKey(p)] = struct{}{}
	}
	for k := range s.in {
		if _, stays := next[k]; !stays {
			if err := s.m.Delete(&k); err != nil {
				return err
			}
			delete(s.in, k)
		}
	}
	if s.in == nil {
		s.in = map[translatePrefixKey]struct{}{}
	}
	for k := range next {
		if _, there := s.in[k]; !there {
			if err := s.m.Update(&k, uint32(1), ebpf.UpdateAny); err != nil {
				return err
			}
			s.in[k] = struct{}{}
		}
	}
	return nil
}

// prefixKey keeps the families apart, so that ::/0 holds no IPv4 address.
func prefixKey(p netip.Prefix) translatePrefixKey {
	p = p.Masked()
	k := translatePrefixKey{Bits: 32 + uint32(p.Bits()), Family: 6}
	if p.Addr().Is4() {
		k.Family = 4
	}
	copy(k.Addr[:], p.Addr().AsSlice())
	return k
}

// families of the policy.
const (
	hasIPv4 = 1 << iota
	hasIPv6
)

// SetPolicy changes what notifications are held to; pacing and receipt numbers stay. Meanwhile they go to user space.
// The answers' CNPs are built already: when more than the policy changes, Put them anew.
func (t *Translator) SetPolicy(p Policy) error {
	if err := p.Validate(); err != nil {
		return err
	}
	interval := (int64(time.Second) + int64(p.TotalPerSecond) - 1) / int64(p.TotalPerSecond) // as pace.Bucket has it
	next := translatePolicy{
		Sample: uint32(p.RecordOneIn), Window: uint64(p.Window), PerSecond: uint32(p.PerSecond),
		Interval: uint64(interval), Depth: uint64(interval) * uint64(p.TotalBurst),
		MinTtl: p.MinTTL,
	}
	next.Port, next.Port2 = networkOrder(p.Port), networkOrder(p.PortFormat2)
	if p.OwnIPv4.IsValid() {
		next.Own4, next.Families = p.OwnIPv4.As4(), hasIPv4
	}
	if p.OwnIPv6.IsValid() {
		next.Own6 = p.OwnIPv6.As16()
		next.Families |= hasIPv6
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	fail := func(what string, err error) error {
		return fmt.Errorf("kernel translator: policy: %s: %w", what, err)
	}
	if t.closed {
		return fail("write", ErrClosed)
	}
	if err := t.write(t.policy, false); err != nil {
		return fail("suspend", err)
	}
	if t.policy.Depth == 0 { // the first one: the bucket is full
		if err := t.changeTotal(func(total *translateTotal) { total.Credit = next.Depth }); err != nil {
			return fail("total", err)
		}
	}
	if err := t.write(next, false); err != nil {
		return fail("write", err)
	}
	t.policy = next
	for i, set := range [][]netip.Prefix{p.AcceptFrom, p.Served} {
		if err := t.prefixes[i].set(set); err != nil {
			return fail("prefixes", err)
		}
	}
	if err := t.write(next, t.enabled); err != nil {
		return fail("resume", err)
	}
	return nil
}

// write puts a policy in the map. The caller holds the lock.
func (t *Translator) write(p translatePolicy, enabled bool) error {
	if enabled {
		p.Enabled = 1
	}
	return t.maps.Policies.Update(uint32(0), &p, ebpf.UpdateAny)
}

// SetEnabled puts the policy in force, or lets all notifications go to user space. It is in force when it returns.
func (t *Translator) SetEnabled(on bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fmt.Errorf("kernel translator: enable: %w", ErrClosed)
	}
	if on && t.policy.Depth == 0 {
		return fmt.Errorf("kernel translator: enable: there is no policy")
	}
	if err := t.write(t.policy, on); err != nil {
		return fmt.Errorf("kernel translator: enable: %w", err)
	}
	t.enabled = on
	return nil
}

// networkOrder gives the number whose octets in memory are v's on the wire.
func networkOrder(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}
