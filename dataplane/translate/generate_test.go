package translate

import (
	"testing"

	"pncd/dataplane/bpf/bpftest"
)

func TestObjectsAreOfTheSource(t *testing.T) { bpftest.Objects(t, "translate") }

func TestObjectsAreWhatClangMakes(t *testing.T) { bpftest.Compiled(t, "translate") }
