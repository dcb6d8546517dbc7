package kernel

import (
	"testing"

	"pncd/dataplane/bpf/bpftest"
)

func TestObjectsAreOfTheSource(t *testing.T) { bpftest.Objects(t, "learn") }

func TestObjectsAreWhatClangMakes(t *testing.T) { bpftest.Compiled(t, "learn") }
