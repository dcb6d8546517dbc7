package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// archiveName refuses what is surely meant as the format of other commands' output.
func archiveName(name string) error {
	switch name {
	case outputTable, outputJSON, outputYAML:
		return usagef("--output: it names the archive to write here, which is always tar.gz; for a file of the name %q say ./%s", name, name)
	}
	return nil
}

// writeFile writes a regular file as a whole or not at all, readable by its owner only. A device or a pipe
// is written to and never replaced. A symbolic link is refused: to follow it would let whoever made
// it choose what is overwritten, to replace it would surprise whoever did so on purpose.
func writeFile(ctx context.Context, name string, write func(io.Writer) error) error {
	st, err := os.Stat(name)
	switch {
	case err == nil && st.IsDir():
		return fmt.Errorf("%s is a directory", name)
	case err == nil && !st.Mode().IsRegular():
		return writeThrough(ctx, name, write)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if link, err := os.Readlink(name); err == nil {
		return fmt.Errorf("%s is a symbolic link to %s: name a file, or - for standard output", name, link)
	}
	return replaceFile(name, write)
}

func replaceFile(name string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".pncd-support-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// readerPoll is how often a named pipe is tried that nobody reads yet.
const readerPoll = 20 * time.Millisecond

// writeThrough writes to a device, a named pipe or the like. As a shell would, it waits for a pipe's reader.
func writeThrough(ctx context.Context, name string, write func(io.Writer) error) error {
	tick := time.NewTicker(readerPoll)
	defer tick.Stop()
	for {
		// O_NONBLOCK so that an interrupt ends the wait: fifo(7) gives ENXIO without a reader.
		f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			return errors.Join(write(f), f.Close())
		}
		if st, serr := os.Stat(name); !errors.Is(err, syscall.ENXIO) || serr != nil || st.Mode()&fs.ModeNamedPipe == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nobody reads the pipe %s: %w", name, ctx.Err())
		case <-tick.C:
		}
	}
}
