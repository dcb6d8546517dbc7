package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"pncd/integration/demo"
)

func demoCommand() *cobra.Command {
	opt := demo.Options{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show a congestion event become a CNP, and the reason for a silence",
		Long: "Builds sender - proxy router - route reflector - congestion node - receiver on network namespaces, sends\n" +
			"RoCEv2 traffic through it and shows what happens with real times. Exit status 0 only when all was seen.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opt.Family != 4 && opt.Family != 6 {
				return usageError{fmt.Errorf("--family: %d is not 4 or 6", opt.Family)}
			}
			opt.Out, opt.Log = cmd.OutOrStdout(), logger(cmd)
			return demo.Run(cmd.Context(), opt)
		},
	}
	f := cmd.Flags()
	f.IntVar(&opt.Family, "family", 4, "4 for IPv4, 6 for IPv6")
	f.StringVar(&opt.PCAP, "pcap", "", "replay the RoCEv2 packets of this capture instead of generated traffic")
	f.BoolVar(&opt.Swap, "swap", false, "with --pcap: the sender plays the captured host that did not send first")
	f.BoolVar(&opt.KeepLogs, "keep-logs", false, "keep the folder of logs and say where it is")
	f.DurationVar(&opt.Patience, "patience", 20*time.Second, "longest wait for any one step")
	return cmd
}
