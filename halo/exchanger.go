package halo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// Exchanger holds the buffers and launches that carry out a plan for fields. All
// of it is made by NewExchanger; an exchange makes nothing.
//
// One thread may drive it with Start and Wait, for all devices. Several threads
// drive its Transfers, each its own.
type Exchanger struct {
	resources streams.Resources
	plan      *Plan
	fields    []*Field
	copiers   map[*streams.Device]*pack.BoxCopier
	packers   map[*streams.Device]*packing.Packer // where fields have types with gaps
	transfers []*Transfer                         // by message
	direct    []*pack.DirectExchange              // by rank; nil where an exchange takes more
	channels  []*channel                          // by rank, made at the first Start
	across    *across                             // nil where this process has all subdomains
	started   bool
	failed    error // of an exchange that was queued in part; nothing is queued after it
	closed    bool
}

var errNoExchanger = errors.New("halo: the exchanger is nil: see NewExchanger")

// Transfer returns the work of one message of the plan, by its index. Where there is no such
// message, Send and Receive return that as their error.
func (x *Exchanger) Transfer(message int) *Transfer {
	if x == nil {
		return &Transfer{usable: func() error { return errNoExchanger }}
	}
	if message < 0 || message >= len(x.transfers) {
		err := fmt.Errorf("halo: message %d of a plan of %d", message, len(x.transfers))
		return &Transfer{usable: func() error { return err }}
	}
	return x.transfers[message]
}

// usable returns an error if there is no exchanger, it or one of its fields is closed, or an exchange
// has failed.
func (x *Exchanger) usable() error {
	if x == nil {
		return errNoExchanger
	}
	if x.closed {
		return errors.New("halo: the exchanger is closed")
	}
	if x.failed != nil {
		return x.failed
	}
	for _, f := range x.fields {
		if err := f.Usable(); err != nil {
			return err
		}
	}
	if x.across != nil {
		return x.across.processes.Err()
	}
	return nil
}

// Err returns an error if a GPU has waited for another in vain in an exchange
// that was queued before.
func (x *Exchanger) Err() error {
	if x == nil {
		return errNoExchanger
	}
	for _, s := range x.direct {
		if err := s.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Close frees what the exchanger holds. Nothing queued may still use it. It is an error, and the
// exchanger stays open, between a Start and its Wait, unless the exchange has failed. Closing twice is
// no error, nor is closing nil.
func (x *Exchanger) Close() error {
	if x == nil {
		return nil
	}
	if x.started && x.usable() == nil && x.Err() == nil {
		return errors.New("halo: an exchange is under way: call Wait before Close")
	}
	x.release()
	x.closed = true
	return x.resources.Close()
}

// hold keeps the fields from being closed until Wait has been called.
func (x *Exchanger) hold() {
	x.started = true
	for _, f := range x.fields {
		f.hold(1)
	}
}

// release lets the fields go, if an exchange holds them.
func (x *Exchanger) release() {
	if !x.started {
		return
	}
	x.started = false
	for _, f := range x.fields {
		f.hold(-1)
	}
}

// ends returns the arrays that a part leaves and arrives in.
func (x *Exchanger) ends(m Message, p Part) (src, dst kernels.Array) {
	f := x.fields[p.Field]
	return f.Array(m.From, p.Component), f.Array(m.To, p.Component)
}

// buffer allocates on the device of a rank.
func (x *Exchanger) buffer(rank int, bytes int64) (*streams.Memory, error) {
	b, err := x.plan.Placement.Devices[rank].Alloc(bytes)
	if err != nil {
		return nil, err
	}
	x.resources.Add(b)
	return b, nil
}

// copies returns one copy for each of some parts of a message.
func (x *Exchanger) copies(m Message, parts []Part, one func(src, dst kernels.Array,
	p Part) pack.Copy) (all []pack.Copy) {
	for _, p := range parts {
		src, dst := x.ends(m, p)
		all = append(all, one(src, dst, p))
	}
	return all
}

// ready makes the launches: one of all copies, then those that are apart.
func (x *Exchanger) ready(e *end) error {
	e.queue = slices.Clone(e.apart)
	if len(e.copies) == 0 {
		return nil
	}
	k, err := x.copiers[x.plan.Placement.Devices[e.rank]].CopiesAs(e.work, e.name, e.copies...)
	if err != nil {
		return err
	}
	x.resources.Add(k)
	e.queue = slices.Insert(e.queue, 0, operation(launch{k.Kernel}))
	return nil
}

// end is the work of the device at one end of some messages: of one, as a Transfer queues it, or
// of all that a subdomain sends or receives, as Start does. The sender packs and then pushes; the
// receiver pulls and then unpacks. Over path direct the sender's copies store into the ghosts, and
// there is nothing to push.
type end struct {
	rank   int
	work   streams.Work
	name   string
	copies []pack.Copy // which may be one launch, also with those of other messages
	apart  []operation // which are launches of their own, in this order, after the copies
	routes []*p2p.Route
	queue  []operation // all launches, see ready

	// Of messages to and from other processes.
	senders   []*mpi.Sender
	receivers []*mpi.Receiver
}

// operation is work that was made ready to be queued any number of times.
type operation interface{ Queue(s *streams.Stream) error }

// launch is an operation of one kernel.
type launch struct{ *streams.Kernel }

// Queue implements operation.
func (l launch) Queue(s *streams.Stream) error { return s.Launch(l.Kernel) }

// join adds the work of another message's end.
func (e *end) join(other *end) {
	e.copies = append(e.copies, other.copies...)
	e.apart = append(e.apart, other.apart...)
	e.routes = append(e.routes, other.routes...)
	e.senders = append(e.senders, other.senders...)
	e.receivers = append(e.receivers, other.receivers...)
}

// send queues the sender's part. What goes to other processes is packed once it has left the
// buffer the last time, for which the host waits with the group.
func (e *end) send(c *streams.WorkerGroup, s *streams.Stream) error {
	for _, t := range e.senders {
		if err := t.Ready(c, s); err != nil {
			return err
		}
	}
	if err := e.launch(s); err != nil {
		return err
	}
	for _, t := range e.senders {
		if err := t.Send(s); err != nil {
			return err
		}
	}
	for _, r := range e.routes {
		if err := r.Push(s); err != nil {
			return err
		}
	}
	return nil
}

// expect begins to receive from other processes, in the step of a stream.
func (e *end) expect(s *streams.Stream) {
	for _, t := range e.receivers {
		t.Expect(s)
	}
}

// receive queues the receiver's part. The host waits, with the group, until what was expected
// from other processes has come.
func (e *end) receive(c *streams.WorkerGroup, s *streams.Stream) error {
	for _, t := range e.receivers {
		if err := t.Receive(c, s); err != nil {
			return err
		}
	}
	for _, r := range e.routes {
		if err := r.Pull(s); err != nil {
			return err
		}
	}
	if err := e.launch(s); err != nil {
		return err
	}
	for _, t := range e.receivers {
		if err := t.Done(s); err != nil {
			return err
		}
	}
	return nil
}

// launch queues the launches.
func (e *end) launch(s *streams.Stream) error {
	for _, o := range e.queue {
		if err := o.Queue(s); err != nil {
			return err
		}
	}
	return nil
}

// channel holds the streams, the events and the launches of one subdomain's part in an
// exchange by Start and Wait. The events mark what the channels of neighbours wait for.
type channel struct {
	sendStream, receiveStream *streams.Stream
	ready, sent, received     *streams.Event
	out, in                   end        // of all its messages
	to, from                  []*channel // that it has messages for, and from: itself too
	waits                     *streams.WorkerGroup
}

// send queues what the channel sends, once all that it goes to are ready.
func (l *channel) send() error {
	if err := l.sendStream.Wait(l.ready); err != nil {
		return err
	}
	for _, to := range l.to {
		if err := l.sendStream.Wait(to.ready); err != nil {
			return err
		}
	}
	if err := l.out.send(l.waits, l.sendStream); err != nil {
		return err
	}
	return l.sendStream.Record(l.sent)
}

// receive queues what the channel receives, once all that it comes from have sent it. Another
// process knows nothing of what is ready here, and so this end waits for that.
func (l *channel) receive() error {
	if len(l.in.receivers) > 0 {
		if err := l.receiveStream.Wait(l.ready); err != nil {
			return err
		}
	}
	for _, from := range l.from {
		if err := l.receiveStream.Wait(from.sent); err != nil {
			return err
		}
	}
	if err := l.in.receive(l.waits, l.receiveStream); err != nil {
		return err
	}
	if err := l.receiveStream.Wait(l.sent); err != nil {
		return err
	}
	return l.receiveStream.Record(l.received)
}

// manyWorkers is a number of threads that leaves none a core to spin on.
const manyWorkers = 1 << 10

// across is what an exchanger needs for messages to and from other processes.
type across struct {
	processes *mpi.Processes
	waits     *streams.WorkerGroup // for waits of one thread that drives all
	first     int                  // of its tags
	next      map[[2]int]int       // by sending and receiving process: how many messages were made ready
}

// tag returns that of the next message between two processes. Both go through the messages
// between them in the order of the plan.
func (a *across) tag(from, to int) int {
	ends := [2]int{from, to}
	tag := a.first + a.next[ends]
	a.next[ends]++
	return tag
}

// Transfer carries one message, any number of times.
//
// The sender's worker calls Send and the receiver's Receive, each as often as
// the other and on a stream of its own device. What a transfer carries next
// may overwrite what it carried last: before the n-th Send is queued, the work
// before it must depend on the receiver having used what the Send before it
// brought. Start sees to that. So do sweeps between two exchanges, where every
// message has one in return and two fields take turns. A message to another process waits for
// its own buffers by itself.
//
// Of a message from or to another process this one has the one end, and calls only that.
type Transfer struct {
	usable   func() error // an error if there is no such message, or the exchanger is of no use
	out, in  end
	sent     *streams.Signal      // nil where the other end is another process's
	waits    *streams.WorkerGroup // for what was sent to another process to leave; nil where none is
	received int64
}

var errNoStream = errors.New("halo: the stream is nil")

// Send queues the sender's part on a stream of the sender.
func (t *Transfer) Send(s *streams.Stream) error {
	if err := t.usable(); err != nil {
		return err
	}
	if s == nil {
		return errNoStream
	}
	if err := t.out.send(t.waits, s); err != nil || t.sent == nil {
		return err
	}
	return t.sent.Record(s)
}

// Receive queues the receiver's part on a stream of the receiver. It waits on
// the host until the sender's worker has queued its part, or, where that is one of another
// process, until the message has come.
func (t *Transfer) Receive(c *streams.WorkerGroup, s *streams.Stream) error {
	if err := t.usable(); err != nil {
		return err
	}
	if s == nil {
		return errNoStream
	}
	if t.sent == nil {
		t.in.expect(s)
		return t.in.receive(c, s)
	}
	t.received++
	if err := t.sent.Wait(c, s, t.received); err != nil {
		return err
	}
	return t.in.receive(c, s)
}
