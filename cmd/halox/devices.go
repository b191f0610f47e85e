package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo"
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
			s, err := openSession(cmd.Context(), configs.Devices{Backend: configs.Auto}, out)
			if err != nil {
				return err
			}
			if err := errors.Join(listDevices(out, s), s.Close()); err != nil || s.Devices[0].HostMemory {
				return err
			}
			fmt.Fprintln(out)
			host, err := halo.Open(cmd.Context(), halo.Devices{Backend: streams.Host})
			if err != nil {
				return err
			}
			return errors.Join(listDevices(out, host), host.Close())
		},
	}
}

// maxHostRows is how many host devices are listed; they are all alike.
const maxHostRows = 8

// listDevices prints the devices of one backend and, for GPUs, a matrix of
// their links.
func listDevices(out io.Writer, s *halo.Session) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "device\tname\tmemory\tarch\tPCI bus id\tcores")
	for i, d := range s.Devices {
		if d.HostMemory && i == maxHostRows {
			fmt.Fprintf(w, "... to host %d\n", len(s.Devices)-1)
			break
		}
		fmt.Fprintf(w, "%s %d\t%s\t%.1f GiB\t%s\t%s\t%d\n", d.Backend, d.ID, d.Name, float64(d.Memory)/(1<<30), orDash(d.Arch), orDash(d.PCIBusID), d.Cores)
	}
	if err := w.Flush(); err != nil || s.Devices[0].HostMemory || len(s.Devices) < 2 {
		return err
	}
	return listLinks(out, s.Devices, s.Links)
}

// listLinks prints how each pair of GPUs is linked and whether peer access
// works over the link, tried with data.
func listLinks(out io.Writer, devices []*streams.Device, links *p2p.Links) error {
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
