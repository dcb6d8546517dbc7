package translator

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// sumErrors reads how many UDP datagrams with wrong checksums a network namespace got, over all of its
// sockets and ports (InCsumErrors of proc_net_snmp).
type sumErrors struct {
	file           *os.File // of the namespace in which it was opened
	prefix, column string
	buf            []byte
	last           uint64
}

func openSumErrors(v4 bool) (*sumErrors, error) {
	s := &sumErrors{prefix: "Udp6InCsumErrors", buf: make([]byte, 32<<10)}
	path := "/proc/thread-self/net/snmp6"
	if v4 {
		path, s.prefix, s.column = "/proc/thread-self/net/snmp", "Udp:", "InCsumErrors"
	}
	var err error
	if s.file, err = os.Open(path); err != nil {
		return nil, err
	}
	if _, err := s.take(); err != nil {
		return nil, errors.Join(err, s.file.Close())
	}
	return s, nil
}

// take gives how many came since the last call.
func (s *sumErrors) take() (uint64, error) {
	n, err := s.file.ReadAt(s.buf, 0)
	if err != nil && err != io.EOF {
		return 0, err
	}
	v, err := parseCounter(s.buf[:n], s.prefix, s.column)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.file.Name(), err)
	}
	grown := v - s.last
	s.last = v
	return grown, nil
}

func (s *sumErrors) close() error { return s.file.Close() }

// parseCounter reads one counter from /proc/net/snmp, where a line of names is followed by one of
// values, or, with an empty column, from /proc/net/snmp6, where each line has one name and value.
func parseCounter(b []byte, prefix, column string) (uint64, error) {
	var names []string
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		f := strings.Fields(sc.Text())
		switch {
		case len(f) < 2 || f[0] != prefix:
		case column == "":
			return strconv.ParseUint(f[1], 10, 64)
		case names == nil:
			names = f
		default:
			for i := range min(len(names), len(f)) {
				if names[i] == column {
					return strconv.ParseUint(f[i], 10, 64)
				}
			}
		}
	}
	return 0, fmt.Errorf("no counter %s %s", prefix, column)
}
