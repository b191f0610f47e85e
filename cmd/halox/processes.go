package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/internal/solve"
	"github.com/halox/halox/p2p/mpi"
)

// processGroup is the processes that a launcher started together, or this single process.
type processGroup struct{ *mpi.Processes }

// runTogether runs a command as one of the processes that a launcher of MPI has started. Only rank 0 prints.
func runTogether(cmd *cobra.Command, do func(g *processGroup, out, notes io.Writer) error) error {
	ctx := cmd.Context()
	if rank, ok := mpi.Launched(); ok {
		interrupt.Together(ctx, rank == 0)
		command.Of(ctx).NoColors()
		interrupt.During(ctx, "waiting for the other processes", nil)
	}
	processes, err := mpi.Join(ctx, mpi.Options{Limit: solve.WaitLimit, Probe: probeCommand()})
	if err != nil {
		return err
	}
	out, notes := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if processes.Rank > 0 {
		out, notes = io.Discard, io.Discard
	}
	g := &processGroup{processes}
	err = do(g, out, notes)
	if lost := cache.Lost(); lost != nil {
		fmt.Fprintln(notes, lost)
	}
	return g.end(ctx, err)
}

// checkAlone returns an error if there are several processes, for a command that only one can run.
func (g *processGroup) checkAlone(what, why string) error {
	if g.IsAlone() {
		return nil
	}
	return command.As(command.Usage, fmt.Errorf("%s: must be one process, got %d: %s", what, g.Size(), why))
}

// speaks reports whether this process prints and writes, as rank 0 does.
func (g *processGroup) speaks() bool { return g.Rank == 0 }

// config returns on all processes the config that rank 0 has read.
func (g *processGroup) config(
	ctx context.Context, read func() (*configs.Run, error),
) (c *configs.Run, err error) {
	if g.IsAlone() {
		return read()
	}
	var b bytes.Buffer
	if g.speaks() {
		if c, err = read(); err == nil {
			err = gob.NewEncoder(&b).Encode(c)
		}
	}
	if err := g.Agree(ctx, "read the config", err); err != nil {
		return nil, err
	}
	text, err := mpi.Broadcast(ctx, g.Processes, "the config", b.Bytes(), 0)
	if err != nil || g.speaks() {
		return c, err
	}
	c = &configs.Run{}
	return c, gob.NewDecoder(bytes.NewReader(text)).Decode(c)
}

// end closes the group. After a failure it ends all processes: rank 0 prints the error, or another process if it was
// the first to find it, such as when rank 0 is lost.
func (g *processGroup) end(ctx context.Context, err error) error {
	if g.IsAlone() {
		return err
	}
	if err == nil || errors.Is(err, interrupt.ErrInterrupted) || errors.Is(err, context.Canceled) {
		closed := g.Close()
		if _, others := errors.AsType[*mpi.RemoteError](closed); !others {
			return errors.Join(err, closed)
		}
		err = closed // another process has failed in the meantime, such as rank 0 while it writes
	}
	first := g.Err()
	if _, others := errors.AsType[*mpi.RemoteError](err); first == nil && !others {
		_ = g.Fail(err) // which is printed
	}
	switch _, told := errors.AsType[*mpi.RemoteError](first); {
	case g.speaks():
		command.Of(ctx).PrintError("", err)
	case first != nil && !told:
		command.Of(ctx).PrintError(g.Name(g.Rank)+": ", err)
	}
	interrupt.Quiet(ctx) // the launcher may tell this process to stop now
	_ = g.Close()        // the first error is printed
	code := int(command.CodeOf(err))
	g.Abort(code)
	os.Exit(code) // if MPI cannot
	return err
}

const probeName = "probe-mpi"

// probeCommand returns the command line that tries MPI with device memory, nil if the path of halox is unknown.
func probeCommand() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, probeName}
}

// newProbeCommand returns the command with which halox starts itself, see mpi.Options.Probe. It is not for users.
func newProbeCommand() *cobra.Command {
	return &cobra.Command{
		Use: probeName, Short: "Test MPI with device memory, which may crash", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if mpi.TakeProbe(cmd.ErrOrStderr()) != 0 {
				return errors.New("MPI does not support device memory here")
			}
			return nil
		},
	}
}
