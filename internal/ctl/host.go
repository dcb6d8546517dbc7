package ctl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	pncv1 "pncd/api/pnc/v1"
)

// objectTable lists what pncd has in the kernel.
func objectTable(w io.Writer, list []*pncv1.HostObject) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	g := newGrid(w, "KERNEL OBJECT", "NAME", "NAMESPACE", "STATE", "DETAIL")
	for _, o := range list {
		state, detail := "present", o.GetDetail()
		if o.GetError() != "" {
			state, detail = "wrong", o.GetError()
		}
		g.row(enum(o.GetKind()), o.GetName(), o.GetNamespace(), state, detail)
	}
	return g.flush()
}

func (a *app) hostChangesCommand() *cobra.Command {
	get := func(ctx context.Context) (*pncv1.ListHostChangesResponse, error) {
		return ask(ctx, a, pncv1.NewRecordServiceClient, pncv1.RecordServiceClient.ListHostChanges, &pncv1.ListHostChangesRequest{})
	}
	return view(a, "host", "Show what somebody else changed of pncd in the kernel, and what became of it", get, hostChangeTable)
}

func hostChangeTable(w io.Writer, res *pncv1.ListHostChangesResponse) error {
	g := newGrid(w, "TIME", "SEQ", "KERNEL OBJECT", "NAME", "CHANGE", "RESULT")
	for _, c := range res.GetChanges() {
		result := "put back"
		if c.GetError() != "" {
			result = "failed: " + c.GetError()
		}
		g.row(clock(c.GetAt()), number(c.GetSequence()), enum(c.GetKind()), c.GetName(), c.GetChange(), result)
	}
	return g.flush()
}
