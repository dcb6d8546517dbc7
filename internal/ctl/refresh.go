package ctl

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	pncv1 "pncd/api/pnc/v1"
)

func (a *app) refreshCommand() *cobra.Command {
	var out, both bool
	cmd := &cobra.Command{
		Use:               "refresh ADDRESS",
		Short:             "Ask a BGP neighbour for its routes again, or send it ours; the session stays",
		Args:              needs("ADDRESS"),
		ValidArgsFunction: a.completeNeighbors,
		RunE: a.run(func(ctx context.Context, args []string) error {
			req := &pncv1.RefreshNeighborRequest{Address: args[0], Direction: pncv1.RefreshDirection_REFRESH_DIRECTION_IN}
			what := "asked for its routes"
			switch {
			case out && both:
				return usagef("give either --out or --both")
			case out:
				req.Direction, what = pncv1.RefreshDirection_REFRESH_DIRECTION_OUT, "gets our announcements"
			case both:
				req.Direction, what = pncv1.RefreshDirection_REFRESH_DIRECTION_BOTH, "asked for its routes, and gets our announcements"
			}
			res, err := ask(ctx, a, pncv1.NewNodeServiceClient, pncv1.NodeServiceClient.RefreshNeighbor, req)
			if err != nil {
				return err
			}
			return a.show(res, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s %s again: %s\n", args[0], what, strings.Join(res.GetFamilies(), ", "))
				return err
			})
		}),
	}
	cmd.Flags().BoolVar(&out, "out", false, "send it our announcements instead")
	cmd.Flags().BoolVar(&both, "both", false, "both")
	return cmd
}
