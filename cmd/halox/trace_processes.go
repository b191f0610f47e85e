package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results/trace"
)

// tracePart is what one process adds to a trace.
type tracePart struct {
	Zero    int64         // ns of rank 0's clock: where its times begin; 0 where it has none
	Within  time.Duration // by how much that may be off
	Devices []trace.Device
	Lost    int
}

// joinTraces adds to a trace what all processes have traced, at times of rank 0's clock, and names their devices. All call it.
// zero is what this process's times count from. After a failure each keeps its own.
func joinTraces(p *mpi.Processes, t *trace.Trace, zero time.Time) error {
	if p == nil {
		return nil
	}
	nameOf := func(device string) string { return fmt.Sprintf("%s of rank %d on %s", device, p.Rank, p.Hosts[p.Rank]) }
	for i := range t.Devices {
		t.Devices[i].Name = nameOf(t.Devices[i].Name)
		eachOperation(&t.Devices[i], func(o *trace.Operation) {
			if o.With != "" {
				o.With = nameOf(o.With)
			}
		})
	}
	if p.Err() != nil {
		return nil
	}
	ahead, within, err := clocks(p)
	if err != nil {
		return err
	}
	mine := tracePart{Within: within, Devices: t.Devices, Lost: t.About.Lost}
	if !zero.IsZero() {
		mine.Zero = zero.Add(-ahead).UnixNano()
	}
	all, err := gather(p, "join the traces", mine)
	if err != nil {
		return err
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
			d.Within += part.Within
			eachOperation(&d, func(o *trace.Operation) { o.Begin, o.End = o.Begin+later, o.End+later })
			t.Devices = append(t.Devices, d)
		}
		t.About.Lost += part.Lost
	}
	return nil
}

func eachOperation(d *trace.Device, do func(*trace.Operation)) {
	for s := range d.Streams {
		for o := range d.Streams[s].Operations {
			do(&d.Streams[s].Operations[o])
		}
	}
}

// looks is how often two processes look at each other's clocks: the quickest counts.
const looks = 9

// clocks returns by how much the clock of this process is ahead of that of rank 0, and by how much that may be wrong. Processes
// of one host have one clock. All call it.
func clocks(p *mpi.Processes) (ahead, within time.Duration, err error) {
	for rank := 1; rank < p.Size(); rank++ {
		if p.Nodes[rank] == p.Nodes[0] || p.Rank != 0 && p.Rank != rank {
			continue
		}
		if p.Rank == 0 {
			err = showClock(p, rank)
		} else {
			ahead, within, err = lookAtClock(p)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return ahead, within, nil
}

const clockWords = "compare the clocks"

// showClock answers a rank that looks at the clock of this one.
func showClock(p *mpi.Processes, rank int) error {
	var word [8]byte
	for range looks {
		if err := p.ReceiveBytes(context.Background(), clockWords, word[:], rank); err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(word[:], uint64(time.Now().UnixNano()))
		if err := p.SendBytes(context.Background(), clockWords, word[:], rank); err != nil {
			return err
		}
	}
	return nil
}

// lookAtClock asks rank 0 for its time, which it takes to be that of the middle between question and answer.
func lookAtClock(p *mpi.Processes) (ahead, within time.Duration, err error) {
	var word [8]byte
	for i := range looks {
		asked := time.Now()
		if err := p.SendBytes(context.Background(), clockWords, word[:], 0); err != nil {
			return 0, 0, err
		}
		if err := p.ReceiveBytes(context.Background(), clockWords, word[:], 0); err != nil {
			return 0, 0, err
		}
		half := time.Since(asked) / 2
		if there := time.Unix(0, int64(binary.LittleEndian.Uint64(word[:]))); i == 0 || half < within {
			ahead, within = asked.Add(half).Sub(there), half
		}
	}
	return ahead, within, nil
}
