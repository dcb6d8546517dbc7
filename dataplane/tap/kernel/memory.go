package kernel

import (
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// sharedMemory is the memory of a map, which whoever has the map and this side share: each sees what the other writes, and
// none waits.
type sharedMemory struct {
	mu     sync.RWMutex
	memory []byte // nil when closed; mu is held for an access
	what   string // for errors
}

func (s *sharedMemory) open(m *ebpf.Map, what string) (err error) {
	s.what = what
	if s.memory, err = unix.Mmap(m.FD(), 0, int(m.ValueSize())*int(m.MaxEntries()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("kernel tap: %s: map its memory: %w", what, Explain(err))
	}
	return nil
}

// close unmaps the memory: without that the kernel keeps the map.
func (s *sharedMemory) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.memory
	s.memory = nil
	if err := unix.Munmap(b); err != nil {
		return fmt.Errorf("kernel tap: %s: unmap: %w", s.what, err)
	}
	return nil
}
