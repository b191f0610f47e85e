package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/solve"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

func newDevicesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "devices",
		Short:   "List the GPUs, their links, and the CPU devices",
		Example: "  halox devices\n  mpirun -n 2 halox devices",
		Long: `List the GPUs, their links, and the CPU devices.

Under mpirun it lists the devices that each process uses. With -v it prints why no GPU was found.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runTogether(cmd, func(g *processGroup, out, _ io.Writer) error {
				return showDevices(cmd.Context(), g, out)
			})
		},
	}
}

// showDevices runs the command as one of the launched processes.
func showDevices(ctx context.Context, g *processGroup, out io.Writer) (err error) {
	s, err := solve.OpenSession(ctx, halo.Devices{Processes: g.Processes}, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var r results.Record
	if err := bench.Describe(&r, s, g.Processes, s.Devices, s.Links, nil); err != nil {
		return err
	}
	if err := command.Of(ctx).PrintJSON(map[string]any{"host": r.Host, "devices": r.Devices}); err != nil {
		return err
	}
	if !g.IsAlone() {
		return listProcesses(out, s, g.Processes)
	}
	if err := listDevices(out, s); err != nil || s.Devices[0].HostMemory {
		return err
	}
	fmt.Fprintln(out)
	host, err := halo.Open(ctx, halo.Devices{Backend: streams.Host})
	if err != nil {
		return err
	}
	return errors.Join(listDevices(out, host), host.Close())
}

// listProcesses prints the devices that each process uses.
func listProcesses(out io.Writer, s *halo.Session, processes *mpi.Processes) error {
	var mine strings.Builder
	if err := listDevices(&mine, s); err != nil {
		return processes.Fail(err)
	}
	all, err := mpi.Gather(context.Background(), processes, "list the devices", mine.String())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, by %s\n", processes.Counted(), processes.Library)
	for rank, text := range all {
		fmt.Fprintf(out, "\n%s uses\n%s", processes.Name(rank), text)
	}
	return nil
}

// maxHostRows is the maximum number of CPU devices that are listed; they are identical.
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
		fmt.Fprintf(w, "%s %d\t%s\t%.1f GiB\t%s\t%s\t%d\n", d.Backend, d.ID, d.Name, float64(d.Memory)/(1<<30),
			cmp.Or(d.Arch, "-"), cmp.Or(d.PCIBusID, "-"), d.Cores)
	}
	if err := w.Flush(); err != nil || s.Devices[0].HostMemory || len(s.Devices) < 2 {
		return err
	}
	return listLinks(out, s.Devices, s.Links)
}

// listLinks prints the link of each pair of GPUs and whether peer access works over it, tested with data.
func listLinks(out io.Writer, devices []*streams.Device, links *p2p.Links) error {
	fmt.Fprintln(out, "\nlinks from row to column, and peer access, tested with data:")
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
				fmt.Fprintf(w, "\t%s peer", cmp.Or(link.Kind, "-"))
			default:
				fmt.Fprintf(w, "\t%s no peer", cmp.Or(link.Kind, "-"))
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
