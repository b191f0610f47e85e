package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/p2p/mpi"
)

// launched is what this process is to those that a launcher started with it.
type launched struct{ processes *mpi.Processes } // nil where this one is alone

// launch joins the processes that a launcher of MPI has started.
func launch(ctx context.Context) (*launched, error) {
	processes, err := mpi.Join(ctx, mpi.Options{Limit: waitLimit, Probe: probeCommand()})
	if !processes.IsAlone() {
		oneOfSeveral(ctx)
	}
	return &launched{processes}, err
}

// takePart runs a command as one of the launched processes. What all but rank 0 print goes nowhere.
func takePart(cmd *cobra.Command, do func(l *launched, out, notes io.Writer) error) error {
	l, err := launch(cmd.Context())
	if err != nil {
		return err
	}
	out, notes := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if !l.speaks() {
		out, notes = io.Discard, io.Discard
	}
	return l.end(do(l, out, notes), cmd.ErrOrStderr())
}

// alone is the error of a command that several processes cannot make together; nil where this process is alone.
func (l *launched) alone(what, why string) error {
	if l.processes.IsAlone() {
		return nil
	}
	return fmt.Errorf("%s is of one process, and a launcher started %d: %s", what, l.processes.Size(), why)
}

// size is how many processes there are.
func (l *launched) size() int {
	if l.processes.IsAlone() {
		return 1
	}
	return l.processes.Size()
}

// manyProcesses says how many they are: "4 processes on 2 hosts".
func manyProcesses(p *mpi.Processes) string {
	hosts := 1 + slices.Max(p.Nodes)
	if hosts == 1 {
		return fmt.Sprintf("%d processes on one host", p.Size())
	}
	return fmt.Sprintf("%d processes on %d hosts", p.Size(), hosts)
}

// interrupted has all processes end where one has been told to: the error of its context, on all.
func (l *launched) interrupted(ctx context.Context) error {
	if l.processes.IsAlone() {
		return ctx.Err()
	}
	all, err := gather(l.processes, "see whether to go on", ctx.Err() != nil)
	for _, told := range all {
		if told {
			return errInterrupted
		}
	}
	return err
}

// speaks reports whether this process prints and writes: one does.
func (l *launched) speaks() bool { return l.processes.IsAlone() || l.processes.Rank == 0 }

// config returns what rank 0 has read, on all processes.
func (l *launched) config(ctx context.Context, read func() (*configs.Run, error)) (c *configs.Run, err error) {
	if l.processes.IsAlone() {
		return read()
	}
	var b bytes.Buffer
	if l.speaks() {
		if c, err = read(); err == nil {
			err = gob.NewEncoder(&b).Encode(c)
		}
	}
	if err := l.processes.Agree(ctx, "read the config", err); err != nil {
		return nil, err
	}
	text, err := l.processes.Broadcast(ctx, "the config", b.Bytes(), 0)
	if err != nil || l.speaks() {
		return c, err
	}
	c = &configs.Run{}
	return c, gob.NewDecoder(bytes.NewReader(text)).Decode(c)
}

// end takes leave of the other processes. After a failure it ends all of them: rank 0 says why, and another where it is the
// first to have found out, as where rank 0 is lost.
func (l *launched) end(err error, notes io.Writer) error {
	if l.processes.IsAlone() {
		return err
	}
	if err == nil || errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		closed := l.processes.Close()
		if _, others := errors.AsType[*mpi.RemoteError](closed); !others {
			return errors.Join(err, closed)
		}
		err = closed // another has failed meanwhile, as rank 0 at what it writes
	}
	first := l.processes.Err()
	if _, others := errors.AsType[*mpi.RemoteError](err); first == nil && !others {
		_ = l.processes.Fail(err) // which is printed
	}
	switch _, told := errors.AsType[*mpi.RemoteError](first); {
	case l.speaks():
		fmt.Fprintln(notes, err)
	case first != nil && !told:
		fmt.Fprintf(notes, "%s: %v\n", l.processes.Name(l.processes.Rank), err)
	}
	_ = l.processes.Close() // what came first is printed
	l.processes.Abort(exitFailed)
	os.Exit(exitFailed) // where MPI cannot
	return err
}

// gather returns what each process knows, by rank; where this one is alone, what it knows. All processes call it.
func gather[T any](processes *mpi.Processes, what string, mine T) ([]T, error) {
	if processes.IsAlone() {
		return []T{mine}, nil
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, processes.Fail(err)
	}
	texts, err := processes.Gather(context.Background(), what, text)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(texts))
	for rank, text := range texts {
		if err := json.Unmarshal(text, &all[rank]); err != nil {
			return nil, fmt.Errorf("%s, of %s: %w", what, processes.Name(rank), err)
		}
	}
	return all, nil
}

const probeName = "probe-mpi"

// probeCommand is the command line that tries MPI with device memory, none where nobody knows where halox lies.
func probeCommand() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, probeName}
}

// newProbeCommand is what halox starts itself with, see mpi.Options.Probe. Users have no need of it.
func newProbeCommand() *cobra.Command {
	return &cobra.Command{
		Use: probeName, Short: "Give MPI device memory, which may crash", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if mpi.TakeProbe(cmd.ErrOrStderr()) != 0 {
				return errors.New("device memory is not for MPI here")
			}
			return nil
		},
	}
}
