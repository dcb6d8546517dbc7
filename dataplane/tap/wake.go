package tap

import (
	"context"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// signalOnEnd signals fd when ctx ends. The function it returns takes that back, and waits for a signal that
// is on its way: fd may be closed, and its number reused, right after.
func signalOnEnd(ctx context.Context, fd int) func() {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		signalWake(fd)
		close(done)
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

func signalWake(fd int) { _, _ = unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func drainWake(fd int) {
	var b [8]byte
	_, _ = unix.Read(fd, b[:])
}

func htons(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}
