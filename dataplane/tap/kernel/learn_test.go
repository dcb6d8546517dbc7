package kernel

import (
	"maps"
	"testing"
	"time"

	"pncd/dataplane/roce"
	"pncd/proxyagent/flowmap"
)

// answer is what a map gave for a key at some time: connections may be closed when a capture ends.
type answer struct {
	key flowmap.Key
	qp  uint32
}

// learnAll shows packets to a map and returns all that it answered meanwhile.
func learnAll(frames []captured, of func(captured) []byte) map[answer]bool {
	m := flowmap.New(flowmap.Config{})
	keys, out := map[flowmap.Key]bool{}, map[answer]bool{}
	for _, f := range frames {
		data := of(f)
		var p roce.Packet
		if roce.ParseEthernet(data, &p) != nil {
			continue
		}
		m.Observe(&flowmap.Observation{Packet: &p, At: f.at, IfIndex: 1})
		keys[flowmap.Key{Sender: p.Src, Receiver: p.Dst, DestQP: p.BTH.DestQP}] = true
		for k := range keys {
			if e, v := m.Lookup(k, f.at); v == flowmap.Hit {
				out[answer{k, e.SourceQP}] = true
			}
		}
	}
	return out
}

// A map that is shown what the program hands up answers the same as one that is shown all. Only the packets of the DC
// capture decide nothing.
func TestCapturesGiveTheSamePairs(t *testing.T) {
	for _, name := range captures {
		t.Run(name, func(t *testing.T) {
			frames := capture(t, name)
			want := learnAll(frames, func(f captured) []byte { return f.data })
			if (len(want) == 0) != (name == "dc-negative.pcap") {
				t.Fatalf("the parser's packets give %v", want)
			}
			both(t, Config{Interval: time.Hour}, func(t *testing.T, k *Tap) {
				handed := 0
				got := learnAll(frames, func(f captured) []byte {
					if k.mode == TCX && len(f.data) < minRun {
						return nil
					}
					for _, e := range run(t, k, f.data) {
						handed++
						return e.data
					}
					return nil
				})
				if !maps.Equal(got, want) {
					t.Errorf("answers %v\nwant    %v", got, want)
				}
				t.Logf("%d answers from %d of %d frames", len(got), handed, len(frames))
			})
		})
	}
}
