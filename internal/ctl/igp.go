package ctl

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
)

// What the commands for IS-IS and OSPF have in common.

// view is a command without arguments that shows an answer, or a part of it.
func view[M proto.Message](a *app, use, short string, get func(context.Context) (M, error), table func(io.Writer, M) error, rules ...flagRule) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: a.run(func(ctx context.Context, _ []string) error {
		res, err := get(ctx)
		if err != nil {
			return err
		}
		return a.show(res, func(w io.Writer) error { return table(w, res) })
	}, rules...)}
}

// linkType is how an interface towards routers is configured.
func linkType(broadcast bool) string {
	if broadcast {
		return "broadcast"
	}
	return "point-to-point"
}

// nonzero lists counters that are not zero, by name.
func nonzero(counters map[string]uint64) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		if v := counters[name]; v > 0 {
			out = append(out, fmt.Sprintf("%s=%d", name, v))
		}
	}
	return strings.Join(out, " ")
}

// word is a name that is shown when it holds.
type word struct {
	on   bool
	name string
}

// those lists the words that hold.
func those(words ...word) string {
	var out []string
	for _, b := range words {
		if b.on {
			out = append(out, b.name)
		}
	}
	return strings.Join(out, ",")
}

// writeEntries shows entries of a database with what they hold: a line for each one's header, and the others below it.
func writeEntries[E any](w io.Writer, list []E, head func(E) string, lines func(E) []string) error {
	for i, e := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, head(e))
		for _, line := range lines(e) {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
	return nil
}
