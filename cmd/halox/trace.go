package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results/trace"
	"github.com/halox/halox/streams"
)

// report says how much of the communication was hidden, and where it can be seen.
func (t *tracing) report(out io.Writer) {
	if t == nil {
		return
	}
	text := t.found.HiddenText()
	switch {
	case !t.found.Traced():
		text = fmt.Sprintf("nothing was traced: the run ended before step %d", t.window.First)
	case text == "":
		text = "no communication was traced"
	}
	fmt.Fprintf(out, "%-10s %s\n", "hidden", text)
	if n := t.found.About.Lost; n > 0 {
		fmt.Fprintf(out, "%-10s the trace lacks %d operations\n", "", n)
	}
	fmt.Fprintln(out, "wrote", t.file)
}

// traceFlags are the flags of halox run that ask for a trace.
type traceFlags struct {
	file        string // none where empty
	steps, skip int64
}

// add adds the flags to a command's.
func (f *traceFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "trace", "", "write what every stream did in some steps to this JSON `file`, for "+
		"Perfetto and halox plot")
	flags.Int64Var(&f.steps, "trace-steps", 20, "how many steps are traced")
	flags.Int64Var(&f.skip, "trace-skip", 5, "how many steps come before these, fewer where the run is short")
}

// check rejects impossible values.
func (f *traceFlags) check(flags *pflag.FlagSet) error {
	switch {
	case f.file == "" && flags.Changed("trace-steps"):
		return errors.New("--trace-steps: name a file with --trace")
	case f.file == "" && flags.Changed("trace-skip"):
		return errors.New("--trace-skip: name a file with --trace")
	case f.steps < 1 || f.steps > streams.MaxTracedSteps:
		return fmt.Errorf("--trace-steps: %d; 1 to %d are possible", f.steps, streams.MaxTracedSteps)
	case f.skip < 0:
		return fmt.Errorf("--trace-skip: %d is negative", f.skip)
	}
	return nil
}

// window returns the steps to trace in a run of at most so many.
func (f *traceFlags) window(iterations int64) streams.Window {
	skip := min(f.skip, max(0, iterations-f.steps))
	return streams.Window{First: skip + 1, Last: skip + f.steps}
}

// beginTrace switches tracing on. The solver and the run make their streams later.
func (j *solverRun) beginTrace(f traceFlags) error {
	if f.file == "" {
		return nil
	}
	w := f.window(int64(j.config.Stop.Iterations))
	// others' are theirs
	devices := slices.DeleteFunc(slices.Clone(j.Place.Devices), func(d *streams.Device) bool { return d == nil })
	tracer, err := streams.NewTracer(devices, w)
	if err != nil {
		return err
	}
	j.tracing = &tracing{file: f.file, window: w, tracer: tracer}
	return nil
}

// endTrace writes what was traced, all there is where the run failed.
func (j *solverRun) endTrace(r *record, failure error) error {
	t := j.tracing
	if t == nil {
		return nil
	}
	trace := t.tracer.Trace()
	t.found = newTrace(trace)
	t.found.About = aboutTrace(j, r)
	for _, d := range trace.Devices {
		t.found.About.Lost += d.Lost
	}
	joined := joinTraces(j.Place.Processes, t.found, trace.Zero)
	broken := trace.Err()
	if failed := errors.Join(failure, broken); failed != nil {
		t.found.About.Failure = failed.Error()
	}
	err := joined
	if j.writes() {
		err = errors.Join(joined, t.found.Write(t.file))
	}
	if failure == nil { // else it has been said what broke
		err = errors.Join(broken, err, t.tracer.Close())
	}
	return err
}

// aboutTrace says what was traced, in the record's words.
func aboutTrace(j *solverRun, r *record) trace.About {
	return trace.About{
		Halox: r.Halox, Solver: j.config.Solver, Size: j.config.Grid.Size, Precision: j.config.Precision,
		Scheme: r.run.Scheme, Order: r.run.Order, Path: r.run.Path,
	}
}

// newTrace translates a trace.
func newTrace(found *streams.Trace) *trace.Trace {
	t := &trace.Trace{}
	for _, d := range found.Devices {
		device := trace.Device{Name: traceName(d.Device), Within: d.Within}
		if !d.Device.HostMemory {
			device.Name += ", " + d.Device.Name
		}
		for _, s := range d.Streams {
			stream := trace.Stream{Name: s.Name}
			for _, o := range s.Operations {
				stream.Operations = append(stream.Operations, newTraceOperation(o, d.Device))
			}
			device.Streams = append(device.Streams, stream)
		}
		t.Devices = append(t.Devices, device)
	}
	return t
}

// newTraceOperation translates what a device did. The kinds of work have the names of
// the categories.
func newTraceOperation(o streams.Operation, on *streams.Device) trace.Operation {
	op := trace.Operation{Name: o.Name, Category: string(o.Work), Begin: o.Begin, End: o.End, Step: o.Step,
		Bytes: o.Bytes}
	if o.With != nil && o.With != on {
		op.With = traceName(o.With)
	}
	return op
}

// traceName returns the name of a device in traces.
func traceName(d *streams.Device) string {
	return fmt.Sprintf("%s %d", d.Label, d.ID)
}

// tracePart is what one process adds to a trace.
type tracePart struct {
	Zero    int64         // ns of rank 0's clock: where its times begin; 0 where it has none
	Within  time.Duration // by how much that may be off
	Devices []trace.Device
	Lost    int
}

// joinTraces adds to a trace what all processes have traced, at times of rank 0's clock, and names their devices. All
// call it. zero is what this process's times count from. After a failure each keeps its own.
func joinTraces(p *mpi.Processes, t *trace.Trace, zero time.Time) error {
	if p.IsAlone() {
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
	all, err := mpi.Gather(context.Background(), p, "join the traces", mine)
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

// clocks returns by how much the clock of this process is ahead of that of rank 0, and by how much that may be wrong.
// Processes of one host have one clock. All call it.
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
