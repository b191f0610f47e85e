package links

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/bench/trial"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

const (
	wirePath     = "wire"      // between host memories, by MPI alone: the bound of path mpi
	pingPongMode = "ping-pong" // half of a round trip
)

// network is the processes between whose first devices messages are timed.
type network struct {
	*bench.Machine
	pace   measure.Pace
	record *results.Record // stores the bounds of path mpi
	tag    int             // the first of two
}

// among measures messages of all sizes between all pairs of processes.
func (o *Options) among(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	if _, err := on.TryNetworks(ctx); err != nil {
		return err
	}
	if err := to.Begin(results.KindLinks, on.Links); err != nil {
		return err
	}
	tag, err := on.Processes.Tags(2)
	if err != nil {
		return err
	}
	r := &network{on, measure.Pace{First: 2, Max: maxMessages, Batch: o.Budget / measure.MinBatches}, to.Record, tag}
	var tasks []bench.Task
	for _, path := range []string{wirePath, string(p2p.MPI)} {
		for _, mode := range []string{pingPongMode, oneWayMode, bothWaysMode} {
			if mode != pingPongMode && !slices.Contains(o.Modes, mode) {
				continue
			}
			for from := range on.Processes.Size() {
				for to := range on.Processes.Size() {
					if from == to || from > to && mode != oneWayMode {
						continue
					}
					tasks = append(tasks, r.task(path, mode, from, to, o.Sizes))
				}
			}
		}
	}
	return to.Measure(ctx, tasks)
}

// task measures messages of all sizes from one process to another, or in both directions.
func (r *network) task(path, mode string, from, to int, sizes []int64) bench.Task {
	labels := r.labels(path, mode, from, to)
	measure := func(ctx context.Context, _ *streams.Resources) (rows []results.Row, err error) {
		for _, bytes := range sizes {
			row, err := r.measure(ctx, path, mode, from, to, bytes)
			if err != nil {
				return nil, fmt.Errorf("bytes %d: %w", bytes, err)
			}
			rows = append(rows, row)
		}
		return rows, nil
	}
	return bench.Task{Labels: labels, Measure: measure}
}

// labels begins the rows of a task.
func (r *network) labels(path, mode string, from, to int) results.Row {
	kind := "processes"
	if r.Processes.Nodes[from] != r.Processes.Nodes[to] {
		kind = "network"
	}
	return results.NewRow().Label("from", from).Label("to", to).Label("link", kind).Label("path", path).Label("mode",
		mode)
}

// measure returns the row of one size, with the time of MPI alone.
func (r *network) measure(ctx context.Context, path, mode string, from, to int, bytes int64) (row results.Row,
	err error) {
	row = r.labels(path, mode, from, to).Label("bytes", bytes)
	// The earlier ends are closed on all processes: their pending receives would take messages of these.
	if err := bench.AgreeToGoOn(ctx, r.Processes, nil); err != nil {
		return row, err
	}
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	me := r.Processes.Rank
	var there, back traffic
	mapped, err := r.mapped(ctx, path, from, to, bytes, &open)
	if other := from + to - me; err == nil && (me == from || me == to) {
		there, back, err = r.ends(mapped, path, mode, me == from, other, bytes, &open)
	}
	if err := bench.AgreeToGoOn(ctx, r.Processes, err); err != nil {
		return row, err
	}
	batch := func(n int) (float64, error) {
		begin := time.Now()
		err := play(mode, there, back, n)
		return time.Since(begin).Seconds() * 1e6 / float64(n), err
	}
	if there.one == nil {
		batch = func(int) (float64, error) { return 0, nil }
	}
	took, err := bench.Together(ctx, r.Processes, batch,
		func(batch bench.Batch) (results.Sample, error) { return r.pace.Measure(ctx, batch) })
	if err != nil {
		return row, err
	}
	row.Checked = path == string(p2p.MPI)
	sent := bytes
	switch mode {
	case pingPongMode:
		took = took.Scale(0.5)
	case bothWaysMode:
		sent *= 2
	}
	var alone results.Sample
	if path != wirePath {
		plain, _ := r.record.Find(r.labels(wirePath, mode, from, to).Label("bytes", bytes))
		alone, _ = plain.Get(results.Time)
	}
	return row.Transfer(sent, took, alone), nil
}

// mapped prepares a message in each direction if the processes map memory of each other, otherwise it returns nil.
func (r *network) mapped(ctx context.Context, path string, from, to int, bytes int64, open *streams.Resources) (
	*mpi.HostMessages, error) {
	if path == wirePath || !r.Processes.Maps(from, to) {
		return nil, nil
	}
	there := mpi.HostMessage{From: from, To: to, Bytes: bytes, Device: r.Devices[0], Name: fmt.Sprintf(
		"a message from %s to %s", r.Processes.Name(from), r.Processes.Name(to))}
	back := there
	back.From, back.To = to, from
	h, err := r.Processes.NewHostMessages(ctx, []mpi.HostMessage{there, back})
	if err == nil {
		open.Add(h)
	}
	return h, err
}

// traffic is one end of messages in one direction.
type traffic struct {
	one  func() error // sends or receives the next message
	rest func() error // waits until all have arrived
}

// ends makes the ends of this process: there is the traffic from the first process to the second, back is the traffic
// in the other direction.
func (r *network) ends(mapped *mpi.HostMessages, path, mode string, first bool, other int, bytes int64,
	open *streams.Resources) (there, back traffic, err error) {
	if there, err = r.end(mapped, 0, path, first, other, bytes, open); err != nil || mode == oneWayMode {
		return there, back, err
	}
	back, err = r.end(mapped, 1, path, !first, other, bytes, open)
	return there, back, err
}

// end makes one end of the first or the second message, and tests it with random bytes.
func (r *network) end(mapped *mpi.HostMessages, message int, path string, sends bool, other int, bytes int64,
	open *streams.Resources) (traffic, error) {
	if path != wirePath {
		return r.device(mapped, message, sends, other, bytes, open)
	}
	w, err := r.Processes.NewWire(bytes, other, r.tag+message)
	if err != nil {
		return traffic{}, err
	}
	open.Add(w)
	one := w.Receive
	if sends {
		one = w.Send
	}
	return traffic{one, func() error { return nil }}, nil
}

// device makes the end of messages between the memories of devices. Over mapped memory the sender copies into that of
// the receiver.
func (r *network) device(mapped *mpi.HostMessages, message int, sends bool, other int, bytes int64,
	open *streams.Resources) (t traffic, err error) {
	d, p := r.Devices[0], r.Processes
	memory, s := open.Alloc(d, bytes), open.NewStream(d, streams.Normal)
	if err := open.Err(); err != nil {
		return t, err
	}
	there := memory.All()
	if mapped != nil {
		there = mapped.Span(message)
	}
	waits := streams.NewWorkerGroup(1<<10, 2*p.Limit())
	t.rest = func() error { return s.Sync(timing.Limit) }
	if sends {
		return t, r.sender(&t, mapped, message, memory, there, other, waits, s, open)
	}
	mirror, err := trial.NewMirror(d, there, open)
	if err != nil {
		return t, err
	}
	var x interface {
		Expect(s *streams.Stream)
		Receive(group *streams.WorkerGroup, s *streams.Stream) error
		Done(s *streams.Stream) error
	}
	if mapped != nil {
		x = mapped.Receiver(message)
	} else {
		r, err := p.NewReceiver(there, other, r.tag+message, "a message from "+p.Name(other))
		if err != nil {
			return t, err
		}
		open.Add(r)
		x = r
	}
	t.one = func() error {
		x.Expect(s)
		return errors.Join(x.Receive(waits, s), x.Done(s))
	}
	x.Expect(s)
	if err := errors.Join(x.Receive(waits, s), mirror.Download(s), x.Done(s), s.Sync(timing.Limit)); err != nil {
		return t, err
	}
	return t, compare(mirror.Bytes(), p, other)
}

// sender makes the sending end of device.
func (r *network) sender(t *traffic, mapped *mpi.HostMessages, message int, memory *streams.Memory, there streams.Span,
	other int, waits *streams.WorkerGroup, s *streams.Stream, open *streams.Resources) error {
	mirror, err := trial.NewMirror(r.Devices[0], memory.All(), open)
	if err != nil {
		return err
	}
	var x interface {
		Ready(group *streams.WorkerGroup, s *streams.Stream) error
		Send(s *streams.Stream) error
	}
	if mapped != nil {
		x = mapped.Sender(message)
		t.one = func() error { return errors.Join(x.Ready(waits, s), s.Copy(there, memory.All()), x.Send(s)) }
	} else {
		one, err := r.Processes.NewSender(there, other, r.tag+message, "a message to "+r.Processes.Name(other))
		if err != nil {
			return err
		}
		open.Add(one)
		x = one
		t.one = func() error { return errors.Join(x.Ready(waits, s), x.Send(s)) }
	}
	sample(mirror.Bytes(), r.Processes.Rank, other)
	return errors.Join(mirror.Upload(s), s.Sync(timing.Limit), t.one(), x.Ready(waits, s))
}

// sample fills bytes with random ones that both processes know.
func sample(b []byte, from, to int) {
	rand.NewChaCha8([32]byte{byte(from), byte(from >> 8), byte(to), byte(to >> 8), 1}).Read(b)
}

// compare returns an error unless the bytes are those that the other process sent.
func compare(got []byte, p *mpi.Processes, from int) error {
	want := make([]byte, len(got))
	if sample(want, from, p.Rank); bytes.Equal(got, want) {
		return nil
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("path mpi from %s to %s %sbyte %d of %d is %#x, must be %#x", p.Name(from),
				p.Name(p.Rank), p2p.CorruptsData, i, len(got), got[i], want[i])
		}
	}
	return nil
}

// play sends n messages of a mode: in a ping-pong each waits for the previous one, otherwise they are queued together.
func play(mode string, there, back traffic, n int) error {
	switch mode {
	case oneWayMode:
		return errors.Join(timing.Times(n, there.one), there.rest())
	case pingPongMode:
		turn := func() error { return errors.Join(there.one(), there.rest(), back.one(), back.rest()) }
		return errors.Join(timing.Times(n, turn), there.rest(), back.rest())
	}
	done := make(chan error, 1)
	go func() { done <- errors.Join(timing.Times(n, back.one), back.rest()) }()
	return errors.Join(timing.Times(n, there.one), there.rest(), <-done)
}
