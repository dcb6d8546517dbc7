package ctl

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func makeFIFO(t *testing.T) string {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	return fifo
}

func TestBundleIsWrittenThroughAPipe(t *testing.T) {
	_, env := sample(t)
	fifo := makeFIFO(t)
	read := make(chan []byte, 1)
	go func() { // opens when the writer does
		data, err := os.ReadFile(fifo)
		if err != nil {
			t.Error(err)
		}
		read <- data
	}()
	status, _, errs := pncctl(t, env, "support-bundle", "-o", fifo)
	if status != 0 || errs != "" {
		t.Errorf("exit status %d, errors %q", status, errs)
	}
	if files := readBundle(t, <-read); !strings.Contains(files["status.json"], "pe1") {
		t.Errorf("status.json = %q", files["status.json"])
	}
	if st, err := os.Lstat(fifo); err != nil || st.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe has become %v (%v)", st.Mode(), err)
	}
}

func TestBundleForAPipeThatNobodyReadsEndsWithAnInterrupt(t *testing.T) {
	fifo := makeFIFO(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := writeFile(ctx, fifo, func(io.Writer) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "nobody reads the pipe") {
		t.Errorf("error = %v", err)
	}
}

// As root a device could be replaced by a file of its name.
func TestBundleIsWrittenToADeviceAndDoesNotReplaceIt(t *testing.T) {
	_, env := sample(t)
	device := "/dev/null"
	if os.Geteuid() == 0 {
		own := filepath.Join(t.TempDir(), "null")
		if err := syscall.Mknod(own, syscall.S_IFCHR|0o600, 1<<8|3); err == nil { // may be forbidden in a container
			if f, err := os.OpenFile(own, os.O_WRONLY, 0); err == nil { // and so may devices on this file system
				_ = f.Close()
				device = own
			}
		}
	}
	if device == "/dev/null" && os.Geteuid() == 0 {
		t.Log("a device of our own cannot be made; /dev/null stands for it")
	}
	before, err := os.Lstat(device)
	if err != nil {
		t.Fatal(err)
	}
	status, _, errs := pncctl(t, env, "support-bundle", "-o", device)
	after, err := os.Lstat(device)
	if err != nil {
		t.Fatal(err)
	}
	if status != 0 || errs != "" || after.Mode() != before.Mode() || !os.SameFile(before, after) {
		t.Errorf("exit status %d, errors %q, mode %v, was %v", status, errs, after.Mode(), before.Mode())
	}
}

func TestBundleRefusesASymbolicLinkAndLeavesItAndItsTarget(t *testing.T) {
	_, env := sample(t)
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": target, "dangling": filepath.Join(dir, "none")} {
		link = filepath.Join(dir, link)
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		status, _, errs := pncctl(t, env, "support-bundle", "-o", link)
		if status != exitFailed || !strings.Contains(errs, link+" is a symbolic link to "+to) {
			t.Errorf("exit status %d, errors %q", status, errs)
		}
		if got, err := os.Readlink(link); err != nil || got != to {
			t.Errorf("the link leads to %q (%v), want %q", got, err, to)
		}
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "precious" {
		t.Errorf("the target holds %q (%v)", got, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "none")); err == nil {
		t.Error("the dangling link's target was made")
	}
}

func TestBundleReplacesARegularFileOfALooserModeAsAWhole(t *testing.T) {
	_, env := sample(t)
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := pncctl(t, env, "support-bundle", "-o", file); status != 0 || errs != "" {
		t.Fatalf("exit status %d, errors %q", status, errs)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	readBundle(t, data)
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v), want 0600", st.Mode(), err)
	}
}
