package lab

import (
	"strings"
	"testing"
)

// Any text gives a topology whose parts fit together, or an error that names the file and, but for broken
// YAML, a line.
func FuzzParse(f *testing.F) {
	f.Add(small)
	f.Add("name: x\ntopology: {defaults: &d {kind: linux, image: frr}, nodes: {a: *d, b: {<<: *d, cmd: 'x \"y\"'}}}")
	f.Add("name: x\ntopology:\n  nodes:\n    a: {kind: bridge}\n    b: {kind: linux, image: pncd, network-mode: 'container:a'}\n")
	f.Add("name: x\ntopology: {nodes: {a: &n {kind: linux, <<: *n}}}")
	f.Fuzz(func(t *testing.T, text string) {
		topo, err := Parse("/dir/t.yml", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "t.yml:") {
				t.Errorf("the error names no file: %v", err)
			}
			return
		}
		for _, l := range topo.Links {
			for _, e := range []Endpoint{l.A, l.B} {
				if topo.Node(e.Node) == nil {
					t.Errorf("link to %s, which is no node", e)
				}
			}
		}
		for _, n := range topo.Nodes {
			if n.Kind == kindLinux {
				if _, err := programFor(n); err != nil {
					t.Errorf("node %s was accepted: %v", n.Name, err)
				}
			}
		}
	})
}
