package main

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAWrongValueNamesItsFlagOnce(t *testing.T) {
	for flag, want := range map[string]string{
		"--peer foo":                  `--peer: "foo" is not an IP address`,
		"--local foo":                 `--local: "foo" is not an IP address`,
		"--ce 2":                      "--ce: 2 is not 0 to 1",
		"--qps 70000":                 "--qps: 70000 is not 1 to 65536",
		"--local-qpn 1":               "--local-qpn: 0x1 to 0x1: a QP number has 24 bits, and 0 and 1 are management's",
		"--peer-qpn 0xffffff --qps 2": "--peer-qpn: 0xffffff to 0x1000000: a QP number has 24 bits, and 0 and 1 are management's",
		"--packets -1":                "--packets: -1 is not 1 to 32768",
		"--payload 5":                 "--payload: 5 is not a multiple of 4 up to 4096",
		"--psn one":                   `--psn: "one" is not random or zero`,
		"--ports x":                   `--ports: "x" is not formula, unique, constant or unequal`,
		"--op x":                      `--op: "x" is not write, send, read or uc-write`,
		"--rate -1":                   "--rate: -1 is not 0 to 1000000 messages a second",
	} {
		cmd := root()
		cmd.SetArgs(append([]string{"generate", "--local", "192.0.2.1", "--peer", "192.0.2.2"}, strings.Fields(flag)...))
		cmd.SetOut(io.Discard)
		err := cmd.Execute()
		var usage usageError
		if !errors.As(err, &usage) || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", flag, err, want)
		}
	}
}
