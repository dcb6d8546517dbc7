package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"pncd/integration/lab"
)

func labInspectCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect FILE|NAME",
		Short: "Show what a topology file becomes here, without making it; or a lab that is up",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			topo, state, err := topologyOf(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(topo)
			}
			return inspect(cmd.OutOrStdout(), topo, state)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "JSON")
	return cmd
}

// topologyOf reads a topology file, or that of a lab that is up, whose state comes with it.
func topologyOf(arg string) (*lab.Topology, *lab.State, error) {
	if isFile(arg) {
		topo, err := lab.Load(arg)
		if err != nil {
			return nil, nil, usageError{err}
		}
		return topo, nil, nil
	}
	s, ok, err := find(arg)
	if err != nil {
		return nil, nil, err
	}
	if !ok {
		return nil, nil, usageError{fmt.Errorf("%q is neither a file nor a lab that is up; `pnclab lab list` shows those that are", arg)}
	}
	topo, err := lab.Load(s.File)
	if err != nil {
		return nil, nil, fmt.Errorf("lab %s was made of a file that is no longer there or has changed: %w", s.Lab, err)
	}
	return topo, &s, nil
}

func inspect(out io.Writer, topo *lab.Topology, s *lab.State) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	name := topo.Name
	if s != nil {
		name = s.Lab
		_, _ = fmt.Fprintf(w, "lab %s is %s: pid %d, since %s, logs in %s, made of %s\n",
			name, stateOf(s), s.Owner.PID, s.StartedAt.Format(time.RFC3339), s.Dir, s.File)
	} else {
		_, _ = fmt.Fprintf(w, "lab %s\n", name)
	}
	_, _ = fmt.Fprintf(w, "NODE\tKIND\tIMAGE\tNAMESPACE\n")
	for _, n := range topo.Nodes {
		owner := n.Name
		if n.NetworkMode != "" {
			owner = n.NetworkMode
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\tpncd-%s-%s\n", n.Name, n.Kind, n.Image, name, owner)
	}
	_, _ = fmt.Fprintf(w, "LINK\tMTU\n")
	for _, l := range topo.Links {
		_, _ = fmt.Fprintf(w, "%s - %s\t%d\n", l.A, l.B, l.MTU)
	}
	for _, line := range topo.Ignored {
		_, _ = fmt.Fprintln(w, line)
	}
	return w.Flush()
}

// stateOf is a lab's state in a word.
func stateOf(s *lab.State) string {
	switch {
	case !s.Owner.Alive():
		return "killed"
	case s.Ready:
		return "up"
	}
	return "starting"
}
