package daemon

import (
	"os"
	"runtime/debug"
)

// gcPercent is how much garbage may lie beside what is in use before it is collected. A full table is mostly small
// objects that stay, and collecting took 40 % of the processor while a million prefixes came (bgp-learn-1m).
const gcPercent = 135

// SetGCPercent sets it for the process, unless the environment has GOGC. For who runs the daemon: pncd, and what
// measures it.
func SetGCPercent() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
