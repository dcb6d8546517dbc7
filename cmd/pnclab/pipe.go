package main

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// pipe is a standard stream. When nobody reads it any more (`pnclab demo | head`) it ends the context, as
// an interrupt does, so that a lab is taken down. It takes a signal.Notify for SIGPIPE, without which
// the write kills the process; that signal itself does not tell, because broken sockets raise it too.
type pipe struct {
	io.Writer
	interrupt context.CancelFunc
}

func (p pipe) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.interrupt()
	}
	return n, err
}

// readersPeriod is how long, in milliseconds, watchReaders may be late to see the end of its context.
const readersPeriod = 200

// watchReaders ends the context when nobody reads one of the streams any more, also while nothing is written
// (`pnclab lab run FILE | head -1`), and returns with the context. Files and terminals have no readers.
func watchReaders(ctx context.Context, interrupt context.CancelFunc, streams ...*os.File) {
	var fds []unix.PollFd
	for _, f := range streams {
		if st, err := f.Stat(); err == nil && st.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 {
			fds = append(fds, unix.PollFd{Fd: int32(f.Fd())}) // no events: only that the other end is closed
		}
	}
	for len(fds) > 0 && ctx.Err() == nil {
		if _, err := unix.Poll(fds, readersPeriod); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		for _, fd := range fds {
			if fd.Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
				interrupt()
			}
		}
	}
}
