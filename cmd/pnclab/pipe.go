package main

import (
	"context"
	"errors"
	"io"
	"syscall"
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
