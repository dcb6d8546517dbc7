package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"pncd/internal/labtraffic"
)

// hosts are the flags that name the two ends.
type hosts struct{ local, peer, localNetns, peerNetns string }

func (h *hosts) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&h.local, "local", "", "address of the local host (required)")
	f.StringVar(&h.peer, "peer", "", "address of the peer host (required)")
	f.StringVar(&h.localNetns, "local-netns", "", "network namespace of the local host; ours when empty")
	f.StringVar(&h.peerNetns, "peer-netns", "", "network namespace of the peer host; ours when empty")
	for _, name := range []string{"local", "peer"} {
		_ = cmd.MarkFlagRequired(name)
	}
}

func (h *hosts) parse() (l, p labtraffic.Host, err error) {
	l = labtraffic.Host{Netns: h.localNetns}
	p = labtraffic.Host{Netns: h.peerNetns}
	if l.Addr, err = netip.ParseAddr(h.local); err != nil {
		return l, p, usageError{fmt.Errorf("--local: %q is not an IP address", h.local)}
	}
	if p.Addr, err = netip.ParseAddr(h.peer); err != nil {
		return l, p, usageError{fmt.Errorf("--peer: %q is not an IP address", h.peer)}
	}
	return l, p, nil
}

func replayCommand() *cobra.Command {
	var (
		h                hosts
		file, role, ecn  string
		loop, holdClose  bool
		maxGap, duration time.Duration
	)
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Replay the RoCEv2 packets of a capture between two hosts",
		Long: "Sends the RoCEv2 packets of a capture between two lab hosts, each from its own host, with the hosts'\n" +
			"addresses (in the GIDs of a REQ too) and a right ICRC. DREQ and DREP wait for a line on standard input\n" +
			"with --hold-close. With --loop the data is repeated meanwhile, PSNs and MSNs moving on.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, p, err := h.parse()
			if err != nil {
				return err
			}
			cfg := labtraffic.ReplayConfig{Local: l, Peer: p, Loop: loop, HoldClose: holdClose, MaxGap: maxGap}
			switch ecn {
			case "keep":
			case "ect0":
				cfg.ECN = labtraffic.ECNECT0
			case "ce":
				cfg.ECN = labtraffic.ECNCE
			default:
				return usageError{fmt.Errorf("--ecn: %q is not keep, ect0 or ce", ecn)}
			}
			if role != "first" && role != "second" {
				return usageError{fmt.Errorf("--role: %q is not first or second", role)}
			}
			if cfg.Capture, err = labtraffic.ReadCapture(file, role == "second"); err != nil {
				return err
			}
			r, err := labtraffic.NewReplay(cfg)
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "replaying %d packets: %v as %v, %v as %v\n",
				cfg.Capture.Len(), cfg.Capture.Local, l.Addr, cfg.Capture.Peer, p.Addr)
			err = runTraffic(cmd, duration, holdClose || loop, r.Run, r.Close)
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "sent %d packets in %d passes\n", r.Sent(), r.Passes())
			return err
		},
	}
	h.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&file, "pcap", "", "capture file, pcap or pcapng (required)")
	f.StringVar(&role, "role", "first", "which captured host the local one plays: first (the first packet's source) or second")
	f.StringVar(&ecn, "ecn", "keep", "ECN field: keep, ect0 or ce")
	f.BoolVar(&loop, "loop", false, "repeat the data until closed")
	f.BoolVar(&holdClose, "hold-close", false, "hold DREQ and DREP back until closed")
	f.DurationVar(&maxGap, "max-gap", time.Millisecond, "longest pause between two packets")
	f.DurationVar(&duration, "duration", 0, "close after this time; zero waits for a line on standard input where there is something to wait for")
	_ = cmd.MarkFlagRequired("pcap")
	return cmd
}

func generateCommand() *cobra.Command {
	var (
		h                       hosts
		flows                   labtraffic.FlowConfig
		start, ports, operation string
		rate                    float64
		messages                uint64
		delay, duration         time.Duration
	)
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Generate RoCEv2 flows between two hosts",
		Long: "Sends RC or UC traffic of made-up queue pairs between two lab hosts, answers included, and prints the pairs.\n" +
			"Ends at a line on standard input, after --messages or after --duration.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, p, err := h.parse()
			if err != nil {
				return err
			}
			flows.Start, flows.Ports = labtraffic.PSNStart(start), labtraffic.PortRule(ports)
			flows.Operation = labtraffic.Operation(operation)
			g, err := labtraffic.NewGenerator(labtraffic.GeneratorConfig{
				Flows: flows, Local: l, Peer: p, Rate: rate, Messages: messages, AnswerDelay: delay,
			})
			if err != nil {
				return byFlag(err)
			}
			for _, pair := range g.Pairs() {
				_, _ = fmt.Fprintf(cmd.OutOrStdout(), "pair 0x%x (port %d) - 0x%x (port %d)\n",
					pair.LocalQPN, pair.LocalPort, pair.PeerQPN, pair.PeerPort)
			}
			err = runTraffic(cmd, duration, messages == 0, g.Run, g.Close)
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "sent %d messages, %d packets, %d with CE\n", g.Messages(), g.Sent(), g.Marked())
			return err
		},
	}
	h.flags(cmd)
	f := cmd.Flags()
	f.IntVar(&flows.QPs, "qps", 1, "queue pairs")
	f.Uint32Var(&flows.LocalQPN, "local-qpn", 0x111, "first QP number at the local host")
	f.Uint32Var(&flows.PeerQPN, "peer-qpn", 0xA22, "first QP number at the peer")
	f.Uint32Var(&flows.QPNStep, "qpn-step", 1, "from one pair's QP numbers to the next's")
	f.BoolVar(&flows.CM, "cm", false, "open and close the pairs by connection management")
	f.StringVar(&start, "psn", string(labtraffic.PSNRandom), "start of packet sequence numbers: random or zero")
	f.StringVar(&ports, "ports", string(labtraffic.PortsFormula), "UDP source ports: formula, unique, constant or unequal")
	f.StringVar(&operation, "op", string(labtraffic.OpWrite), "operation: write, send, read or uc-write")
	f.BoolVar(&flows.Both, "both", false, "let the peer request too")
	f.BoolVar(&flows.OneWay, "one-way", false, "leave the answers out")
	f.IntVar(&flows.Packets, "packets", 1, "packets in a message")
	f.IntVar(&flows.Payload, "payload", 1024, "octets of payload in a packet")
	f.Float64Var(&flows.CEShare, "ce", 0, "share of data packets with CE set, 0 to 1")
	f.Uint64Var(&flows.Seed, "seed", 1, "seed of sequence numbers and ports")
	f.Float64Var(&rate, "rate", 1000, "messages a second over all pairs")
	f.Uint64Var(&messages, "messages", 0, "end after so many messages; zero does not")
	f.DurationVar(&delay, "answer-delay", 100*time.Microsecond, "time from a request to its answer, at least")
	f.DurationVar(&duration, "duration", 0, "end after this time; zero does not")
	return cmd
}

// generateFlags names the flags of what labtraffic refuses.
var generateFlags = map[string]string{
	"QPs": "qps", "LocalQPN": "local-qpn", "PeerQPN": "peer-qpn", "Packets": "packets", "Payload": "payload", "CEShare": "ce",
	"Start": "psn", "Ports": "ports", "Operation": "op", "Rate": "rate",
}

// byFlag says of a value that can't be which flag it came by.
func byFlag(err error) error {
	var value *labtraffic.ValueError
	if !errors.As(err, &value) {
		return err
	}
	return usageError{fmt.Errorf("--%s: %s", generateFlags[value.Field], value.Rule)}
}

// runTraffic runs until the work ends; meanwhile a line on standard input, or the end of the duration,
// asks for an orderly close.
func runTraffic(cmd *cobra.Command, d time.Duration, waits bool, run func(context.Context) error, closeIt func()) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	var g errgroup.Group
	g.Go(func() error {
		defer cancel()
		return run(ctx)
	})
	if waits && d == 0 {
		// A read of standard input can't be ended: the process's end ends this goroutine.
		go func() {
			line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
			if err == nil || strings.TrimSpace(line) != "" {
				closeIt()
			}
		}()
	}
	if d > 0 {
		g.Go(func() error {
			t := time.NewTimer(d)
			defer t.Stop()
			select {
			case <-t.C:
				closeIt()
			case <-ctx.Done():
			}
			return nil
		})
	}
	return g.Wait()
}

func watchCommand() *cobra.Command {
	var (
		netnsName, iface string
		asJSON           bool
		count            int
	)
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print the CNPs that arrive at an interface",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := labtraffic.NewWatcher(netnsName, iface)
			if err != nil {
				return err
			}
			seen := 0
			err = w.Watch(cmd.Context(), func(c labtraffic.SeenCNP) error {
				write := c.WriteText
				if asJSON {
					write = c.WriteJSON
				}
				if err := write(cmd.OutOrStdout()); err != nil {
					return err
				}
				if seen++; count > 0 && seen >= count {
					return errEnough
				}
				return nil
			})
			if errors.Is(err, errEnough) {
				return nil
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&netnsName, "netns", "", "network namespace; ours when empty")
	f.StringVarP(&iface, "interface", "i", "", "interface (required)")
	f.BoolVar(&asJSON, "json", false, "JSON, one object a line")
	f.IntVarP(&count, "count", "c", 0, "end after so many; zero does not")
	_ = cmd.MarkFlagRequired("interface")
	return cmd
}

var errEnough = errors.New("enough")
