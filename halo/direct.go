package halo

import (
	"errors"
	"fmt"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// directLimit is how long a GPU waits for a neighbour to take part in an exchange, unless SetLimit says otherwise.
const directLimit = 2 * time.Minute

// makeDirect makes one kernel a GPU ready that does a whole exchange, where that
// is possible: every message takes path direct and every subdomain has a GPU of
// its own. Such an exchange needs one launch a GPU and no event between them.
func (x *Exchanger) makeDirect(c *kernels.Compiler) error {
	if len(x.plan.Messages) == 0 || !x.plan.Placement.Processes.IsAlone() || !haveOwnGPUs(x.plan.Placement.Devices) || x.plan.hasGaps() {
		return nil
	}
	ranks := make([]pack.DirectExchangeRank, len(x.plan.Placement.Devices))
	for rank, d := range x.plan.Placement.Devices {
		ranks[rank].Device = d
	}
	neighbours := map[[2]int]bool{}
	for _, m := range x.plan.Messages {
		if !m.isStored() {
			return nil
		}
		for _, p := range m.Parts {
			src, dst := x.ends(m, p)
			ranks[m.From].Stores = append(ranks[m.From].Stores, pack.Store(dst, p.Ghost, src, p.Send))
		}
		for _, pair := range [][2]int{{m.From, m.To}, {m.To, m.From}} {
			if m.From != m.To && !neighbours[pair] {
				neighbours[pair] = true
				ranks[pair[0]].Neighbours = append(ranks[pair[0]].Neighbours, pair[1])
			}
		}
	}
	exchanges, err := pack.NewDirectExchanges(c, ranks, directLimit)
	if err != nil {
		return err
	}
	for _, s := range exchanges {
		x.resources.Add(s)
	}
	x.direct = exchanges
	return nil
}

// ExchangeRank queues the part of one subdomain in an exchange on a stream of its
// device, for callers that have a thread a device: the stream goes on when the
// ghosts have come and the points are no longer needed. Every rank must be given
// its part as often as the others, in any order. It is possible where IsDirect
// says so.
func (x *Exchanger) ExchangeRank(rank int, s *streams.Stream) error {
	return x.queueRank(rank, s, (*pack.DirectExchange).Queue)
}

// BeginRank and EndRank are ExchangeRank in two halves, for callers whose kernels store all that the subdomain sends into the ghosts of the
// neighbours by themselves. What is queued between the halves may store there; behind the second half the ghosts of the subdomain have come.
// They are for subdomains that send nothing to themselves. The first half may be left out, for all ranks, where what is queued before says that all
// neighbours have read their ghosts: it only waits for that.
func (x *Exchanger) BeginRank(rank int, s *streams.Stream) error {
	return x.queueRank(rank, s, (*pack.DirectExchange).Begin)
}

// EndRank is the second half, see BeginRank.
func (x *Exchanger) EndRank(rank int, s *streams.Stream) error {
	return x.queueRank(rank, s, (*pack.DirectExchange).End)
}

func (x *Exchanger) queueRank(rank int, s *streams.Stream, queue func(*pack.DirectExchange, *streams.Stream) error) error {
	switch err := x.usable(); {
	case err != nil:
		return err
	case x.direct == nil:
		return errors.New("halo: an exchange that is no kernel a GPU, see IsDirect: no rank can be given its part alone")
	case rank < 0 || rank >= len(x.direct):
		return fmt.Errorf("halo: rank %d of %d", rank, len(x.direct))
	case x.direct[rank].Err() != nil:
		return x.direct[rank].Err()
	}
	if err := x.plan.Placement.suits(rank, s); err != nil {
		return err
	}
	return queue(x.direct[rank], s)
}

// SetLimit sets how long a GPU waits for a neighbour in exchanges that are queued from now on: two minutes if nothing is said. After the
// limit Err returns an error. It changes nothing where IsDirect is false.
func (x *Exchanger) SetLimit(limit time.Duration) {
	if x == nil {
		return
	}
	for _, s := range x.direct {
		s.SetLimit(limit)
	}
}

// IsDirect reports whether the exchange is one kernel a GPU: there are messages, all take path
// direct, and every subdomain has a GPU of its own.
func (x *Exchanger) IsDirect() bool { return x != nil && x.direct != nil }

// beginDirect queues an exchange by direct exchanges beside the callers' streams.
func (x *Exchanger) beginDirect() error {
	for rank, l := range x.channels {
		if err := l.sendStream.Wait(l.ready); err != nil {
			return err
		}
		if err := x.direct[rank].Queue(l.sendStream); err != nil {
			return err
		}
		if err := l.sendStream.Record(l.sent); err != nil {
			return err
		}
	}
	return nil
}
