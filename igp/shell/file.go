package shell

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// File is a socket in the runtime's poller, so that a read ends when it is closed.
type File struct {
	file *os.File
	raw  syscall.RawConn
	over atomic.Bool
}

// ErrClosed is what a read gets from a socket that was closed.
var ErrClosed = errors.New("the socket is closed")

// sendTimeout bounds how long a full queue holds the speaker up.
const sendTimeout = 100 * time.Millisecond

// NewRawSocket opens a socket that does not block. An error says which capability is missing.
func NewRawSocket(name string, domain, typ, protocol int) (*File, error) {
	fd, err := unix.Socket(domain, typ|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		if errors.Is(err, unix.EPERM) {
			return nil, fmt.Errorf("%w (the capability CAP_NET_RAW is missing)", err)
		}
		return nil, err
	}
	f := &File{file: os.NewFile(uintptr(fd), name)}
	if f.raw, err = f.file.SyscallConn(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close makes waiting reads return ErrClosed.
func (f *File) Close() {
	f.over.Store(true)
	_ = f.file.Close()
}

// SetReadDeadline is that of os.File.
func (f *File) SetReadDeadline(at time.Time) error { return f.file.SetReadDeadline(at) }

// Control gives the descriptor to a function, unless the socket is closed.
func (f *File) Control(do func(fd int) error) (err error) {
	cerr := f.raw.Control(func(fd uintptr) { err = do(int(fd)) })
	return errors.Join(cerr, err)
}

// Read waits until a system call that reads has something to say.
func (f *File) Read(call func(fd int) error) (err error) {
	if rerr := f.raw.Read(func(fd uintptr) bool { return finished(&err, call, fd) }); rerr != nil {
		if f.over.Load() {
			return ErrClosed // that of a raw read on a closed file has no name to match
		}
		return rerr
	}
	return err
}

// Write waits until a system call that writes is done, but not long: what doesn't fit the queue is lost, as on any
// wire.
func (f *File) Write(call func(fd int) error) (err error) {
	_ = f.file.SetWriteDeadline(time.Now().Add(sendTimeout))
	if werr := f.raw.Write(func(fd uintptr) bool { return finished(&err, call, fd) }); werr != nil {
		return werr
	}
	return err
}

// finished makes a system call, and reports whether it did not have to wait.
func finished(err *error, call func(fd int) error, fd uintptr) bool {
	for {
		*err = call(int(fd))
		if !errors.Is(*err, unix.EINTR) {
			return !errors.Is(*err, unix.EAGAIN)
		}
	}
}
