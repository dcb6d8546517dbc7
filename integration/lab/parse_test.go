package lab

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestTopologyErrorsNameLineAndRule(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "t.yml:1: the file is empty"},
		{"no name", "topology: {nodes: {a: {kind: linux, image: debian}}}", `key "name" is missing`},
		{"no topology", "name: x", `key "topology" is missing`},
		{"no nodes", "name: x\ntopology: {links: []}", `t.yml:2: topology: key "nodes" is missing`},
		{"unknown top key", "name: x\nfoo: 1\ntopology: {nodes: {}}", `t.yml:2: the file: unknown key "foo"`},
		{"unknown node key", "name: x\ntopology:\n  nodes:\n    a:\n      kind: linux\n      imgae: debian\n", `t.yml:6: topology.nodes.a: unknown key "imgae"`},
		{"key given twice", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian}\n    a: {kind: bridge}\n", `t.yml:5: topology.nodes: key "a" is given on line 4 already`},
		{"mapping that merges itself", "name: x\ntopology: {nodes: {a: &n {kind: linux, <<: *n}}}\n", `t.yml:2: topology.nodes.a: merge keys (<<) nest more than 16 deep`},
		{"merge key given twice", "name: x\ntopology:\n  nodes:\n    a: &n {kind: linux, image: debian}\n    b: {<<: *n, <<: *n}\n", `key "<<" is given on line 5 already`},
		{"kind not realisable", "name: x\ntopology:\n  nodes:\n    a: {kind: ceos, image: ceos}\n", `t.yml:4: topology.nodes.a.kind: "ceos" can't be realised here`},
		{"image unknown", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: nosuch:1}\n", `t.yml:4: topology.nodes.a: image "nosuch:1": no program of this machine stands for it; known: alpine, bird`},
		{"image missing", "name: x\ntopology:\n  nodes:\n    a: {kind: linux}\n", `image is missing`},
		{"refused key", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian, startup-config: x}\n", `topology.nodes.a.startup-config: not supported here: bind a file instead`},
		{"user", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian, user: joe}\n", `programs run as root here`},
		{"env name", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian, env: {A-B: 1}}\n", `"A-B" is no valid name`},
		{"sysctl name", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian, sysctls: {'a b': 1}}\n", `"a b" is no valid name`},
		{"open quote", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian, exec: [\"echo 'a\"]}\n", `a quote or a backslash is not closed`},
		{"empty list", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian, exec: []}\n", `must be a list with at least one entry`},
		{"bind without target", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian, binds: [\"a\"]}\n", `must be source:/target`},
		{"bind option", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian, binds: [\"a:/etc/a:z\"]}\n", `option "z" must be ro or rw`},
		{"network mode", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian, network-mode: host}\n", `must be none or container:<node>`},
		{"network of nobody", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian, network-mode: 'container:b'}\n", `node "b" is not in topology.nodes`},
		{"link with one end", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian}\n  links:\n    - endpoints: [\"a:e1\"]\n", `t.yml:6: topology.links: two endpoints are needed, 1 given`},
		{"link to nobody", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian}\n  links:\n    - endpoints: [\"a:e1\", \"b:e1\"]\n", `endpoint b:e1 names a node that is not in topology.nodes`},
		{"endpoint twice", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian}\n  links:\n    - endpoints: [\"a:e1\", \"a:e2\"]\n    - endpoints: [\"a:e1\", \"a:e3\"]\n", `t.yml:7: links: endpoint a:e1 is used on line 6 already`},
		{"interface name too long", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian}\n  links:\n    - endpoints: [\"a:abcdefghijklmnop\", \"a:e2\"]\n", `1 to 15 characters`},
		{"loopback", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian}\n  links:\n    - endpoints: [\"a:lo\", \"a:e2\"]\n", `the name is taken`},
		{"mtu", "name: x\ntopology:\n  nodes:\n    a: {kind: linux, image: debian}\n  links:\n    - {endpoints: [\"a:e1\", \"a:e2\"], mtu: 20}\n", `topology.links.mtu: "20" must be 68 to 65535`},
		{"lab name", "name: a/b\ntopology: {nodes: {a: {kind: linux, image: debian}}}", `name: "a/b" must be`},
		{"not YAML", "name: [", "t.yml: yaml"},
		{"two documents", "name: x\ntopology: {nodes: {a: {kind: linux, image: debian}}}\n---\nname: y\n", "one document is expected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("/dir/t.yml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v does not hold %q", err, c.want)
			}
		})
	}
}

func TestNodeWinsOverKindOverDefaults(t *testing.T) {
	topo, err := Parse("/dir/t.yml", []byte(`
name: x
mgmt: {network: m}
topology:
  defaults: {kind: linux, image: alpine, exec: [d], env: {A: d, B: d, C: d}, binds: ["d:/etc/1", "d:/etc/2"]}
  kinds:
    linux: {image: debian:12, exec: [k], env: {B: k, C: k}, binds: ["k:/etc/2:ro"]}
  nodes:
    a:
    b: {image: "frrouting/frr:10.4.1", exec: [n], env: {C: n}, labels: {x: y}}
`))
	if err != nil {
		t.Fatal(err)
	}
	a, b := topo.Node("a"), topo.Node("b")
	if a.Image != "debian:12" || imageName(b.Image) != "frr" {
		t.Errorf("images %q, %q", a.Image, b.Image)
	}
	if want := []string{"d", "k", "n"}; !reflect.DeepEqual(b.Exec, want) {
		t.Errorf("exec %v, want %v", b.Exec, want)
	}
	if want := map[string]string{"A": "d", "B": "k", "C": "n"}; !reflect.DeepEqual(b.Env, want) {
		t.Errorf("env %v, want %v", b.Env, want)
	}
	if want := []Bind{{"/dir/d", "/etc/1", false}, {"/dir/k", "/etc/2", true}}; !reflect.DeepEqual(a.Binds, want) {
		t.Errorf("binds %v, want %v", a.Binds, want)
	}
	if len(topo.Ignored) != 2 || !strings.HasPrefix(topo.Ignored[0], "line 3: mgmt ignored: ") {
		t.Errorf("ignored keys are not reported: %q", topo.Ignored)
	}
}

func TestWordsAreSplitAsAShellDoes(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{`a  b`, []string{"a", "b"}},
		{`sh -c 'a "b" $c'`, []string{"sh", "-c", `a "b" $c`}},
		{`a "b 'c' \"d\" \n"`, []string{"a", `b 'c' "d" \n`}},
		{`a\ b ''`, []string{"a b", ""}},
	} {
		if got, err := splitWords(c.in); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.in, got, err, c.want)
		}
	}
}

func TestEveryKeyHasOneTreatment(t *testing.T) {
	for key := range ignoredNodeKeys {
		if honouredNodeKeys[key] || refusedNodeKeys[key] != "" {
			t.Errorf("%s is ignored and something else", key)
		}
	}
	for key := range refusedNodeKeys {
		if honouredNodeKeys[key] {
			t.Errorf("%s is refused and honoured", key)
		}
	}
	for key := range honouredNodeKeys {
		_, err := Parse("/dir/t.yml", []byte("name: x\ntopology: {nodes: {a: {"+key+": [[]]}}}"))
		if err == nil || strings.Contains(err.Error(), "unknown key") {
			t.Errorf("%s is said to be honoured: %v", key, err)
		}
	}
}

// publishedNodeKeys are the keys that every published version of containerlab's schema since 0.41 has
// for a node (schemas/clab.schema.json, definitions/node-config, additionalProperties false). sysctls
// is not among them, although containerlab honours it: the files here set sysctls by exec.
var publishedNodeKeys = strings.Fields(`image kind license type group startup-config startup-delay
	enforce-startup-config auto-remove exec binds ports env user entrypoint cmd publish labels runtime
	network-mode cpu memory cpu-set sandbox kernel extras config`)

func TestOurTopologiesAreValidByThePublishedSchema(t *testing.T) {
	root := filepath.Join("..")
	var files []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".clab.yml") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, err := Load(f); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range schemaProblems(t, b) {
			t.Errorf("%s: %s", f, problem)
		}
	}
}
