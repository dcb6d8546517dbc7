package ctl

import (
	"strings"
	"testing"
)

func TestCompletionOffersCommandsValuesAndNeighbors(t *testing.T) {
	_, env := sample(t)
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{""}, []string{"status", "resolve", "support-bundle"}},
		{[]string{"watch", ""}, []string{"capabilities", "flows", "records"}},
		{[]string{"log", "level", ""}, []string{"debug", "info"}},
		{[]string{"neighbors", ""}, []string{"192.0.2.251\trr1", "192.0.2.252\trr2"}},
		{[]string{"status", "-o", ""}, []string{"table", "json", "yaml"}},
		{[]string{"records", "--outcome", ""}, []string{"map-miss", "translated", "no-proxy"}},
		{[]string{"counters", "--part", ""}, []string{"congestion-node", "proxy"}},
		{[]string{"ospf", ""}, []string{"neighbors", "interface", "database", "spf"}},
		{[]string{"ospf", "database", ""}, []string{"192.0.2.1", "192.0.2.9"}},
		{[]string{"ospf", "database", "--area", ""}, []string{"0.0.0.0"}},
		{[]string{"ospf", "database", "--type", ""}, []string{"extended-prefix", "e-intra-area-prefix"}},
		{[]string{"completion", ""}, []string{"bash", "zsh"}},
		{[]string{"flows", "--state", ""}, []string{"learned", "contradicted"}},
		{[]string{"advertise", "192.0.2.0/24", "--mode", ""}, []string{"inline", "path", "prefer"}},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			status, out, _ := pncctl(t, env, append([]string{"__complete"}, tt.args...)...)
			if status != 0 {
				t.Errorf("exit status %d", status)
			}
			for _, w := range tt.want {
				if !strings.Contains(out, w+"\n") && !strings.Contains(out, w+"\t") {
					t.Errorf("completion = %q, want %q in it", out, w)
				}
			}
		})
	}
}

func TestFilesAreOfferedOnlyWhereAFileIsMeant(t *testing.T) {
	const noFiles = ":4" // cobra.ShellCompDirectiveNoFileComp
	for _, tt := range []struct {
		args  string
		files bool
	}{
		{"resolve ", false}, {"advertise ", false}, {"flows ", false}, {"status ", false}, {"resolve --context ", false},
		{"status --tls-ca ", true}, {"status --socket ", true}, {"support-bundle -o ", true},
	} {
		_, out, _ := pncctl(t, nil, append([]string{"__complete"}, strings.Split(tt.args, " ")...)...)
		last := strings.Split(strings.TrimSpace(out), "\n")
		if got := last[len(last)-1] != noFiles; got != tt.files {
			t.Errorf("%q: completion = %q, files offered: %v, want %v", tt.args, out, got, tt.files)
		}
	}
}

func TestCompletionWithoutADaemonIsSilent(t *testing.T) {
	for _, line := range []string{"neighbors ", "counters --part "} {
		args := append([]string{"--socket", "/nonexistent/x", "__complete"}, strings.Split(line, " ")...)
		status, out, errs := pncctl(t, nil, args...)
		if status != 0 || strings.Contains(out, "error") || strings.Contains(errs, "pncctl:") {
			t.Errorf("%s: exit status %d, %q, %q, want nothing offered and no complaint", line, status, out, errs)
		}
	}
}

func TestCompletionScriptsAreWrittenForEachShell(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		status, out, errs := pncctl(t, nil, "completion", shell)
		if status != 0 || errs != "" || !strings.Contains(out, "pncctl") {
			t.Errorf("completion %s: exit status %d, %d octets, %q", shell, status, len(out), errs)
		}
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	a := &app{}
	for _, cmd := range a.root().Commands() {
		if cmd.Short == "" {
			t.Errorf("%s has no help", cmd.Name())
		}
		status, out, errs := pncctl(t, nil, cmd.Name(), "--help")
		if status != 0 || errs != "" || !strings.Contains(out, "Usage:") {
			t.Errorf("%s --help: exit status %d, %q, %q", cmd.Name(), status, out, errs)
		}
	}
}
