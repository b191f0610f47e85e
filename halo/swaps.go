package halo

import (
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// swapLimit is how long a GPU waits for a neighbour to take part in an exchange.
const swapLimit = 2 * time.Minute

// makeSwaps makes one kernel a GPU ready that does a whole exchange, where that
// is possible: every message takes path direct and every subdomain has a GPU of
// its own. Such an exchange needs one launch a GPU and no event between them.
func (x *Exchanger) makeSwaps(c *kernels.Compiler) error {
	if !haveOwnGPUs(x.plan.Placement.Devices) {
		return nil
	}
	ends := make([]kernels.SwapEnd, len(x.plan.Placement.Devices))
	for rank, d := range x.plan.Placement.Devices {
		ends[rank].Device = d
	}
	neighbours := map[[2]int]bool{}
	for _, m := range x.plan.Messages {
		if m.Path != p2p.Direct {
			return nil
		}
		for _, p := range m.Parts {
			src, dst := x.ends(m, p)
			ends[m.From].Stores = append(ends[m.From].Stores, kernels.Store(dst, p.Ghost, src, p.Send))
		}
		for _, pair := range [][2]int{{m.From, m.To}, {m.To, m.From}} {
			if m.From != m.To && !neighbours[pair] {
				neighbours[pair] = true
				ends[pair[0]].Neighbours = append(ends[pair[0]].Neighbours, pair[1])
			}
		}
	}
	swaps, err := c.Swaps(ends, swapLimit)
	if err != nil {
		return err
	}
	for _, s := range swaps {
		x.Add(s)
	}
	x.swaps = swaps
	return nil
}

// Err returns an error if a GPU has waited for another in vain in an exchange
// that was queued before.
func (x *Exchanger) Err() error {
	for _, s := range x.swaps {
		if err := s.Err(); err != nil {
			return err
		}
	}
	return nil
}

// ExchangeOn queues the part of one subdomain in an exchange on a stream of its
// device, for callers that have a thread a device: the stream goes on when the
// ghosts have come and the points are no longer needed. Every rank must be given
// its part as often as the others, in any order. It is possible where Swaps
// says so.
func (x *Exchanger) ExchangeOn(rank int, s *streams.Stream) error {
	return x.swaps[rank].Queue(s)
}

// Swaps reports whether the exchange is one kernel a GPU: all messages take path
// direct, and every subdomain has a GPU of its own.
func (x *Exchanger) Swaps() bool { return x.swaps != nil }

// startSwaps queues an exchange by swaps beside the callers' streams.
func (x *Exchanger) startSwaps(at []*streams.Stream) error {
	for rank, l := range x.lanes {
		if err := at[rank].Record(l.ready); err != nil {
			return err
		}
		if err := l.send.Wait(l.ready); err != nil {
			return err
		}
		if err := x.ExchangeOn(rank, l.send); err != nil {
			return err
		}
		if err := l.send.Record(l.left); err != nil {
			return err
		}
	}
	return nil
}
