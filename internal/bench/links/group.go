package links

import (
	"cmp"
	"context"
	"errors"

	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// senderGroup is the senders that send at once, and the gate behind which their messages wait until
// all of them are queued: what is timed is what devices and links do, not how fast the host
// queues it.
//
// The clocks of two devices have nothing in common, so there is one clock, that of the first
// sender's device. It starts behind the gate. The others begin when they have heard that it
// has started, and it stops when it has heard of each that its last message has arrived; both
// by events, with which one device waits for another. So it counts all from the first to
// begin to the last to end, and what was not at once counts as what it took. What it counts
// too much is how long an event takes to another device and one back, some microseconds.
type senderGroup struct {
	senders []*sender
	gate    *flags.Gate // of the first sender's device
}

// newSenderGroup makes senders of the hops that have been tried, and their gate.
func (f *fabric) newSenderGroup(hops []hop, open *streams.Resources) (t *senderGroup, err error) {
	t = &senderGroup{}
	for _, h := range hops {
		c, err := f.ready(h, open)
		if err != nil {
			return nil, err
		}
		t.senders = append(t.senders, c)
	}
	if t.gate, err = flags.NewGate(f.compiler, hops[0].from.device, timing.GateLimit); err != nil {
		return nil, err
	}
	open.Add(t.gate)
	return t, nil
}

// time returns the time of one message of that size by each of the senders, all at once, in
// microseconds.
func (t *senderGroup) time(ctx context.Context, bytes int64, p timing.Pace) (us results.Sample, err error) {
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	for _, c := range t.senders {
		if err := c.load(bytes, &open); err != nil {
			return us, err
		}
		if err := errors.Join(c.send(), c.settle()); err != nil { // the first launch of a kernel might wait for a gate
			return us, err
		}
	}
	p.Max = min(p.Max, t.most())
	return p.Measure(ctx, t.batch)
}

// most returns how many messages of each sender are queued behind the gate, so that no device
// has more than timing.MaxGated operations.
func (t *senderGroup) most() int {
	each := map[*streams.Device]int{}
	for _, c := range t.senders {
		each[c.from.device] += c.operations
		if c.operations > 1 { // the receiver has as many
			each[c.to.device] += c.operations
		}
	}
	busiest := 1
	for _, operations := range each {
		busiest = max(busiest, operations)
	}
	return max(1, timing.MaxGated/busiest-1)
}

// batch returns the time of n messages by each of the senders, over n, in microseconds. What
// was queued is done when it returns, also where something could not be queued.
func (t *senderGroup) batch(n int) (float64, error) {
	first := t.senders[0]
	if err := t.gate.Shut(first.home); err != nil {
		return 0, err
	}
	err := errors.Join(t.queue(n), t.gate.Open())
	for _, c := range t.senders {
		err = cmp.Or(err, c.settle())
	}
	if err != nil {
		return 0, err
	}
	took, err := first.end.Since(first.start)
	return took.Seconds() * 1e6 / float64(n), err
}

// queue has each sender send n messages, in turns, from the start of the first one's clock to
// its end. One more comes before: where the clock starts, its device is at work.
func (t *senderGroup) queue(n int) error {
	first, others := t.senders[0], t.senders[1:]
	err := errors.Join(first.send(), first.home.Record(first.start))
	for _, c := range others {
		err = cmp.Or(err, c.home.Wait(first.start))
	}
	for range n {
		for _, c := range t.senders {
			if err != nil {
				return err
			}
			err = c.send()
		}
	}
	for _, c := range others {
		err = cmp.Or(err, errors.Join(c.home.Record(c.end), first.home.Wait(c.end)))
	}
	return cmp.Or(err, first.home.Record(first.end))
}
