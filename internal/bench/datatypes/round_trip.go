package datatypes

import (
	"errors"
	"time"

	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/streams"
)

// tripEnd is one side of a round trip, and the stream that it queues on.
type tripEnd struct {
	side   packing.Side
	stream *streams.Stream
}

// roundTrip is a message there and the same one back.
type roundTrip struct {
	resources   streams.Resources
	ping, pong  *packing.Transfer
	here, there *streams.Stream
	home        *streams.Event
}

// newRoundTrip makes it between two sides, which queue on streams of their devices.
func newRoundTrip(here, there tripEnd, o packing.TransferOptions) (r *roundTrip, err error) {
	made := &roundTrip{here: here.stream, there: there.stream}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	if made.ping, err = packing.NewTransfer(there.side, here.side, o); err != nil {
		return nil, err
	}
	made.resources.Add(made.ping)
	if made.pong, err = packing.NewTransfer(here.side, there.side, o); err != nil {
		return nil, err
	}
	made.resources.Add(made.pong)
	if made.home, err = here.stream.Device().NewEvent(); err != nil {
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
	if err := errors.Join(r.here.Record(r.home), timing.Await(r.home, start)); err != nil {
		return 0, err
	}
	return time.Since(start).Seconds() * 1e6 / float64(n), nil
}

// Close frees what it holds. Closing twice is no error.
func (r *roundTrip) Close() error { return r.resources.Close() }

// inFragments reports whether the messages go in fragments, and not as one job of the sender.
func (r *roundTrip) inFragments() bool { return r.ping.InFragments() || r.pong.InFragments() }

// queuePing queues the message there, to a stream of its receiver; queuePong the one back.
func (r *roundTrip) queuePing(there *streams.Stream) error { return r.ping.Queue(there, r.here) }
func (r *roundTrip) queuePong(here *streams.Stream) error  { return r.pong.Queue(here, r.there) }
