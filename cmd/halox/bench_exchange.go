package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/bench/exchange"
)

func newBenchExchangeCommand() *cobra.Command {
	var b benchFlags
	var o exchange.Options
	var count int
	cmd := &cobra.Command{
		Use:   "exchange",
		Short: "Time halo exchanges of cubes of float64, all six faces, over every path",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count < 0 {
				return fmt.Errorf("--devices %d: give a number of devices, or 0 for all", count)
			}
			return b.runTogether(cmd, &o, b.count(count), benchOutput{})
		},
	}
	f := cmd.Flags()
	f.IntVar(&count, "devices", 0, "how many devices; 0 for all")
	f.IntSliceVar(&o.Points, "points", []int{64, 128, 256}, "points a device, along each axis")
	f.IntSliceVar(&o.Radius, "radius", []int{1}, "ghost layers")
	f.IntSliceVar(&o.Fields, "fields", []int{1}, "fields exchanged together")
	f.StringSliceVar(&o.Paths, "paths", exchange.Paths(), "paths: "+strings.Join(exchange.Paths(), ", "))
	b.add(f)
	return cmd
}
