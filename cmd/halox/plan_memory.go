package main

import (
	"context"
	"fmt"
	"io"

	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// memory returns what a run holds on each device.
func (w *setup) memory(ctx context.Context) ([]scheme.Memory, error) {
	o := solverOptions(w.config)
	o.Scheme = w.scheme
	return solvers.DryRun(ctx, w.problem, w.plan, w.session.Compiler, o)
}

// printMemory writes what devices hold in a run and what they have, and the same of the host.
func printMemory(out io.Writer, all []scheme.Memory) error {
	host, err := all[0].Device.HostMemoryInfo()
	if err != nil {
		return err
	}
	var failed error
	own := int64(0)
	table(out, "memory of a run in bytes", "device\tfield\tbeside it\tpinned on the host\tfree\ttotal", func(t io.Writer) {
		for _, m := range all {
			free, total, err := m.Device.MemoryInfo()
			if err != nil {
				failed = err
			}
			own += m.Pinned
			if m.Device.HostMemory {
				own += m.Variables + m.Extra
			}
			fmt.Fprintf(t, "%v\t%d\t%d\t%d\t%s\t%s\n", m.Device, m.Variables, m.Extra, m.Pinned, sizeOf(free, total), sizeOf(total, total))
		}
		fmt.Fprintf(t, "the host\t\t\t%d\t%s\t%s\n", own, sizeOf(host.Free, host.Total), sizeOf(host.Total, host.Total))
	})
	if host.Source != "" {
		fmt.Fprintf(out, "what is free on the host is %s\n", host.Source)
	}
	return failed
}

// sizeOf writes a number of bytes, "-" where the total is not known.
func sizeOf(bytes, total int64) string {
	if total == 0 {
		return "-"
	}
	return streams.Size(bytes)
}
