package datatypes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/bench/trial"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// pingPongOptions selects the messages between two devices.
type pingPongOptions struct {
	layouts
	Devices  []int    // two, which may be the same
	Paths    []string // nil for the figure's, or peer and direct
	Engines  []string // nil for the figure's, or auto
	Fragment int64    // bytes of a fragment; 0: automatic
	Ring     int      // fragments in flight; 0: automatic
	Remote   bool     // with path peer: unpack from the sender's memory
	Busy     float64  // fraction of each device that another kernel keeps busy
}

// PingPongCommand returns halox bench pingpong.
func PingPongCommand() bench.Command {
	o := &pingPongOptions{layouts: newLayouts(), Devices: []int{0, 1}, Engines: []string{string(packing.Auto)},
		Paths: []string{string(p2p.Peer), string(p2p.Direct)}}
	return bench.Command{
		Name: "pingpong", Short: "Time MPI datatypes from one device to another and back",
		Options: o, Pair: true, Chart: o.draw,
		List: func(w io.Writer) (any, error) { return o.list(w, results.KindPingPong, o.choose) },
		Table: func(w io.Writer, r *results.Record) error {
			return o.table(w, r, namesOf(o.channels()), o.figure.busy != nil)
		},
		About: `One device packs a layout and sends it; the other unpacks it into the layout of the receiver,
packs that, and sends it back. Times are one way, half of a round trip, by the host's clock:
medians of batches of queued round trips. A contiguous message of the same size, by the
driver's peer copy, is measured too. Rates count packed bytes. For each layout that spans at
most 64 MiB, the results are first compared with those of the host.

Under a launcher, two processes of one host, with a device each, send over paths ipc and mpi.
By ipc the sender packs a fragment into a slot of a ring in its memory, and signals that. The
receiver has mapped the ring: it copies the fragment, and signals that the slot is free, as in
Wu et al. By mpi the packed message passes through pinned host memory, in pieces.

With --busy a stream of each device repeats a kernel of arithmetic and some memory traffic, on
that fraction of the thread blocks that can run at once. On CPU devices it runs for that
fraction of the time. The table shows how much the best engine slows it down.

Ctrl-C keeps the results so far; --resume continues.`,
		Example: `  halox bench pingpong --suites ddtbench --paths direct,peer,staged --record ddtbench.json
  halox bench pingpong --device-ids 0,0 --match wu/V/
  halox bench pingpong --match wu/V/n=2048 --busy 0.5 --fragment 1048576
  halox bench pingpong --figure wu-10 --plot wu-10.svg
  mpirun -n 2 halox bench pingpong --figure wu-10 --record ipc.json`,
	}
}

// Flags returns the flags.
func (p *pingPongOptions) Flags() []option.Flag {
	paths := option.Paths(&p.Paths, slices.Concat(option.Texts(p2p.Paths()), processPaths()))
	paths.Open, paths.Help = true, "paths of messages: {}; ipc and mpi between processes, which is their default"
	return append(p.flags(), []option.Flag{
		option.DeviceIDs(&p.Devices, "IDs of the two devices; the same twice sends within that device"),
		paths, enginesFlag(&p.Engines),
		{Name: "fragment", Value: &p.Fragment, Help: "size of the fragments of messages in `bytes`; 0: automatic"},
		{Name: "ring", Value: &p.Ring, Help: "number of fragments in flight; 0: automatic", To: 1024},
		{Name: "remote", Value: &p.Remote, Help: "paths peer and ipc: unpack from the memory of the sender over the link"},
		{Name: "busy", Value: &p.Busy, Help: "keep this `fraction` of each device busy with another kernel"},
		{Name: "no-check", Value: &p.NoCheck, Help: "do not compare the results with those of the host"},
	}...)
}

// Wants returns the two devices, or that of one of two processes, and chooses the paths that are not given.
func (p *pingPongOptions) Wants(g *mpi.Processes) (w bench.Wanted, err error) {
	known, between, mapped := option.Texts(p2p.Paths()), "devices of one process", string(p2p.Peer)
	w.IDs = p.Devices
	if g.IsAlone() {
		p.Paths = firstOf(p.Paths, p.figure.paths, []string{string(p2p.Peer), string(p2p.Direct)})
	} else {
		known, between, mapped = processPaths(), "processes", string(pathIPC)
		p.Paths = firstOf(p.Paths, known)
		switch {
		case g.Size() != 2 || g.Nodes[0] != g.Nodes[1]:
			return w, fmt.Errorf("bench pingpong: must be one process or two of one host, got %s", g.Counted())
		case p.Busy != 0 || p.figure.busy != nil:
			return w, errors.New("--busy: must be 0 between processes")
		}
		w.IDs = p.Devices[g.Rank:][:1]
	}
	for _, path := range p.Paths {
		if !slices.Contains(known, path) {
			return w, fmt.Errorf("--paths: must be of %s between %s, got %q", strings.Join(known, ", "), between, path)
		}
	}
	if p.Remote && !slices.Contains(p.Paths, mapped) {
		return w, fmt.Errorf("--remote: needs path %s in --paths", mapped)
	}
	return w, nil
}

// choose sets defaults and chooses the layouts.
func (p *pingPongOptions) choose() error {
	err := p.check()
	switch {
	case err != nil:
	case !(p.Busy >= 0 && p.Busy <= 1):
		err = fmt.Errorf("--busy: must be between 0 and 1, got %v", p.Busy)
	default:
		err = p.complete()
	}
	if err != nil {
		return err
	}
	return p.chooseWork()
}

// complete finds the figure, and takes the options that it sets, and those of its paper that are not given.
func (p *pingPongOptions) complete() error {
	if p.Figure == "" {
		p.setGeneral(results.KindPingPong, "Ping-pong", curve{})
		p.figure.contiguous = "contiguous message"
	} else {
		err := p.setFigure(results.KindPingPong)
		if err == nil {
			err = cmp.Or(p.reject("engines", p.Engines != nil && p.figure.by != nil),
				p.reject("busy", p.Busy != 0 && p.figure.busy != nil))
		}
		if err != nil {
			return err
		}
	}
	p.Engines = firstOf(p.Engines, []string{string(packing.Auto)})
	return nil
}

// firstOf returns the first argument that is not nil.
func firstOf(all ...[]string) []string {
	return all[slices.IndexFunc(all, func(s []string) bool { return s != nil })]
}

// Check rejects invalid options, and sets defaults.
func (p *pingPongOptions) Check() error {
	if err := cmp.Or(option.CheckDeviceIDs(p.Devices, 2, true), p.choose()); err != nil {
		return err
	}
	return p.checkAxis()
}

// channels returns the channels to measure.
func (p *pingPongOptions) channels() []channel {
	by := p.figure.by
	if by == nil {
		chosen := chosenEngines(p.Engines)
		if slices.Contains(chosen, packing.Copies) {
			chosen = append(chosen[1:], packing.Copies)
		}
		for _, e := range chosen {
			by = append(by, contender{engine: e})
		}
	}
	return channelsOf(p.Paths, by, p.Remote)
}

// Run measures messages from the first device to the last, which may be the same, and back.
func (p *pingPongOptions) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	r := p.newRun(on)
	if err := r.passable(ctx, on); err != nil {
		return err
	}
	to.Settings["contenders"] = namesOf(p.channels())
	loads, err := p.loads(ctx, on)
	if err != nil {
		return err
	}
	for _, l := range loads {
		if l.busy != nil {
			to.Settings["busy"] = l.busy.describe()
		}
	}
	if err := to.Begin(results.KindPingPong, on.Links); err != nil {
		return err
	}
	failure := to.Measure(ctx, r.tasks(p.work, loads))
	if p.Fragment > 0 || p.Ring > 0 {
		noteWhole(to)
	}
	return failure
}

// newRun returns the settings of the measurement.
func (p *pingPongOptions) newRun(on *bench.Machine) *pingRun {
	from, to := on.Devices[0], on.Devices[len(on.Devices)-1]
	r := &pingRun{
		from: from, to: to, compiler: on.Compiler, channels: p.channels(), check: !p.NoCheck, budget: p.Budget,
		transfer: packing.TransferOptions{Fragment: p.Fragment, Ring: p.Ring},
		processPair: processPair{
			processes: on.Processes, device: from, maps: slices.Contains(p.Paths, string(pathIPC)),
		},
	}
	if !on.Processes.IsAlone() {
		*[]**streams.Device{&r.to, &r.from}[on.Processes.Rank] = nil
		r.route = results.NewRow().Label("from", 0).Label("to", 1).Label("link", "processes")
		return r
	}
	r.route = results.NewRow().Label("from", from.ID).Label("to", to.ID)
	if link := on.Links.Between(from, to); link != nil {
		r.route = r.route.Label("link", link.Kind)
	}
	return r
}

// load is what limits the kernels of messages: a number of thread blocks, and another kernel.
type load struct {
	blocks int   // maximum per kernel; 0: automatic
	busy   *busy // nil if nothing else runs
	labels results.Row
}

// loads returns those of the figure, or that of the flags.
func (p *pingPongOptions) loads(ctx context.Context, on *bench.Machine) (all []load, err error) {
	shares := p.figure.busy
	if shares == nil {
		shares = []float64{p.Busy}
	}
	for _, share := range shares {
		var other *busy
		if share > 0 {
			if other, err = newBusy(ctx, on.Compiler, on.Devices, share); err != nil {
				return nil, fmt.Errorf("--busy %v: %w", share, err)
			}
		}
		var label any = share
		if p.figure.busy == nil {
			label = positive(share)
		}
		for _, blocks := range p.allBlocks() {
			labels := results.NewRow().Label(overBlocks, positive(blocks)).Label(overBusy, label)
			all = append(all, load{blocks, other, labels})
		}
	}
	return all, nil
}

// passable returns an error unless all channels work in both directions.
func (p *pingRun) passable(ctx context.Context, on *bench.Machine) error {
	if !p.processes.IsAlone() {
		return p.meet(ctx)
	}
	for _, l := range p.channels {
		_, _, there := on.Links.Choose(l.path, p.from, p.to, p2p.MessageShape{})
		_, _, back := on.Links.Choose(l.path, p.to, p.from, p2p.MessageShape{})
		if err := errors.Join(there, back); err != nil {
			return fmt.Errorf("--paths %s: %w", l.path, err)
		}
	}
	return nil
}

// noteWhole prints how many messages were sent without the requested fragments.
func noteWhole(to *bench.Recorder) {
	whole, all := 0, 0
	for _, row := range to.Record.Rows {
		if len(row.Values) > 0 {
			all++
			if row.Text("fragment") == "" && row.Text("ring") == "" {
				whole++
			}
		}
	}
	if whole > 0 {
		fmt.Fprintf(to.Notes,
			"--fragment and --ring do not apply to %d of %d rows: their messages are sent by one job\n", whole, all)
	}
}

// tasks returns the tasks: a row for each channel that supports a workload.
func (p *pingRun) tasks(work []workloads.Workload, loads []load) (all []bench.Task) {
	for _, w := range work {
		for _, l := range loads {
			labels := layoutOf(w).Join(p.route).Join(l.labels)
			all = append(all, bench.Task{Labels: labels,
				Measure: func(ctx context.Context, open *streams.Resources) ([]results.Row, error) {
					return (&pingCase{pingRun: p, load: l, open: open}).measureAll(ctx, w)
				}})
		}
	}
	return all
}

// measureAll returns a row for each channel whose engine supports the workload, which is left out if none does.
func (c *pingCase) measureAll(ctx context.Context, w workloads.Workload) (rows []results.Row, err error) {
	if err := c.agree(ctx, c.prepare(w)); err != nil {
		return nil, err
	}
	contiguous, err := c.contiguous(ctx, w.Bytes)
	if err != nil {
		return nil, fmt.Errorf("contiguous message: %w", err)
	}
	var unsuited []string
	for _, l := range c.channels {
		if err := c.agree(ctx, nil); err != nil { // the ends of the last channel are closed
			return nil, err
		}
		row, us, err := c.measure(ctx, l)
		if errors.Is(err, bench.ErrLeftOut) {
			unsuited = append(unsuited, fmt.Sprintf("by %v: %v", l, err))
			continue
		}
		if err != nil {
			return rows, fmt.Errorf("by %v: %w", l, err)
		}
		rows = append(rows, layoutOf(w).Join(row).Transfer(w.Bytes, us, contiguous))
	}
	if len(rows) == 0 {
		return nil, bench.LeaveOut(errors.New(strings.Join(unsuited, "; ")))
	}
	return rows, nil
}

// pingRun is the two devices between which messages are timed, which may be the same, and the settings.
type pingRun struct {
	from, to *streams.Device // nil in another process
	compiler *kernels.Compiler
	channels []channel
	check    bool                    // received bytes are compared with those of the host
	budget   time.Duration           // for each measurement
	transfer packing.TransferOptions // options to which those of channels are added
	route    results.Row             // the labels that all rows begin with
	processPair
}

// pingCase is one workload with its memory on both devices.
type pingCase struct {
	*pingRun
	load        load
	open        *streams.Resources
	here, there *pingEnd
	ping, pong  *trial.Trial // expected results at both ends; nil if nothing is compared
}

// pingEnd is the part of a case on one device. In another process, the stream and the array are nil.
type pingEnd struct {
	stream  *streams.Stream
	packer  func(o packing.Options) (*packing.Packer, error)
	array   *streams.Memory
	bytes   int64 // of the array, as the workload says
	shape   workloads.Side
	message *packing.MessageLayout
}

// prepare makes both ends: one has the data that the workload sends, the other receives it.
func (c *pingCase) prepare(w workloads.Workload) (err error) {
	if c.here, err = c.end(c.from, w.Send, w.Bytes); err != nil {
		return err
	}
	if c.there, err = c.end(c.to, w.Recv, w.Bytes); err != nil || !c.check {
		return err
	}
	if c.ping, err = c.newTrial(c.there, c.here); err != nil {
		return err
	}
	c.pong, err = c.newTrial(c.here, c.there)
	return err
}

// end makes the part of one device.
func (c *pingCase) end(d *streams.Device, shape workloads.Side, bytes int64) (e *pingEnd, err error) {
	e = &pingEnd{shape: shape, bytes: max(shape.Array, bytes)}
	if e.message, err = packing.NewMessageLayout(shape.Type, shape.Count); err != nil || d == nil {
		return e, err
	}
	e.array, e.stream = c.open.Alloc(d, e.bytes), c.open.NewStream(d, streams.Urgent)
	e.packer = packersOf(c.compiler, d, c.load.blocks, c.open)
	return e, c.open.Err()
}

// side returns the end for a transfer with a contender's options.
func (p *pingEnd) side(o packing.Options) (tripEnd, error) {
	if p.stream == nil {
		return tripEnd{side: packing.Side{Message: p.message}}, nil
	}
	packer, err := p.packer(o)
	place := packing.Place{Data: p.array.All(), Origin: p.shape.Origin}
	return tripEnd{packing.Side{Packer: packer, Place: place, Message: p.message}, p.stream}, err
}

// sides returns both ends for a transfer.
func (c *pingCase) sides(o packing.Options) (here, there tripEnd, err error) {
	here, err = c.here.side(o)
	if err == nil {
		there, err = c.there.side(o)
	}
	return here, there, err
}

// window returns the compared bytes: all between the first and the last that the message touches, and a few around
// them.
func (p *pingEnd) window() streams.Span {
	const around = 256
	l := p.message.Layout
	lo, hi := p.shape.Origin+l.TrueLB()-around, p.shape.Origin+l.TrueUB()+around
	lo, hi = max(0, lo), min(hi, p.bytes)
	return streams.Span{Memory: p.array, Offset: lo, Length: hi - lo}
}

// newTrial computes, by the definition of packing, the bytes that one end receives from the other. It returns nil for a
// layout whose extent is too large.
func (c *pingCase) newTrial(to, from *pingEnd) (*trial.Trial, error) {
	written, read := to.window(), from.window()
	return trial.New(to.stream, from.stream, written, read, c.open, func(dst, src []byte) error {
		packed := make([]byte, from.message.Layout.Size())
		if err := datatype.Pack(packed, src, from.shape.Origin-read.Offset, from.shape.Type,
			from.shape.Count); err != nil {
			return err
		}
		return datatype.Unpack(dst, to.shape.Origin-written.Offset, packed, to.shape.Type, to.shape.Count)
	})
}

// contiguous returns the one-way time of a message with the same number of contiguous bytes, copied between the same
// arrays by the driver, in microseconds.
func (c *pingCase) contiguous(ctx context.Context, bytes int64) (us results.Sample, err error) {
	message, err := contiguousMessage(bytes)
	if err != nil {
		return us, err
	}
	here, there, err := c.sides(packing.Options{})
	if err != nil {
		return us, err
	}
	for _, e := range []*tripEnd{&here, &there} {
		e.side.Message, e.side.Place.Origin = message, 0
	}
	r, err := c.newRoundTrip(ctx, here, there, packing.TransferOptions{Path: p2p.Direct, Engine: packing.Copies})
	if err != nil {
		return us, err
	}
	us, _, err = c.time(ctx, r)
	return us, errors.Join(err, r.Close())
}

// measure checks the bytes received over a channel and times it.
func (c *pingCase) measure(ctx context.Context, l channel) (row results.Row, us results.Sample, err error) {
	o := c.transfer
	o.Path, o.Engine, o.Remote = l.path, l.by.engine, l.remote
	here, there, err := c.sides(l.by.options)
	if err := c.agree(ctx, err); err != nil {
		return row, us, err
	}
	r, err := c.newRoundTrip(ctx, here, there, o)
	if err != nil {
		return row, us, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	row = c.route.Join(c.limits(r)).Join(c.load.labels).Join(l.row())
	if note := c.ignored(r); note != "" {
		row.Note = note
	}
	if c.ping != nil && c.pong != nil {
		err := c.ping.Do(func(there *streams.Stream) error { return r.ping.Queue(there, r.here) })
		if err := c.agree(ctx, err); err != nil {
			return row, us, fmt.Errorf("there: %w", err)
		}
		err = c.pong.Do(func(here *streams.Stream) error { return r.pong.Queue(here, r.there) })
		if err := c.agree(ctx, err); err != nil {
			return row, us, fmt.Errorf("back: %w", err)
		}
		row.Checked = true
	}
	us, lost, err := c.time(ctx, r)
	if c.load.busy != nil {
		row = row.Number(results.BusyLost, lost)
	}
	return row, us, err
}

// limits returns the labels of a row for messages in fragments.
func (p *pingRun) limits(t *roundTrip) results.Row {
	if !t.inFragments {
		return results.NewRow()
	}
	return results.NewRow().Label("fragment", positive(p.transfer.Fragment)).Label("ring", positive(p.transfer.Ring))
}

// ignored describes the options that a round trip did not use.
func (p *pingRun) ignored(t *roundTrip) string {
	if t.inFragments || p.transfer.Fragment == 0 && p.transfer.Ring == 0 {
		return ""
	}
	return "sent by one job, without fragments and their ring"
}

// maxRoundTrips is the maximum number of round trips in a batch.
const maxRoundTrips = 1000

// time returns the one-way time, in microseconds, and the slowdown of the kernel that ran at the same time.
func (c *pingCase) time(ctx context.Context, r *roundTrip) (us results.Sample, lost float64, err error) {
	p := measure.Pace{First: 1, Max: maxRoundTrips, Batch: c.budget / measure.MinBatches}
	lost, err = c.load.busy.during(func() (err error) {
		us, err = bench.Together(ctx, c.processes, r.batch, func(batch bench.Batch) (results.Sample, error) {
			return p.Measure(ctx, batch)
		})
		return err
	})
	return us.Scale(0.5), lost, err
}

// channel is a path and an engine of a message: a contender in a ping-pong.
type channel struct {
	path   p2p.Path
	by     contender
	remote bool
}

// String returns the name of the channel in results.
func (c channel) String() string { return c.row().Contender() }

// row begins the row of a channel.
func (c channel) row() results.Row {
	row := results.NewRow().Label("path", c.path)
	if c.remote {
		row = row.Label("remote", "yes")
	}
	return row.Join(c.by.row())
}

// channelsOf returns the channels of paths and engines, each once. The driver's copies are the last ones of a path,
// since the others are compared with them.
func channelsOf(paths []string, by []contender, remote bool) (all []channel) {
	for _, path := range paths {
		for _, one := range by {
			l := channel{p2p.Path(path), one, remote && slices.Contains([]string{string(p2p.Peer), string(pathIPC)}, path)}
			if !slices.Contains(all, l) {
				all = append(all, l)
			}
		}
	}
	return all
}

// tripEnd is one side of a round trip, and the stream that it queues on.
type tripEnd struct {
	side   packing.Side
	stream *streams.Stream
}

// transfer sends a message from one device to another, any number of times, see [packing.Transfer]. A stream of a
// device of another process is nil.
type transfer interface {
	Queue(dst, src *streams.Stream) error
	Close() error
}

// roundTrip is a message to the other device and the same one back.
type roundTrip struct {
	resources   streams.Resources
	ping, pong  transfer
	here, there *streams.Stream
	last        *streams.Stream // of this process, with the end of the round trip
	home        *streams.Event
	inFragments bool // messages are sent in fragments, not by one job of the sender
}

// newRoundTrip makes it between two sides, which queue on streams of their devices.
func (c *pingCase) newRoundTrip(ctx context.Context, here, there tripEnd, o packing.TransferOptions) (*roundTrip,
	error) {
	r := &roundTrip{here: here.stream, there: there.stream, last: cmp.Or(here.stream, there.stream)}
	r.home = r.resources.NewEvent(r.last.Device())
	streams.Into(&r.resources, &r.ping)(c.newTransfer(ctx, r, there.side, here.side, o))
	streams.Into(&r.resources, &r.pong)(c.newTransfer(ctx, r, here.side, there.side, o))
	return r, r.resources.Done()
}

// newTransfer prepares messages within this process, or the end of this process.
func (c *pingCase) newTransfer(ctx context.Context, r *roundTrip, dst, src packing.Side,
	o packing.TransferOptions) (transfer, error) {
	if !c.processes.IsAlone() {
		r.inFragments = o.Path == pathIPC
		return c.newHalf(ctx, dst, src, o)
	}
	t, err := packing.NewTransfer(dst, src, o)
	r.inFragments = r.inFragments || err == nil && t.InFragments()
	return t, bench.LeaveOut(err, packing.ErrUnsuited)
}

// batch queues n round trips, each after the one before, and waits for the last. It
// returns the time of one in microseconds.
func (r *roundTrip) batch(n int) (float64, error) {
	start := time.Now()
	err := timing.Times(n, func() error {
		return errors.Join(r.ping.Queue(r.there, r.here), r.pong.Queue(r.here, r.there))
	})
	err = cmp.Or(err, r.last.Record(r.home), timing.Await(r.home, start))
	return time.Since(start).Seconds() * 1e6 / float64(n), err
}

// Close frees its memory. Closing twice is not an error.
func (r *roundTrip) Close() error { return r.resources.Close() }
