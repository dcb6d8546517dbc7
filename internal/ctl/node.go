package ctl

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/structpb"

	pncv1 "pncd/api/pnc/v1"
	"pncd/internal/version"
)

func (a *app) status(ctx context.Context) (*pncv1.GetStatusResponse, error) {
	return ask(ctx, a, pncv1.NewNodeServiceClient, pncv1.NodeServiceClient.GetStatus, &pncv1.GetStatusRequest{})
}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show whether the mechanism is on, whether the node is ready and for which senders, and its parts",
		Args:  needs(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			st, err := a.status(ctx)
			if err != nil {
				return err
			}
			return a.show(st, func(w io.Writer) error { return a.statusTable(w, st) })
		}),
	}
}

func (a *app) statusTable(w io.Writer, st *pncv1.GetStatusResponse) error {
	ago := func(text, age string) string {
		if age == "" {
			return text
		}
		return strings.TrimSpace(text + " (" + age + " ago)")
	}
	var roles []string
	if st.GetCongestionNode() {
		roles = append(roles, "congestion node")
	}
	if st.GetProxy() {
		roles = append(roles, "proxy")
	}
	if roles == nil {
		roles = []string{"none"}
	}
	ready := yesNo(st.GetReady())
	if !st.GetReady() && len(st.GetNotReadyReasons()) > 0 {
		ready += ": " + strings.Join(st.GetNotReadyReasons(), "; ")
	}
	config := st.GetConfigPath()
	if config != "" {
		config = ago(config+", applied "+clock(st.GetConfigAppliedAt()), a.age(st.GetConfigAppliedAt()))
	}
	if err := block(w,
		[2]string{"Node", st.GetNode()},
		[2]string{"Version", st.GetVersion()},
		[2]string{"Boot", st.GetBoot()},
		[2]string{"Started", ago(clock(st.GetStartedAt()), a.age(st.GetStartedAt()))},
		[2]string{"Configuration", config},
		[2]string{"Mechanism", mechanism(st)},
		[2]string{"Roles", strings.Join(roles, ", ")},
		[2]string{"Ready", ready},
		[2]string{"Capabilities", fmt.Sprintf("%s with a proxy (version %d)", plural(st.GetCapabilityRoutes(), "route"), st.GetCapabilityVersion())},
		[2]string{"Advertising", advertising(st)},
		[2]string{"Flows", fmt.Sprintf("%d of %d with a known source QP (version %d)", st.GetFlowsKnown(), st.GetFlowsTotal(), st.GetFlowVersion())},
	); err != nil {
		return err
	}
	fmt.Fprintln(w)
	g := newGrid(w, "PART", "STATE", "DETAIL")
	for _, p := range st.GetParts() {
		g.row(p.GetName(), enum(p.GetState()), p.GetDetail())
	}
	if err := g.flush(); err != nil {
		return err
	}
	if err := a.senderTable(w, st.GetSenders()); err != nil {
		return err
	}
	return objectTable(w, st.GetObjects())
}

func (a *app) versionCommand() *cobra.Command {
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of pncctl and of the pncd that it talks to",
		Args:  needs(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			own := version.Get().String()
			fields := map[string]any{"pncctl": own}
			var failed error
			if !clientOnly {
				var st *pncv1.GetStatusResponse
				if st, failed = a.status(ctx); failed == nil {
					fields["pncd"] = st.GetVersion()
				}
			}
			m, err := structpb.NewStruct(fields)
			if err != nil {
				return err
			}
			if err := a.show(m, func(w io.Writer) error {
				pncd, _ := fields["pncd"].(string)
				return block(w, [2]string{"pncctl", own}, [2]string{"pncd", pncd})
			}); err != nil {
				return err
			}
			return failed // our own version is shown even when pncd does not answer
		}),
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "only pncctl's own version; pncd is not asked")
	return cmd
}

func (a *app) enableCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "enable",
		Short: "Switch the mechanism on, until the next start or a reload that says otherwise",
		Args:  needs(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			res, err := ask(ctx, a, pncv1.NewNodeServiceClient, pncv1.NodeServiceClient.Enable, &pncv1.EnableRequest{})
			if err != nil {
				return err
			}
			return a.show(res, func(w io.Writer) error { return switched(w, "enabled", res.GetWasEnabled()) })
		}),
	}
}

func (a *app) disableCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "disable",
		Short: "Switch the mechanism off: capabilities withdrawn, tap and sockets closed",
		Args:  needs(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			res, err := ask(ctx, a, pncv1.NewNodeServiceClient, pncv1.NodeServiceClient.Disable, &pncv1.DisableRequest{})
			if err != nil {
				return err
			}
			return a.show(res, func(w io.Writer) error { return switched(w, "disabled", !res.GetWasEnabled()) })
		}),
	}
}

func switched(w io.Writer, now string, already bool) error {
	if already {
		now += " (it was already)"
	}
	_, err := fmt.Fprintln(w, "mechanism "+now)
	return err
}

func (a *app) reloadCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reload",
		Short: "Make pncd read its configuration file again and apply it as a whole or not at all",
		Args:  needs(),
		RunE: a.run(func(ctx context.Context, _ []string) error {
			res, err := ask(ctx, a, pncv1.NewNodeServiceClient, pncv1.NodeServiceClient.Reload, &pncv1.ReloadRequest{})
			if err != nil {
				return refusedFile{err}
			}
			return a.show(res, func(w io.Writer) error {
				lines := res.GetChanges()
				if len(lines) == 0 {
					lines = []string{"nothing changed"}
				}
				_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
				return err
			})
		}),
	}
}

func (a *app) logCommand() *cobra.Command {
	group := &cobra.Command{Use: "log", Short: "Steer pncd's log", Args: cobra.ArbitraryArgs, RunE: needSubcommand, SuggestionsMinimumDistance: 2}
	group.AddCommand(&cobra.Command{
		Use:               "level LEVEL",
		Short:             "Change the log level until the next start",
		Args:              needs("LEVEL"),
		ValidArgsFunction: cobra.FixedCompletions([]string{"error", "warning", "info", "debug", "trace"}, cobra.ShellCompDirectiveNoFileComp),
		RunE: a.run(func(ctx context.Context, args []string) error {
			res, err := ask(ctx, a, pncv1.NewNodeServiceClient, pncv1.NodeServiceClient.SetLogLevel, &pncv1.SetLogLevelRequest{Level: args[0]})
			if err != nil {
				return err
			}
			return a.show(res, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "log level %s (was %s)\n", args[0], res.GetPrevious())
				return err
			})
		}),
	})
	return group
}

// mechanism says whether the mechanism is on, and what the configuration says when that is something else.
func mechanism(st *pncv1.GetStatusResponse) string {
	onOff := func(on bool) string {
		if on {
			return "enabled"
		}
		return "disabled"
	}
	switch now, configured := onOff(st.GetEnabled()), onOff(st.GetEnabledByConfig()); {
	case st.GetStarting():
		return "starting"
	case now != configured:
		return now + " (the configuration says " + configured + ")"
	default:
		return now
	}
}
