package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

func newDevicesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "devices",
		Short: "List the GPUs, how they are linked, and the host devices",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			m, err := openMachine(configs.Devices{Backend: configs.Auto}, out)
			if err != nil {
				return err
			}
			defer m.close()
			if m.backend == streams.CUDA {
				if err := listDevices(out, m); err != nil {
					return err
				}
				fmt.Fprintln(out)
			}
			host := &machine{platform: streams.HostPlatform(hostCount(configs.Devices{})), backend: streams.Host}
			return listDevices(out, host)
		},
	}
}

// maxHostRows is how many host devices are listed; they are all alike.
const maxHostRows = 8

// listDevices prints the devices of one backend and, for GPUs, a matrix of
// their links.
func listDevices(out io.Writer, m *machine) error {
	infos := m.platform.Devices()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "device\tname\tmemory\tarch\tPCI bus id\tcores")
	for i, d := range infos {
		if d.Backend == streams.Host && i == maxHostRows {
			fmt.Fprintf(w, "... to host %d\n", len(infos)-1)
			break
		}
		fmt.Fprintf(w, "%s %d\t%s\t%.1f GiB\t%s\t%s\t%d\n", d.Backend, d.ID, d.Name, float64(d.Memory)/(1<<30), orDash(d.Arch), orDash(d.PCIBusID), d.Cores)
	}
	if err := w.Flush(); err != nil || m.backend == streams.Host || len(infos) < 2 {
		return err
	}
	return listLinks(out, m)
}

// listLinks prints how each pair of GPUs is linked and whether peer access
// works over the link, tried with data.
func listLinks(out io.Writer, m *machine) error {
	devices, err := m.platform.Open()
	if err != nil {
		return err
	}
	defer streams.CloseAll(devices)
	links, err := p2p.Discover(context.Background(), devices, m.topology())
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "\nlinks, from the row to the column, and peer access, tried with data:")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, to := range devices {
		fmt.Fprintf(w, "\t%v", to)
	}
	fmt.Fprintln(w)
	var faults []string
	for _, from := range devices {
		fmt.Fprint(w, from)
		for _, to := range devices {
			link := links.Between(from, to)
			switch {
			case link == nil:
				fmt.Fprint(w, "\t-")
			case link.Usable:
				fmt.Fprintf(w, "\t%s peer", orDash(link.Kind))
			default:
				fmt.Fprintf(w, "\t%s no peer", orDash(link.Kind))
				faults = append(faults, fmt.Sprintf("%v to %v: %s", from, to, link.Why))
			}
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range faults {
		fmt.Fprintln(out, f)
	}
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
