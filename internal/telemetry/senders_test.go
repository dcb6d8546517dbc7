package telemetry

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestSendersAreExportedByPrefixAndByState(t *testing.T) {
	s := Snapshot{Senders: []Sender{
		{"", "198.51.100.0/24", true, true, "announced"}, {"", "203.0.113.0/24", false, true, "losing"}, {"blue", "198.51.100.0/24", false, false, "held"},
	}}
	const want = `
# HELP pncd_proxy_announced Whether the capability of a sender prefix is to be announced: its state is announced or losing.
# TYPE pncd_proxy_announced gauge
pncd_proxy_announced{context="",prefix="198.51.100.0/24"} 1
pncd_proxy_announced{context="",prefix="203.0.113.0/24"} 1
pncd_proxy_announced{context="blue",prefix="198.51.100.0/24"} 0
# HELP pncd_proxy_prefixes Sender prefixes by where their announcement stands.
# TYPE pncd_proxy_prefixes gauge
pncd_proxy_prefixes{state="announced"} 1
pncd_proxy_prefixes{state="held"} 1
pncd_proxy_prefixes{state="losing"} 1
pncd_proxy_prefixes{state="off"} 0
pncd_proxy_prefixes{state="suppressed"} 0
pncd_proxy_prefixes{state="waiting"} 0
# HELP pncd_proxy_ready Whether this proxy can translate for a sender prefix now.
# TYPE pncd_proxy_ready gauge
pncd_proxy_ready{context="",prefix="198.51.100.0/24"} 1
pncd_proxy_ready{context="",prefix="203.0.113.0/24"} 0
pncd_proxy_ready{context="blue",prefix="198.51.100.0/24"} 0
`
	if err := testutil.CollectAndCompare(NewCollector(fixed{s}), strings.NewReader(want), "pncd_proxy_ready", "pncd_proxy_announced", "pncd_proxy_prefixes"); err != nil {
		t.Error(err)
	}
}
