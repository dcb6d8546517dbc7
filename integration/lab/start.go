package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// startProgram starts what image and cmd of a node say.
func (l *Lab) startProgram(ctx context.Context, def *Node) error {
	if def.Kind != kindLinux {
		return nil
	}
	if def.StartupDelay > 0 {
		t := time.NewTimer(time.Duration(def.StartupDelay) * time.Second)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	pr, err := programFor(def)
	if err != nil {
		return err
	}
	if pr.frr && def.Cmd == "" && def.Entrypoint == "" {
		return l.startFRR(ctx, def)
	}
	argv, err := pr.argv(def)
	if err != nil || len(argv) == 0 {
		return err
	}
	if argv[0], err = l.find(argv[0], pr.pkg); err != nil {
		return err
	}
	if pr.notifies && def.Cmd == "" && def.Entrypoint == "" {
		return l.startNotifying(ctx, def, Proc{Argv: argv})
	}
	return l.startOwn(ctx, def, Proc{Argv: argv})
}

func (l *Lab) startOwn(ctx context.Context, def *Node, pr Proc) error {
	p, err := l.Start(ctx, def.Name, pr)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.programs[def.Name] = append(l.programs[def.Name], p)
	l.mu.Unlock()
	return nil
}

// startFRR starts FRR's daemons one by one in the foreground, as its own image does in the
// background: zebra and staticd, then those that /etc/frr/daemons switches on (bgpd alone when the node has no
// such file), then applies /etc/frr/frr.conf through vtysh.
func (l *Lab) startFRR(ctx context.Context, def *Node) error {
	daemons, err := l.frrDaemons(def)
	if err != nil {
		return err
	}
	for _, d := range daemons {
		path, err := l.find(d, "frr")
		if err != nil {
			return err
		}
		argv := []string{path, "-A", "127.0.0.1", "--log", "stdout", "--log-level", "informational"}
		if d == "zebra" {
			argv = append(argv, "-s", "90000000") // netlink receive buffer, as Debian's default
		}
		if err := l.startOwn(ctx, def, Proc{Argv: argv}); err != nil {
			return err
		}
		socket := filepath.Join(l.RunDir(def.Name), "frr", d+".vty")
		wait, cancel := context.WithTimeout(ctx, 20*time.Second)
		err = l.WaitFor(wait, func(context.Context) error {
			c, err := net.Dial("unix", socket)
			if err != nil {
				return err
			}
			return c.Close()
		})
		cancel()
		if err != nil {
			return fmt.Errorf("%s does not answer: %w", d, err)
		}
	}
	for _, b := range def.Binds {
		if b.Target == "/etc/frr/frr.conf" || b.Target == "/etc/frr" {
			if _, err := l.Exec(ctx, def.Name, "vtysh", "-b"); err != nil {
				return fmt.Errorf("apply frr.conf: %w", err)
			}
			break
		}
	}
	return nil
}

// frrDaemons reads the switches of /etc/frr/daemons (bgpd=yes).
func (l *Lab) frrDaemons(def *Node) ([]string, error) {
	names := []string{"zebra", "staticd"}
	var text string
	for _, b := range def.Binds {
		path := ""
		switch b.Target {
		case "/etc/frr/daemons":
			path = b.Source
		case "/etc/frr":
			path = filepath.Join(b.Source, "daemons")
		}
		if path == "" {
			continue
		}
		t, err := os.ReadFile(path)
		if err != nil {
			if os.IsNotExist(err) && b.Target == "/etc/frr" {
				continue
			}
			return nil, fmt.Errorf("read daemons: %w", err)
		}
		text = string(t)
	}
	if text == "" {
		return append(names, "bgpd"), nil
	}
	for _, line := range strings.Split(text, "\n") {
		name, on, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && on == "yes" && strings.HasSuffix(name, "d") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}
