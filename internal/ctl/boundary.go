package ctl

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	pncv1 "pncd/api/pnc/v1"
)

func (a *app) boundaryCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "boundary", Short: "Show the border filter: show", RunE: needSubcommand}
	cmd.AddCommand(view(a, "show", "Show the border filter's tables in the kernel, as nft does", a.boundary, boundaryText))
	return cmd
}

func (a *app) boundary(ctx context.Context) (*pncv1.GetBoundaryResponse, error) {
	return ask(ctx, a, pncv1.NewNodeServiceClient, pncv1.NodeServiceClient.GetBoundary, &pncv1.GetBoundaryRequest{})
}

// boundaryText prints what nft would, and before it as comments what it would not know.
func boundaryText(w io.Writer, r *pncv1.GetBoundaryResponse) error {
	var b strings.Builder
	if !r.GetConfigured() {
		b.WriteString("# the border filter is not configured\n")
	}
	if e := r.GetError(); e != "" {
		fmt.Fprintf(&b, "# error: %s\n", e)
	}
	for _, l := range r.GetLacks() {
		fmt.Fprintf(&b, "# %s\n", l)
	}
	for _, name := range r.GetAbsentInterfaces() {
		fmt.Fprintf(&b, "# there is no interface %s; its rules follow when it appears\n", name)
	}
	if n := r.GetMended(); n > 0 {
		fmt.Fprintf(&b, "# put back %d times after somebody else's change\n", n)
	}
	b.WriteString(r.GetRuleset())
	_, err := io.WriteString(w, b.String())
	return err
}
