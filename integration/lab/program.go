package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// program is what an image stands for on this machine.
type program struct {
	// entry is the program that cmd gives arguments to; empty when the node only runs its cmd.
	entry []string
	// args are used when the node has no cmd.
	args []string
	// frr starts FRR's daemons instead: zebra and staticd first, then those that /etc/frr/daemons names.
	frr bool
	// notifies tells that the program says when it is ready (sd_notify(3)), unless the node has a cmd of its own.
	notifies bool
	// pkg is the Debian package that brings it.
	pkg string
}

// programs by the last part of the image's repository: frrouting/frr:10.4.1 is frr.
var programs = map[string]program{
	"frr":    {frr: true, pkg: "frr"},
	"bird":   {entry: []string{"bird", "-f"}, args: []string{"-c", "/etc/bird/bird.conf", "-s", "/run/bird.ctl"}, pkg: "bird2"},
	"exabgp": {entry: []string{"exabgp"}, args: []string{"/etc/exabgp/exabgp.conf"}, pkg: "exabgp"},
	"pncd":   {entry: []string{"pncd"}, args: []string{"--config", "/etc/pncd/pncd.yaml"}, notifies: true},
	"pnclab": {entry: []string{"pnclab"}},

	// Plain hosts: nothing but the node's own cmd and exec.
	"alpine":            {},
	"debian":            {},
	"ubuntu":            {},
	"netshoot":          {},
	"network-multitool": {},
}

// imageName is the last part of the repository, without tag and digest.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name := path.Base(image)
	name, _, _ = strings.Cut(name, ":")
	return name
}

// programFor picks the program of a node of kind linux.
func programFor(n *Node) (program, error) {
	if n.Image == "" {
		return program{}, fmt.Errorf("image is missing")
	}
	pr, ok := programs[imageName(n.Image)]
	if !ok {
		known := make([]string, 0, len(programs))
		for name := range programs {
			known = append(known, name)
		}
		slices.Sort(known)
		return pr, fmt.Errorf("image %q: no program of this machine stands for it; known: %s", n.Image, strings.Join(known, ", "))
	}
	return pr, nil
}

// argv is the command that starts the node's program; nil when it has none.
func (pr program) argv(n *Node) ([]string, error) {
	var argv []string
	if n.Entrypoint != "" {
		words, err := splitWords(n.Entrypoint)
		if err != nil {
			return nil, fmt.Errorf("entrypoint: %w", err)
		}
		argv = words
	} else {
		argv = slices.Clone(pr.entry)
	}
	if n.Cmd != "" {
		words, err := splitWords(n.Cmd)
		if err != nil {
			return nil, fmt.Errorf("cmd: %w", err)
		}
		return append(argv, words...), nil
	}
	if n.Entrypoint == "" {
		argv = append(argv, pr.args...)
	}
	return argv, nil
}

// find is the path of a program: as Options.Programs says, beside this program, or on PATH.
func (l *Lab) find(name, pkg string) (string, error) {
	if p, ok := l.opt.Programs[name]; ok {
		return p, nil
	}
	if strings.Contains(name, "/") {
		return name, nil
	}
	if exe, err := os.Executable(); err == nil {
		p := filepath.Join(filepath.Dir(exe), name)
		if fi, err := os.Stat(p); err == nil && !fi.IsDir() && fi.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	for _, dir := range filepath.SplitList(searchPath) {
		p := filepath.Join(dir, name)
		if fi, err := os.Stat(p); err == nil && !fi.IsDir() && fi.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	if p, err := exec.LookPath(name); err == nil {
		return p, nil
	}
	if pkg != "" {
		return "", fmt.Errorf("%s is not installed (Debian package %s)", name, pkg)
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// searchPath is PATH in nodes: Debian keeps routing daemons in the sbin folders and in FRR's own.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/frr"
