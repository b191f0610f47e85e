package datatypes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/bench/trial"
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
	route    results.Row             // the labels that all rows begin with
	load     results.Row             // those of what runs besides
}

// pingCase is one workload with its memory on both devices.
type pingCase struct {
	*pingRun
	resources   streams.Resources
	here, there *pingEnd
	ping, pong  *trial.Trial // what arrives there, and here; nil where nothing is compared
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
func (e *pingEnd) side() tripEnd {
	place := packing.Place{Data: e.array.All(), Origin: e.shape.Origin}
	return tripEnd{packing.Side{Packer: e.packer, Place: place, Message: e.message}, e.stream}
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
func (c *pingCase) newTrial(to, from *pingEnd) (*trial.Trial, error) {
	written, read := to.window(), from.window()
	return trial.New(to.stream, from.stream, written, read, &c.resources, func(dst, src []byte) error {
		packed := make([]byte, from.message.Layout.Size())
		if err := datatype.Pack(packed, src, from.shape.Origin-read.Offset, from.shape.Type, from.shape.Count); err != nil {
			return err
		}
		return datatype.Unpack(dst, to.shape.Origin-written.Offset, packed, to.shape.Type, to.shape.Count)
	})
}

// contiguous returns the time of one way of as many bytes in one piece, by the driver's
// copy between the same arrays, in microseconds. It is a transfer that is one copy.
func (c *pingCase) contiguous(ctx context.Context, bytes int64) (us results.Sample, err error) {
	t, err := datatype.Contiguous(int(bytes), datatype.Byte)
	if err != nil {
		return us, err
	}
	message, err := packing.NewMessageLayout(t, 1)
	if err != nil {
		return us, err
	}
	whole := func(e *pingEnd) tripEnd {
		return tripEnd{packing.Side{Packer: e.packer, Place: packing.Place{Data: e.array.All()}, Message: message}, e.stream}
	}
	r, err := newRoundTrip(whole(c.here), whole(c.there), packing.TransferOptions{Path: p2p.Direct, Engine: packing.Copies})
	if err != nil {
		return us, err
	}
	us, _, err = c.time(ctx, r)
	return us, errors.Join(err, r.Close())
}

// measure compares what arrives by a channel and times it.
func (c *pingCase) measure(ctx context.Context, l channel) (row results.Row, us results.Sample, err error) {
	o := c.transfer
	o.Path, o.Engine, o.Remote = l.path, l.engine, l.remote
	r, err := newRoundTrip(c.here.side(), c.there.side(), o)
	if err != nil {
		return row, us, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	row = c.route.Join(c.limits(r)).Join(c.load).Join(l.row())
	if note := c.ignored(r); note != "" {
		row.Note = note
	}
	if c.ping != nil && c.pong != nil {
		if err := c.ping.Do(r.queuePing); err != nil {
			return row, us, fmt.Errorf("there: %w", err)
		}
		if err := c.pong.Do(r.queuePong); err != nil {
			return row, us, fmt.Errorf("back: %w", err)
		}
		row.Checked = true
	}
	us, lost, err := c.time(ctx, r)
	if c.busy != nil {
		row = row.Number(results.BusyLost, lost)
	}
	return row, us, err
}

// limits begins the labels of a row with those of messages in fragments.
func (r *pingRun) limits(t *roundTrip) results.Row {
	if !t.inFragments() {
		return results.NewRow()
	}
	return results.NewRow().Label("fragment", positive(r.transfer.Fragment)).Label("ring", positive(r.transfer.Ring))
}

// ignored says which options a round trip had no use for.
func (r *pingRun) ignored(t *roundTrip) string {
	if t.inFragments() || r.transfer.Fragment == 0 && r.transfer.Ring == 0 {
		return ""
	}
	return "sent by one job, without fragments and their ring"
}

// maxRoundTrips is how many a batch has at most.
const maxRoundTrips = 1000

// time returns the time of one way, in microseconds, and what else ran lost by it.
func (c *pingCase) time(ctx context.Context, r *roundTrip) (us results.Sample, lost float64, err error) {
	p := timing.Pace{First: 1, Max: maxRoundTrips, Batch: c.budget / timing.MinBatches}
	lost, err = c.busy.during(func() (err error) {
		us, err = p.Measure(ctx, r.batch)
		return err
	})
	return us.Scale(0.5), lost, err
}

// Close frees what it holds. Closing twice is no error.
func (c *pingCase) Close() error { return c.resources.Close() }
