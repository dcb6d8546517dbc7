package tcx

import (
	"testing"

	"pncd/dataplane/bpf/bpftest"
)

func TestObjectsAreOfTheSource(t *testing.T) { bpftest.Objects(t, "detect") }

func TestObjectsAreWhatClangMakes(t *testing.T) { bpftest.Compiled(t, "detect") }
