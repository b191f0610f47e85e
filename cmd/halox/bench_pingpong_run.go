package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// pingRun is the two devices that messages are timed between, and how. They may be
// the same.
type pingRun struct {
	from, to *streams.Device
	compiler *kernels.Compiler
	channels []channel
	check    bool          // what arrives is compared with the host's
	budget   time.Duration // for each measurement
	packing  packing.Options
	transfer packing.TransferOptions // what channels' own are added to
	busy     *busy                   // nil where nothing else runs
	route    results.Row             // the labels that all rows have
}

// tasks are a row for each channel that suits a workload.
func (r *pingRun) tasks(work []workloads.Workload) (all []task) {
	for _, w := range work {
		all = append(all, task{layoutOf(w).Join(r.route), func(ctx context.Context) ([]results.Row, error) {
			rows, err := r.measure(ctx, w)
			if err != nil {
				err = fmt.Errorf("%v: %w", w, err)
			}
			return rows, err
		}})
	}
	return all
}

// measure returns a row for each channel whose engine suits the workload. It frees what it
// made.
func (r *pingRun) measure(ctx context.Context, w workloads.Workload) (rows []results.Row, err error) {
	c := &pingCase{pingRun: r}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.prepare(w); err != nil {
		return nil, err
	}
	contiguous, err := c.contiguous(w.Bytes)
	if err != nil {
		return nil, fmt.Errorf("contiguous message: %w", err)
	}
	for _, l := range r.channels {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row, us, err := c.measure(l)
		if errors.Is(err, packing.ErrUnsuited) {
			continue
		}
		if err != nil {
			return rows, fmt.Errorf("by %v: %w", l, err)
		}
		rows = append(rows, layoutOf(w).Join(r.route).Join(row).Transfer(w.Bytes, us, contiguous))
	}
	return rows, nil
}

// pingCase is one workload with its memory on both devices.
type pingCase struct {
	*pingRun
	resources   streams.Resources
	here, there *pingEnd
	ping, pong  *trial // what arrives there, and here; nil where nothing is compared
}

// pingEnd is what one device has of it.
type pingEnd struct {
	stream  *streams.Stream
	packer  *packing.Packer
	array   *streams.Memory // of the size that the workload says
	shape   workloads.Side
	message *packing.MessageLayout
}

// prepare makes both ends: one has what the workload sends, the other what it receives.
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

// end makes what one device needs.
func (c *pingCase) end(d *streams.Device, shape workloads.Side, bytes int64) (e *pingEnd, err error) {
	e = &pingEnd{shape: shape}
	if e.message, err = packing.NewMessageLayout(shape.Type, shape.Count); err != nil {
		return nil, err
	}
	if e.array, err = d.Alloc(max(shape.Array, bytes)); err != nil {
		return nil, err
	}
	c.resources.Add(e.array)
	if e.stream, err = d.NewStream(streams.Urgent); err != nil {
		return nil, err
	}
	c.resources.Add(e.stream)
	if e.packer, err = packing.New(c.compiler, d, c.packing); err != nil {
		return nil, err
	}
	c.resources.Add(e.packer)
	return e, nil
}

// side returns the end for a transfer.
func (e *pingEnd) side() packing.Side {
	return packing.Side{Packer: e.packer, Place: packing.Place{Data: e.array.All(), Origin: e.shape.Origin}, Message: e.message}
}

// window returns what is compared: all bytes between the first and the last that the
// message touches, and a few around them.
func (e *pingEnd) window() streams.Span {
	const around = 256
	l := e.message.Layout
	lo, hi := e.shape.Origin+l.TrueLB()-around, e.shape.Origin+l.TrueUB()+around
	lo, hi = max(0, lo), min(hi, e.array.Size())
	return e.array.Span(lo, hi-lo)
}

// newTrial works out, by the definition of packing, what arrives at one end from the
// other. It returns nil for a layout that spans too much.
func (c *pingCase) newTrial(to, from *pingEnd) (*trial, error) {
	written, read := to.window(), from.window()
	if written.Length > maxCompared || read.Length > maxCompared {
		return nil, nil
	}
	return newTrial(to.stream, from.stream, written, read, &c.resources, func(dst, src []byte) error {
		packed := make([]byte, from.message.Layout.Size())
		if err := datatype.Pack(packed, src, from.shape.Origin-read.Offset, from.shape.Type, from.shape.Count); err != nil {
			return err
		}
		return datatype.Unpack(dst, to.shape.Origin-written.Offset, packed, to.shape.Type, to.shape.Count)
	})
}

// contiguous returns the time of one way of as many bytes in one piece, by the driver's
// copy between the same arrays, in microseconds. It is a transfer that is one copy.
func (c *pingCase) contiguous(bytes int64) (us results.Sample, err error) {
	t, err := datatype.Contiguous(int(bytes), datatype.Byte)
	if err != nil {
		return us, err
	}
	message, err := packing.NewMessageLayout(t, 1)
	if err != nil {
		return us, err
	}
	side := func(e *pingEnd) packing.Side {
		return packing.Side{Packer: e.packer, Place: packing.Place{Data: e.array.All()}, Message: message}
	}
	r, err := c.newRoundTrip(side(c.here), side(c.there), packing.TransferOptions{Path: p2p.Direct, Engine: packing.Copies})
	if err != nil {
		return us, err
	}
	us, _, err = c.time(r)
	return us, errors.Join(err, r.Close())
}

// measure compares what arrives by a channel and times it.
func (c *pingCase) measure(l channel) (row results.Row, us results.Sample, err error) {
	o := c.transfer
	o.Path, o.Engine, o.Remote = l.path, l.engine, l.remote
	r, err := c.newRoundTrip(c.here.side(), c.there.side(), o)
	if err != nil {
		return row, us, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	row = l.row()
	if c.ping != nil && c.pong != nil {
		if err := c.ping.do(oneWay{r.ping, r.here}); err != nil {
			return row, us, fmt.Errorf("there: %w", err)
		}
		if err := c.pong.do(oneWay{r.pong, r.there}); err != nil {
			return row, us, fmt.Errorf("back: %w", err)
		}
		row.Checked = true
	}
	us, lost, err := c.time(r)
	if c.busy != nil {
		row = row.Number(results.BusyLost, lost)
	}
	return row, us, err
}

// time returns the time of one way, in microseconds, and what else ran lost by it.
func (c *pingCase) time(r *roundTrip) (us results.Sample, lost float64, err error) {
	p := pace{first: 1, most: 1000, length: c.budget.Seconds() * 1e6 / batches}
	lost, err = c.busy.during(func() (err error) {
		us, err = p.measure(r.batch)
		return err
	})
	return us.Scale(0.5), lost, err
}

// roundTrip is a message there and the same one back.
type roundTrip struct {
	resources   streams.Resources
	ping, pong  *packing.Transfer
	here, there *streams.Stream
	home        *streams.Event
}

func (c *pingCase) newRoundTrip(here, there packing.Side, o packing.TransferOptions) (r *roundTrip, err error) {
	made := &roundTrip{here: c.here.stream, there: c.there.stream}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	if made.ping, err = packing.NewTransfer(there, here, o); err != nil {
		return nil, err
	}
	made.resources.Add(made.ping)
	if made.pong, err = packing.NewTransfer(here, there, o); err != nil {
		return nil, err
	}
	made.resources.Add(made.pong)
	if made.home, err = c.from.NewEvent(); err != nil {
		return nil, err
	}
	made.resources.Add(made.home)
	return made, nil
}

// batch queues n round trips, each after the one before, and waits for the last. It
// returns the time of one in microseconds.
func (r *roundTrip) batch(n int) (float64, error) {
	start := time.Now()
	for range n {
		if err := errors.Join(r.ping.Queue(r.there, r.here), r.pong.Queue(r.here, r.there)); err != nil {
			return 0, err
		}
	}
	if err := errors.Join(r.here.Record(r.home), await(r.home, start.Add(waitLimit))); err != nil {
		return 0, err
	}
	return time.Since(start).Seconds() * 1e6 / float64(n), nil
}

// await waits for an event until a time. It does not sleep, as [streams.Event.Sync] does
// after a while: what is timed here may take less than that.
func await(e *streams.Event, until time.Time) error {
	for {
		done, err := e.Done()
		if done || err != nil {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("what device %v was given is not done after %v", e.Device(), waitLimit)
		}
		runtime.Gosched()
	}
}

// oneWay is a transfer as a trial queues it: from a stream of the sender.
type oneWay struct {
	transfer *packing.Transfer
	src      *streams.Stream
}

// Queue queues the transfer, to a stream of the receiver.
func (o oneWay) Queue(dst *streams.Stream) error { return o.transfer.Queue(dst, o.src) }

// Close frees what it holds. Closing twice is no error.
func (c *pingCase) Close() error { return c.resources.Close() }

// Close frees what it holds. Closing twice is no error.
func (r *roundTrip) Close() error { return r.resources.Close() }
