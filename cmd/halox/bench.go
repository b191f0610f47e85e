package main

import "github.com/spf13/cobra"

func newBenchCommand() *cobra.Command {
	cmd := newGroup("bench", "Measure what the devices and their links do")
	cmd.AddCommand(newBenchExchangeCommand(), newBenchPackCommand(), newBenchPingPongCommand(), newBenchLinksCommand(),
		newBenchLatencyCommand(), newBenchRanksCommand(), newBenchSweepCommand(), newBenchSchemesCommand(), newBenchScalingCommand())
	return cmd
}
