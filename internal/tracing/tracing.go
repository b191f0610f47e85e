// Package tracing merges the traces of the streams of all processes into the trace of a run.
package tracing

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results/trace"
	"github.com/halox/halox/streams"
)

// part is the trace of one process.
type part struct {
	Zero    int64 // start of its times, in ns of rank 0's clock; 0 if there are none
	Devices []trace.Device
	Lost    int
}

// Collect returns the work of the streams of all processes, with times of rank 0's clock. All call it. After a failure
// of a process each returns only its own.
func Collect(found *streams.Trace, p *mpi.Processes) (*trace.Trace, error) {
	mine := partOf(found, p)
	t := &trace.Trace{About: trace.About{Lost: mine.Lost}, Devices: mine.Devices}
	if p.IsAlone() || p.Err() != nil {
		return t, nil
	}
	ahead, within, err := clocks(p)
	if err != nil {
		return t, err
	}
	if !found.Zero.IsZero() {
		mine.Zero = found.Zero.Add(-ahead).UnixNano()
	}
	for i := range mine.Devices {
		mine.Devices[i].ClockError += within
	}
	all, err := mpi.Gather(context.Background(), p, "join the traces", mine)
	if err != nil {
		return t, err
	}
	begin := int64(0)
	for _, part := range all {
		if part.Zero != 0 && (begin == 0 || part.Zero < begin) {
			begin = part.Zero
		}
	}
	t.Devices, t.About.Lost = nil, 0
	for _, part := range all {
		later := time.Duration(part.Zero - begin)
		for _, d := range part.Devices {
			for _, s := range d.Streams {
				for i := range s.Operations {
					s.Operations[i].Begin += later
					s.Operations[i].End += later
				}
			}
			t.Devices = append(t.Devices, d)
		}
		t.About.Lost += part.Lost
	}
	return t, nil
}

// partOf converts the work of the streams of this process. The kinds of work have the names of the categories.
func partOf(found *streams.Trace, p *mpi.Processes) (mine part) {
	of := ""
	if !p.IsAlone() {
		of = fmt.Sprintf(" of rank %d on %s", p.Rank, p.Hosts[p.Rank])
	}
	for _, d := range found.Devices {
		mine.Lost += d.Lost
		device := trace.Device{Name: fmt.Sprintf("%s %d", d.Device.Label, d.Device.ID), ClockError: d.ClockError}
		if !d.Device.HostMemory {
			device.Name += ", " + d.Device.Name
		}
		device.Name += of
		for _, s := range d.Streams {
			stream := trace.Stream{Name: s.Name}
			for _, o := range s.Operations {
				op := trace.Operation{Name: o.Name, Category: string(o.Work), Begin: o.Begin, End: o.End, Step: o.Step,
					Bytes: o.Bytes}
				if o.With != nil && o.With != d.Device {
					op.With = fmt.Sprintf("%s %d%s", o.With.Label, o.With.ID, of)
				}
				stream.Operations = append(stream.Operations, op)
			}
			device.Streams = append(device.Streams, stream)
		}
		mine.Devices = append(mine.Devices, device)
	}
	return mine
}

// questions is the number of comparisons of two clocks: the fastest answer counts.
const questions = 9

// clocks returns how far the clock of this process is ahead of that of rank 0, and the uncertainty of that. Processes
// of one host have one clock. Processes of other hosts ask rank 0 for its time, assumed to be halfway between question
// and answer. All call it.
func clocks(p *mpi.Processes) (ahead, within time.Duration, err error) {
	const what = "compare the clocks"
	var word [8]byte
	for rank := 1; rank < p.Size(); rank++ {
		if p.Nodes[rank] == p.Nodes[0] || p.Rank != 0 && p.Rank != rank {
			continue
		}
		for i := range questions {
			asked := time.Now()
			if p.Rank == 0 {
				if err := p.ReceiveBytes(context.Background(), what, word[:], rank); err != nil {
					return 0, 0, err
				}
				binary.LittleEndian.PutUint64(word[:], uint64(time.Now().UnixNano()))
				err = p.SendBytes(context.Background(), what, word[:], rank)
			} else if err = p.SendBytes(context.Background(), what, word[:], 0); err == nil {
				err = p.ReceiveBytes(context.Background(), what, word[:], 0)
			}
			if err != nil {
				return 0, 0, err
			}
			half := time.Since(asked) / 2
			there := time.Unix(0, int64(binary.LittleEndian.Uint64(word[:])))
			if p.Rank != 0 && (i == 0 || half < within) {
				ahead, within = asked.Add(half).Sub(there), half
			}
		}
	}
	return ahead, within, nil
}
