package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"pncd/integration/lab"
)

func labCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Bring topologies up and down",
		Long: "Realises a containerlab topology file on network namespaces and veth pairs. Needs root.\n" +
			"The programs that images stand for must be installed: see `pnclab lab inspect FILE`.",
		Args: cobra.NoArgs,
		RunE: needsSubcommand,
	}
	cmd.AddCommand(labRunCommand(), labUpCommand(), labDownCommand(), labInspectCommand(), labListCommand())
	return cmd
}

// labRunCommand keeps the lab up in the foreground; `lab up` starts the same in the background.
func labRunCommand() *cobra.Command {
	var dir string
	var removeDir bool
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Bring a topology up until interrupted, then take it down",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			topo, err := lab.Load(args[0])
			if err != nil {
				return usageError{err}
			}
			for _, line := range topo.Ignored {
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), line)
			}
			opt := lab.Options{Dir: dir, RemoveDir: true, Log: logger(cmd)}
			if removeDir {
				opt.Temporary = []string{dir}
			}
			err = lab.Run(cmd.Context(), topo, opt, func(ctx context.Context, l *lab.Lab) error {
				_, _ = fmt.Fprintf(cmd.OutOrStdout(), "lab %s is up; logs in %s; interrupt to take it down\n", l.Name, l.Dir())
				<-ctx.Done()
				return nil
			})
			if errors.Is(err, context.Canceled) {
				return errors.New("interrupted before the lab was up")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", dirHelp)
	cmd.Flags().BoolVar(&removeDir, "remove-dir", false, "remove --dir with the lab")
	_ = cmd.Flags().MarkHidden("remove-dir") // for `lab up`, which makes the folder before the lab is there
	return cmd
}

const dirHelp = "folder of logs, which is kept; when empty, a temporary one that goes with the lab"

func labUpCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "up FILE",
		Short: "Bring a topology up and leave it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			topo, err := lab.Load(args[0])
			if err != nil {
				return usageError{err}
			}
			return background(cmd, topo, dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", dirHelp)
	return cmd
}

// mostLog is how much of a failed lab's log is shown.
const mostLog = 1 << 20

// background starts `lab run` in a session of its own and waits until the lab is up, or has failed.
func background(cmd *cobra.Command, topo *lab.Topology, dir string) (err error) {
	args := []string{"lab", "run", "--verbose"}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "pncd-lab-"); err != nil {
			return err
		}
		args = append(args, "--remove-dir")
		defer func() {
			if err != nil { // the runner may have failed before the folder was its own
				_ = os.RemoveAll(dir)
			}
		}()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	logFile, err := os.Create(filepath.Join(dir, "lab.log"))
	if err != nil {
		return err
	}
	defer func() { _ = logFile.Close() }()
	keeper := exec.Command("/proc/self/exe", append(args, "--dir", dir, topo.File)...)
	keeper.Stdout, keeper.Stderr = logFile, logFile
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := keeper.Start(); err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- keeper.Wait() }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			text, _ := io.ReadAll(io.NewSectionReader(logFile, 0, mostLog)) // by its name it may be gone
			return fmt.Errorf("the lab did not come up: %w\n%s", err, text)
		case <-cmd.Context().Done():
			_ = keeper.Process.Signal(syscall.SIGTERM)
			<-ended
			return errors.New("interrupted; the lab is down again")
		case <-tick.C:
		}
		s, ok, err := find(topo.Name)
		if err != nil {
			_ = keeper.Process.Signal(syscall.SIGTERM)
			<-ended
			return err
		}
		if ok && s.Ready && s.Owner.PID == keeper.Process.Pid {
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "lab %s is up (pid %d); logs in %s; take it down with `pnclab lab down %s`\n",
				topo.Name, keeper.Process.Pid, dir, topo.Name)
			return nil
		}
	}
}

// isFile tells a topology file from the name of a lab.
func isFile(arg string) bool {
	st, err := os.Stat(arg)
	return err == nil && !st.IsDir()
}

func find(name string) (lab.State, bool, error) {
	states, err := lab.Labs("")
	if err != nil {
		return lab.State{}, false, err
	}
	for _, s := range states {
		if s.Lab == name {
			return s, true, nil
		}
	}
	return lab.State{}, false, nil
}

// downPatience bounds how long a lab may take to go down.
const downPatience = 30 * time.Second

func labDownCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down FILE|NAME",
		Short: "Take a lab down, or remove what a killed one left",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if isFile(name) {
				topo, err := lab.Load(name)
				if err != nil {
					return usageError{err}
				}
				name = topo.Name
			}
			s, ok, err := find(name)
			if err != nil {
				return err
			}
			if !ok {
				return fmt.Errorf("no lab %q is up; `pnclab lab list` shows those that are", name)
			}
			if s.Owner.Alive() {
				if err := syscall.Kill(s.Owner.PID, syscall.SIGTERM); err != nil {
					return fmt.Errorf("stop process %d: %w", s.Owner.PID, err)
				}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), downPatience)
			defer cancel()
			if err := waitGone(ctx, s.Owner); err != nil {
				return err
			}
			if err := lab.Recover("", logger(cmd)); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "lab %s is down\n", name)
			return err
		},
	}
}

func waitGone(ctx context.Context, owner lab.Ident) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for owner.Alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d does not end: %w", owner.PID, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

func labListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the labs that are up, and those that a kill left behind",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			states, err := lab.Labs("")
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			_, _ = fmt.Fprintln(w, "LAB\tPID\tSTATE\tSINCE\tDIRECTORY")
			for _, s := range states {
				_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", s.Lab, s.Owner.PID, stateOf(&s), s.StartedAt.Format(time.RFC3339), s.Dir)
			}
			return w.Flush()
		},
	}
}
