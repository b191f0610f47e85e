package halo

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// NewExchanger makes ready to exchange the fields, one for each Spec of the plan
// and in that order. Close frees what it holds. Where several processes share the grid, all
// call it, in the same order as for other plans, and where one cannot do it, all return an error.
func NewExchanger(plan *Plan, c *kernels.Compiler, fields ...*Field) (x *Exchanger, err error) {
	made, err := newExchanger(plan, c, fields)
	if err = plan.agree("make an exchange of fields", err); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	if err := made.joinProcesses(); err != nil {
		return nil, err
	}
	if err := made.agree(made.makeReady(c)); err != nil {
		return nil, err
	}
	return made, nil
}

// makeReady makes all that an exchange needs.
func (x *Exchanger) makeReady(c *kernels.Compiler) error {
	if err := errors.Join(x.addCopiers(c), x.addPackers(c)); err != nil {
		return err
	}
	for _, m := range x.plan.Messages {
		t, err := x.newTransfer(m)
		if err != nil {
			return fmt.Errorf("halo: message from subdomain %d in %v: %w", m.From, m.Dir, err)
		}
		x.transfers = append(x.transfers, t)
	}
	return x.makeDirect(c)
}

// newExchanger makes an exchanger that has no transfers yet, of what suits each other.
func newExchanger(plan *Plan, c *kernels.Compiler, fields []*Field) (*Exchanger, error) {
	if err := plan.fits(fields); err != nil {
		return nil, err
	}
	if c == nil {
		return nil, errNoCompiler
	}
	return &Exchanger{plan: plan, fields: slices.Clone(fields), copiers: map[*streams.Device]*pack.BoxCopier{}}, nil
}

var errNoCompiler = errors.New("halo: the compiler is nil: see kernels.NewCompiler")

// addCopiers makes what copies on each device.
func (x *Exchanger) addCopiers(c *kernels.Compiler) (err error) {
	for _, d := range x.plan.Placement.Devices {
		if d == nil || x.copiers[d] != nil {
			continue
		}
		if x.copiers[d], err = pack.NewBoxCopier(c, d); err != nil {
			return err
		}
	}
	return nil
}

// Start queues an exchange and returns. at has a stream for every subdomain, by
// rank, of its device: the exchange begins when what was queued there before is
// done, on the stream of the sender and on that of the receiver. Until Wait, work
// queued on these streams may read the fields but for their ghosts, and must not
// write the points that neighbours get.
func (x *Exchanger) Start(at []*streams.Stream) error {
	if err := x.check(at, false); err != nil {
		return err
	}
	if x.channels == nil {
		if err := x.makeChannels(); err != nil {
			return err
		}
	}
	x.hold()
	return x.fail(x.begin(at))
}

// begin queues what Start does.
func (x *Exchanger) begin(at []*streams.Stream) error {
	for rank, l := range x.channels {
		if l == nil {
			continue
		}
		l.in.expect(at[rank])
		l.sendStream.Follow(at[rank])
		l.receiveStream.Follow(at[rank])
		if err := at[rank].Record(l.ready); err != nil {
			return err
		}
	}
	if x.direct != nil {
		return x.beginDirect()
	}
	for _, l := range x.channels {
		if l == nil {
			continue
		}
		if err := l.send(); err != nil {
			return err
		}
	}
	if x.across != nil {
		return nil // what comes is waited for on the host, in Wait
	}
	return x.receiveAll()
}

// receiveAll queues what all subdomains receive.
func (x *Exchanger) receiveAll() error {
	for _, l := range x.channels {
		if l == nil {
			continue
		}
		if err := l.receive(); err != nil {
			return err
		}
	}
	return nil
}

// fail returns the error of an exchange that was queued in part: what ghosts hold then nobody
// knows, and so the exchanger is of no use any more.
func (x *Exchanger) fail(err error) error {
	if err == nil {
		return nil
	}
	x.release()
	err = x.tell(err)
	x.failed = fmt.Errorf("halo: an exchange has failed before, and left ghosts undefined: %w", err)
	return err
}

// Wait makes the streams wait, on the devices, until the exchange that Start
// began has brought the ghosts of each and no longer needs its points. The host
// does not wait, but for messages of other processes to come. Until then the fields cannot be
// closed.
func (x *Exchanger) Wait(at []*streams.Stream) error {
	if err := x.check(at, true); err != nil {
		return err
	}
	x.release()
	if x.across != nil {
		if err := x.receiveAll(); err != nil {
			return x.fail(err)
		}
	}
	for rank, l := range x.channels {
		if l == nil {
			continue
		}
		done := l.received // after all that it sends and receives
		if x.direct != nil {
			done = l.sent
		}
		if err := at[rank].Wait(done); err != nil {
			return x.fail(err)
		}
	}
	return nil
}

// Exchange is Start and Wait. Where an exchange is one kernel a GPU, it queues
// that on the streams themselves.
func (x *Exchanger) Exchange(at []*streams.Stream) error {
	if !x.IsDirect() {
		if err := x.Start(at); err != nil {
			return err
		}
		return x.Wait(at)
	}
	if err := x.check(at, false); err != nil {
		return err
	}
	for rank, s := range at {
		if err := x.direct[rank].Queue(s); err != nil {
			return x.fail(err)
		}
	}
	return nil
}

// check returns an error unless a call with these streams makes sense now.
func (x *Exchanger) check(at []*streams.Stream, started bool) error {
	if err := x.usable(); err != nil {
		return err
	}
	switch {
	case x.Err() != nil:
		return x.Err()
	case x.started && !started:
		return fmt.Errorf("halo: an exchange is under way: call Wait before the next Start")
	case !x.started && started:
		return fmt.Errorf("halo: no exchange is under way: call Start before Wait")
	}
	return x.plan.Placement.Suits(at)
}

// makeChannels makes what Start needs beyond the transfers.
func (x *Exchanger) makeChannels() error {
	channels := make([]*channel, len(x.plan.Placement.Devices))
	for rank, d := range x.plan.Placement.Devices {
		if d == nil {
			continue
		}
		l, err := x.newChannel(d)
		if err != nil {
			return err
		}
		channels[rank] = l
	}
	if x.direct == nil {
		if err := x.connect(channels); err != nil {
			return err
		}
	}
	x.channels = channels
	return nil
}

func (x *Exchanger) newChannel(d *streams.Device) (*channel, error) {
	l := &channel{}
	if x.across != nil {
		l.waits = x.across.waits
	}
	for _, s := range []**streams.Stream{&l.sendStream, &l.receiveStream} {
		made, err := d.NewStream(streams.Urgent)
		if err != nil {
			return nil, err
		}
		x.resources.Add(made)
		*s = made
	}
	l.sendStream.SetName("send")
	l.receiveStream.SetName("receive")
	for _, e := range []**streams.Event{&l.ready, &l.sent, &l.received} {
		made, err := d.NewEvent()
		if err != nil {
			return nil, err
		}
		x.resources.Add(made)
		*e = made
	}
	return l, nil
}

// connect gives each channel the work of all transfers of its subdomain. Copies of all
// messages are one launch; additions, which may meet in a point, one after another.
func (x *Exchanger) connect(channels []*channel) error {
	for rank, l := range channels {
		if l == nil {
			continue
		}
		l.out = end{rank: rank, work: streams.Pack, name: "send"}
		l.in = end{rank: rank, work: streams.Unpack, name: "receive"}
	}
	for i, m := range x.plan.Messages {
		t, from, to := x.transfers[i], channels[m.From], channels[m.To]
		if from != nil {
			from.out.join(&t.out)
		}
		if to != nil {
			to.in.join(&t.in)
		}
		if from != nil && to != nil && !slices.Contains(from.to, to) {
			from.to, to.from = append(from.to, to), append(to.from, from)
		}
	}
	for _, l := range channels {
		if l == nil {
			continue
		}
		if err := x.ready(&l.out); err != nil {
			return err
		}
		if err := x.ready(&l.in); err != nil {
			return err
		}
	}
	return nil
}

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

// BeginRank and EndRank are ExchangeRank in two halves, for callers whose kernels store all that the subdomain sends
// into the ghosts of the neighbours by themselves. What is queued between the halves may store there; behind the second
// half the ghosts of the subdomain have come. They are for subdomains that send nothing to themselves. The first half
// may be left out, for all ranks, where what is queued before says that all neighbours have read their ghosts: it only
// waits for that.
func (x *Exchanger) BeginRank(rank int, s *streams.Stream) error {
	return x.queueRank(rank, s, (*pack.DirectExchange).Begin)
}

// EndRank is the second half, see BeginRank.
func (x *Exchanger) EndRank(rank int, s *streams.Stream) error {
	return x.queueRank(rank, s, (*pack.DirectExchange).End)
}

func (x *Exchanger) queueRank(rank int, s *streams.Stream, queue func(*pack.DirectExchange,
	*streams.Stream) error) error {
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

// SetLimit sets how long a GPU waits for a neighbour in exchanges that are queued from now on: two minutes if nothing
// is said. After the limit Err returns an error. It changes nothing where IsDirect is false.
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
