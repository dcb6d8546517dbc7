package integration

import (
	"context"
	"fmt"
	"testing"

	"pncd/integration/bed"
	"pncd/internal/labtraffic"
)

// A swap of the two QPs would pass with equal numbers: here they differ, and no MAD names them.
func TestGeneratedPairsWithoutCMAreLearnedAndEachHalfGetsItsCNP(t *testing.T) {
	for _, c := range []struct {
		name   string
		family int
		cfg    labtraffic.GeneratorConfig
	}{
		{"one pair by the port formula", 4, labtraffic.GeneratorConfig{Rate: 400, Flows: labtraffic.FlowConfig{
			LocalQPN: 0x000321, PeerQPN: 0x0AB654, Both: true, Packets: 2, Seed: 1}}},
		{"eight pairs over IPv6, READ", 6, labtraffic.GeneratorConfig{Rate: 800, Flows: labtraffic.FlowConfig{
			QPs: 8, LocalQPN: 0x000400, PeerQPN: 0x001000, QPNStep: 3, Both: true, Packets: 3, Operation: labtraffic.OpRead, Seed: 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := bothWays(t)
			if c.family == 6 {
				files = bothWays6(t)
			}
			b, p := upBed(t, files), bed.PlanFor(c.family)
			atSender, atReceiver := markBothWays(t, b, p)
			g, _ := generate(t, b, p, c.cfg)
			var own, peers []uint32
			for _, pair := range g.Pairs() {
				waitLearned(t, b, p.Sender, p.Receiver, pair.PeerQPN, pair.LocalQPN)
				waitLearned(t, b, p.Receiver, p.Sender, pair.LocalQPN, pair.PeerQPN)
				own, peers = append(own, pair.LocalQPN), append(peers, pair.PeerQPN)
			}
			wait(t, b, "a CNP for each QP", func(context.Context) error {
				got, err := atSender.check(p.Receiver, p.Sender, own...)
				if err != nil {
					t.Fatal(err)
				}
				back, err := atReceiver.check(p.Sender, p.Receiver, peers...)
				if err != nil {
					t.Fatal(err)
				}
				if got < len(own) || back < len(peers) {
					return fmt.Errorf("%d of %d QPs at the sender, %d of %d at the receiver", got, len(own), back, len(peers))
				}
				return nil
			})
		})
	}
}

func bothWays6(t *testing.T) map[string]string {
	t.Helper()
	files := edited(t, "proxy.pncd.yaml", "  accept_from:", `    - prefix: fd00:2::/64
      mode: originate
      next_hop: fd00:255::1
  accept_from:`)
	for name, text := range edited(t, "congestion.pncd.yaml", "interfaces: [eth2]", "interfaces: [eth1, eth2]") {
		files[name] = text
	}
	return files
}
