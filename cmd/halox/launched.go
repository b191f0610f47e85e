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

	"github.com/halox/halox/configs"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
)

// launched is what this process is to those that a launcher started with it.
type launched struct{ processes *mpi.Processes } // nil where this one is alone

// launch joins the processes that a launcher of MPI has started.
func launch(ctx context.Context) (*launched, error) {
	processes, err := mpi.Join(ctx, mpi.Options{Limit: waitLimit})
	return &launched{processes}, err
}

// speaks reports whether this process prints and writes: one does.
func (l *launched) speaks() bool { return l.processes == nil || l.processes.Rank == 0 }

// config returns what rank 0 has read, on all processes.
func (l *launched) config(ctx context.Context, read func() (*configs.Run, error)) (c *configs.Run, err error) {
	if l.processes == nil {
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

// check refuses what is of one process.
func (l *launched) check(t traceFlags) error {
	if l.processes != nil && t.file != "" {
		return fmt.Errorf("--trace: what one process does can be traced, and %d share the grid", l.processes.Size())
	}
	return nil
}

// end takes leave of the other processes. After a failure it ends all of them: rank 0 says why, and another where it is the
// first to have found out, as where rank 0 is lost.
func (l *launched) end(err error, notes io.Writer) error {
	if l.processes == nil {
		return err
	}
	if err == nil || errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		return errors.Join(err, l.processes.Close())
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
	err = errors.Join(err, l.processes.Close())
	l.processes.Abort(exitFailed)
	os.Exit(exitFailed) // where MPI cannot
	return err
}

// part is what one process adds to the record.
type part struct {
	Devices    []results.Device
	Subdomains []int // by rank: the id of the device, of its own
}

// addProcesses adds the devices of all processes to the record. All call it.
func (r *record) addProcesses(j *solverRun) error {
	processes := j.place.Processes
	if processes == nil {
		return nil
	}
	mine := part{Devices: r.Devices}
	for _, s := range r.run.Subdomains {
		mine.Subdomains = append(mine.Subdomains, s.Device)
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return processes.Fail(err)
	}
	all, err := processes.Gather(context.Background(), "describe the devices", text)
	if err != nil {
		return err
	}
	r.run.Processes, r.Devices = processes.Size(), nil
	for process, text := range all {
		var p part
		if err := json.Unmarshal(text, &p); err != nil {
			return fmt.Errorf("the devices of %s: %w", processes.Name(process), err)
		}
		for _, d := range p.Devices {
			d.Process, d.Host = process, processes.Hosts[process]
			r.Devices = append(r.Devices, d)
		}
		for rank, id := range p.Subdomains {
			if j.place.Owners[rank] == process {
				r.run.Subdomains[rank].Device, r.run.Subdomains[rank].Process = id, process
			}
		}
	}
	return nil
}
