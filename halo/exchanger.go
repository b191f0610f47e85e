package halo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/guard"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// Exchanger holds the buffers and launches that carry out a plan for fields. NewExchanger makes
// all of them, and those of Start are made at its first call; after that an exchange allocates nothing.
//
// One thread may drive it with Start and Wait, for all devices; calls of other threads meanwhile return an error, Close
// too. Or several threads drive its Transfers, each its own, and it is closed after all of them.
type Exchanger struct {
	resources streams.Resources
	plan      *Plan
	fields    []*Field
	adds      bool // messages are added where they arrive, see Accumulator
	copiers   map[*streams.Device]*pack.BoxCopier
	packers   map[*streams.Device]*packing.Packer // where fields have types with gaps
	transfers []*Transfer                         // by message
	direct    []*pack.DirectExchange              // by rank; nil unless one kernel per GPU does the exchange
	channels  []*channel                          // by rank, made at the first Start
	remote    *remote                             // nil where this process has all subdomains
	guard     guard.Guard                         // held alone from Start to Wait, as the fields are
	started   atomic.Bool                         // Start has returned, and Wait has not been called
	failed    atomic.Pointer[error]               // of an exchange that was queued in part; nothing is queued after it
}

// manyWorkers is a number of threads at which no thread spins, since none has a core.
const manyWorkers = 1 << 10

// remote is what an exchanger needs for messages to and from other processes.
type remote struct {
	processes *mpi.Processes
	waits     *streams.WorkerGroup // for waits of one thread that drives all
	first     int                  // of its tags
	next      map[[2]int]int       // by sending and receiving process: how many messages were made ready
}

// tag returns that of the next message between two processes. Both go through the messages
// between them in the order of the plan.
func (r *remote) tag(from, to int) int {
	ends := [2]int{from, to}
	tag := r.first + r.next[ends]
	r.next[ends]++
	return tag
}

var (
	errNoExchanger = errors.New("halo: the exchanger is nil: see NewExchanger")
	errNoCompiler  = errors.New("halo: the compiler is nil: see kernels.NewCompiler")
)

// NewExchanger prepares the exchange of the fields, one for each Spec of the plan
// and in that order. Close frees what it holds. Where several processes share the grid, all
// call it, in the same order as for other plans, and where one fails, all return an error.
func NewExchanger(plan *Plan, c *kernels.Compiler, fields ...*Field) (*Exchanger, error) {
	return newExchanger(plan, c, fields, false)
}

// newExchanger is NewExchanger, or NewAccumulator, for which the plan is that of the exchange.
func newExchanger(plan *Plan, c *kernels.Compiler, fields []*Field, adds bool) (e *Exchanger, err error) {
	err = plan.fits(fields)
	for _, f := range fields {
		if err == nil {
			var release func()
			if release, err = f.KeepOpen(); err == nil {
				defer release()
			}
		}
		if err == nil && adds && f.Spec.IsTyped() {
			err = fmt.Errorf("halo: field %q: values of type %v are not numbers to be added", f.Spec.Name, f.Spec.Type)
		}
	}
	if err == nil && c == nil {
		err = errNoCompiler
	}
	if err = plan.agree("make an exchange of fields", err); err != nil {
		return nil, err
	}
	e = &Exchanger{plan: plan, fields: slices.Clone(fields), adds: adds}
	if adds {
		e.plan = plan.reversed()
	}
	if err = e.joinProcesses(); err == nil {
		err = e.makeReady(c)
		if e.remote != nil {
			err = e.remote.processes.Agree(context.Background(), "make an exchange ready", err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// reversed returns the plan with the direction of all messages reversed.
func (p *Plan) reversed() *Plan {
	reversed := *p
	reversed.Messages = slices.Clone(p.Messages)
	for i := range reversed.Messages {
		m := &reversed.Messages[i]
		m.From, m.To, m.Dir = m.To, m.From, m.Dir.Opposite()
		m.Parts = slices.Clone(m.Parts)
		for j := range m.Parts {
			part := &m.Parts[j]
			part.Dir, part.Send, part.Ghost = part.Dir.Opposite(), part.Ghost, part.Send
		}
	}
	return &reversed
}

// joinProcesses prepares the exchange with other processes, if there are any, and has them
// compare their plans. All processes call it.
func (e *Exchanger) joinProcesses() error {
	p := e.plan.Placement
	if p.Processes.IsAlone() || p.isDry() {
		return nil
	}
	if err := e.plan.compare(); err != nil {
		return err
	}
	first, err := p.Processes.Tags(e.plan.mostBetween())
	if err != nil {
		return p.Processes.Fail(err)
	}
	// A thread of the processes waits half as long, and then knows more.
	waits := streams.NewWorkerGroup(manyWorkers, 2*p.Processes.Limit())
	e.remote = &remote{processes: p.Processes, waits: waits, first: first, next: map[[2]int]int{}}
	return nil
}

// makeReady prepares everything that an exchange needs but its channels.
func (e *Exchanger) makeReady(c *kernels.Compiler) (err error) {
	e.copiers, e.packers = map[*streams.Device]*pack.BoxCopier{}, map[*streams.Device]*packing.Packer{}
	for _, d := range e.plan.Placement.Devices {
		if d == nil || e.copiers[d] != nil {
			continue
		}
		if e.copiers[d], err = pack.NewBoxCopier(c, d); err != nil {
			return err
		}
		if !e.plan.hasGaps() {
			continue
		}
		if e.packers[d], err = packing.New(c, d, packing.Options{}); err != nil {
			return err
		}
		e.resources.Add(e.packers[d])
	}
	for _, m := range e.plan.Messages {
		t, err := e.newTransfer(m)
		if err != nil {
			return fmt.Errorf("halo: message from subdomain %d in %v: %w", m.From, m.Dir, err)
		}
		e.transfers = append(e.transfers, t)
	}
	if !e.adds {
		return e.makeDirect(c)
	}
	return nil
}

// newTransfer prepares a message. A contiguous one is copied as it is: from field to field or, where it
// is added, into a buffer with the layout of the ghosts. Any other is packed, copied from buffer to
// buffer, and unpacked or added. Over a path that stores, one kernel stores into the ghosts, or into the
// receiver's buffer what is added or has gaps.
func (e *Exchanger) newTransfer(m Message) (*Transfer, error) {
	p := e.plan.Placement
	if !p.IsLocal(m.From) && !p.IsLocal(m.To) {
		elsewhere := fmt.Errorf("halo: the message from subdomain %d to %d is between other processes", m.From, m.To)
		return &Transfer{usable: func() error { return elsewhere }}, nil
	}
	t := &Transfer{
		usable: e.usable,
		out:    end{rank: m.From, work: streams.Pack, name: "pack"},
		in:     end{rank: m.To, work: streams.Unpack, name: "unpack"},
	}
	var err error
	switch {
	case p.crossesProcesses(m):
		err = e.addRemote(t, m)
	case m.isStored():
		err = e.addStored(t, m)
	case m.Contiguous && (e.adds || e.alike(m)):
		err = e.addContiguous(t, m)
	default:
		err = e.addPacked(t, m)
	}
	if err == nil && !p.crossesProcesses(m) {
		from := p.Devices[m.From]
		if t.sent, err = from.NewSignal("subdomain %d on device %v to send in %v", m.From, from, m.Dir); err == nil {
			e.resources.Add(t.sent)
		}
	}
	if err != nil {
		return nil, err
	}
	return t, errors.Join(e.ready(&t.out), e.ready(&t.in))
}

// addRemote adds the end of a message that this process has, where it has one.
func (e *Exchanger) addRemote(t *Transfer, m Message) error {
	p := e.plan.Placement
	sends, rank := p.IsLocal(m.From), m.To
	if sends {
		rank = m.From
	}
	buffer, err := e.buffer(rank, m.Bytes)
	switch {
	case err != nil:
		return err
	case sends:
		err = e.addPacking(t, m, buffer)
	default:
		err = e.addUnpacking(t, m, buffer)
	}
	if err != nil || e.remote == nil {
		return err
	}
	t.waits = e.remote.waits
	processes, from, to := e.remote.processes, p.Owners[m.From], p.Owners[m.To]
	what, tag := fmt.Sprintf("the message of subdomain %d to subdomain %d in %v, ", m.From, m.To, m.Dir),
		e.remote.tag(from, to)
	if sends {
		sender, err := processes.NewSender(buffer.All(), to, tag, what+"to "+processes.Name(to))
		if err != nil {
			return err
		}
		e.resources.Add(sender)
		t.out.senders = []*mpi.Sender{sender}
		return nil
	}
	receiver, err := processes.NewReceiver(buffer.All(), from, tag, what+"from "+processes.Name(from))
	if err != nil {
		return err
	}
	e.resources.Add(receiver)
	t.in.receivers = []*mpi.Receiver{receiver}
	return nil
}

// addStored has the sender store into the ghosts, and what is added or has gaps into a buffer of the
// receiver.
func (e *Exchanger) addStored(t *Transfer, m Message) (err error) {
	var in *streams.Memory
	boxes, typed := e.byLayout(m)
	if e.adds || len(typed) > 0 {
		if in, err = e.buffer(m.To, m.Bytes); err != nil {
			return err
		}
	}
	if e.adds {
		return errors.Join(e.addPacking(t, m, in), e.addUnpacking(t, m, in))
	}
	t.out.work, t.out.name = streams.Exchange, "store"
	for _, p := range boxes {
		src, dst := e.arrays(m, p)
		t.out.copies = append(t.out.copies, pack.Store(dst, p.Ghost, src, p.Send))
	}
	return errors.Join(e.addTypedPacking(t, m, typed, in), e.addTypedUnpacking(t, m, typed, in))
}

// addContiguous has the message copied as it is, with the padding and the ghosts between its rows.
func (e *Exchanger) addContiguous(t *Transfer, m Message) error {
	part := m.Parts[0]
	src, dst := e.arrays(m, part)
	from := src.Span(part.Send)
	if !e.adds {
		return e.addRoute(t, m, dst.Span(part.Ghost), from)
	}
	in, err := e.buffer(m.To, from.Length)
	if err != nil {
		return err
	}
	if err := e.addRoute(t, m, in.All(), from); err != nil {
		return err
	}
	return e.addSums(t, m, func(Part) pack.Place {
		return pack.Place{Data: in.All(), Pitch: src.Layout.Pitch, Plane: src.Layout.Plane}
	})
}

// addPacked gives the transfer a buffer at each end.
func (e *Exchanger) addPacked(t *Transfer, m Message) error {
	out, err := e.buffer(m.From, m.Bytes)
	if err != nil {
		return err
	}
	in, err := e.buffer(m.To, m.Bytes)
	if err != nil {
		return err
	}
	return errors.Join(e.addPacking(t, m, out), e.addUnpacking(t, m, in), e.addRoute(t, m, in.All(), out.All()))
}

// addPacking has the sender pack a message into a buffer.
func (e *Exchanger) addPacking(t *Transfer, m Message, out *streams.Memory) error {
	if e.adds {
		t.out.name = "pack ghosts"
	}
	boxes, typed := e.byLayout(m)
	for _, p := range boxes {
		src, _ := e.arrays(m, p)
		t.out.copies = append(t.out.copies, pack.Pack(out.Span(p.Offset, p.Bytes), src, p.Send))
	}
	return e.addTypedPacking(t, m, typed, out)
}

// addUnpacking has the receiver unpack a message from a buffer, or add its parts.
func (e *Exchanger) addUnpacking(t *Transfer, m Message, in *streams.Memory) error {
	if e.adds {
		return e.addSums(t, m, func(p Part) pack.Place {
			return pack.Dense(in.Span(p.Offset, p.Bytes), p.Send.Size())
		})
	}
	boxes, typed := e.byLayout(m)
	for _, p := range boxes {
		_, dst := e.arrays(m, p)
		t.in.copies = append(t.in.copies, pack.Unpack(dst, p.Ghost, in.Span(p.Offset, p.Bytes)))
	}
	return e.addTypedUnpacking(t, m, typed, in)
}

// addSums has the receiver add the parts of a message, each from its place. Parts that overlap,
// as a face and an edge do, are added by separate launches, one after another.
func (e *Exchanger) addSums(t *Transfer, m Message, place func(p Part) pack.Place) error {
	for first, i := 0, 1; i <= len(m.Parts); i++ {
		if i < len(m.Parts) && !slices.ContainsFunc(m.Parts[first:i], m.Parts[i].overlaps) {
			continue
		}
		var all []pack.Add
		for _, p := range m.Parts[first:i] {
			_, dst := e.arrays(m, p)
			all = append(all, pack.Add{
				Copy: pack.Copy{Dst: pack.In(dst, p.Ghost), Src: place(p), Size: p.Send.Size(),
					ElementSize: dst.Layout.ElementSize},
				Number: kernels.Number(e.fields[p.Field].Spec.Element),
			})
		}
		k, err := e.copiers[e.plan.Placement.Devices[m.To]].Adds("add ghosts", all...)
		if err != nil {
			return err
		}
		e.resources.Add(k)
		t.in.separate = append(t.in.separate, launch{k.Kernel})
		first = i
	}
	return nil
}

// overlaps reports whether two parts arrive at the same point of the same array.
func (p Part) overlaps(q Part) bool {
	return p.Field == q.Field && p.Component == q.Component && !p.Ghost.Intersect(q.Ghost).Empty()
}

// addRoute gives the transfer its route from device to device.
func (e *Exchanger) addRoute(t *Transfer, m Message, dst, src streams.Span) error {
	r, err := p2p.NewRoute(m.Path, dst, src)
	if err != nil {
		return err
	}
	e.resources.Add(r)
	t.out.routes, t.in.routes = append(t.out.routes, r), append(t.in.routes, r)
	return nil
}

// alike reports whether a contiguous message has the same layout at both ends. This can fail only for
// arrays of the caller: their layouts may differ, and what is between their rows must not be overwritten.
func (e *Exchanger) alike(m Message) bool {
	src, dst := e.arrays(m, m.Parts[0])
	from, to := src.Span(m.Parts[0].Send), dst.Span(m.Parts[0].Ghost)
	whole := to.Length == m.Bytes || dst.Layout.Padded()
	return whole && from.Length == to.Length && src.Layout.Pitch == dst.Layout.Pitch
}

// arrays returns the arrays that a part is sent from and arrives in.
func (e *Exchanger) arrays(m Message, p Part) (src, dst kernels.Array) {
	f := e.fields[p.Field]
	return f.Array(m.From, p.Component), f.Array(m.To, p.Component)
}

// buffer allocates on the device of a rank.
func (e *Exchanger) buffer(rank int, bytes int64) (*streams.Memory, error) {
	b, err := e.plan.Placement.Devices[rank].Alloc(bytes)
	if err == nil {
		e.resources.Add(b)
	}
	return b, err
}

// ready prepares the launches of an end: one of all copies, then the separate ones.
func (e *Exchanger) ready(at *end) error {
	at.queue = slices.Clone(at.separate)
	if len(at.copies) == 0 {
		return nil
	}
	k, err := e.copiers[e.plan.Placement.Devices[at.rank]].CopiesAs(at.work, at.name, at.copies...)
	if err != nil {
		return err
	}
	e.resources.Add(k)
	at.queue = slices.Insert(at.queue, 0, operation(launch{k.Kernel}))
	return nil
}

// byLayout divides the parts of a message into those that are copied as boxes, and, field by field,
// those of types with gaps, which are consecutive in the message.
func (e *Exchanger) byLayout(m Message) (boxes []Part, typed [][]Part) {
	for _, p := range m.Parts {
		last := len(typed) - 1
		switch {
		case !e.plan.Specs[p.Field].hasGaps():
			boxes = append(boxes, p)
		case last >= 0 && typed[last][0].Field == p.Field:
			typed[last] = append(typed[last], p)
		default:
			typed = append(typed, []Part{p})
		}
	}
	return boxes, typed
}

// addTypedPacking has the sender pack parts with gaps, field by field, by the fastest engine for the layout.
func (e *Exchanger) addTypedPacking(t *Transfer, m Message, typed [][]Part, out *streams.Memory) error {
	for _, parts := range typed {
		layout, place, err := e.typedLayout(m.From, parts, func(p Part) domain.Box { return p.Send })
		if err != nil {
			return err
		}
		packer := e.packers[e.plan.Placement.Devices[m.From]]
		op, err := packer.Pack(packing.Auto, spanOf(parts, out), place, layout)
		if err != nil {
			return err
		}
		e.resources.Add(op)
		t.out.separate = append(t.out.separate, op)
	}
	return nil
}

// addTypedUnpacking has the receiver unpack them.
func (e *Exchanger) addTypedUnpacking(t *Transfer, m Message, typed [][]Part, in *streams.Memory) error {
	for _, parts := range typed {
		layout, place, err := e.typedLayout(m.To, parts, func(p Part) domain.Box { return p.Ghost })
		if err != nil {
			return err
		}
		packer := e.packers[e.plan.Placement.Devices[m.To]]
		op, err := packer.Unpack(packing.Auto, place, spanOf(parts, in), layout)
		if err != nil {
			return err
		}
		e.resources.Add(op)
		t.in.separate = append(t.in.separate, op)
	}
	return nil
}

// typedLayout returns the layout of the boxes of parts of one field, one after another, and their memory in
// the subdomain of a rank.
func (e *Exchanger) typedLayout(
	rank int, parts []Part, box func(p Part) domain.Box,
) (*packing.MessageLayout, packing.Place, error) {
	field := e.fields[parts[0].Field]
	whole := field.block(rank)
	var displacements []int64
	var boxes []*datatype.Type
	for _, p := range parts {
		a := field.Array(rank, p.Component)
		t, err := field.Spec.boxType(a.Layout, box(p))
		if err != nil {
			return nil, packing.Place{}, err
		}
		first := a.Data.Offset - whole.Offset + a.Layout.Offset(box(p).Lo)*int64(a.Layout.ElementSize)
		displacements, boxes = append(displacements, first-field.Spec.Type.LB()), append(boxes, t)
	}
	t, err := datatype.Struct(slices.Repeat([]int{1}, len(boxes)), displacements, boxes)
	if err != nil {
		return nil, packing.Place{}, err
	}
	m, err := packing.NewMessageLayout(t, 1)
	return m, packing.Place{Data: whole}, err
}

// boxType returns the type of the values in a box of an array: displacement 0 is the first point.
func (s Spec) boxType(l domain.Layout, box domain.Box) (t *datatype.Type, err error) {
	t = s.Type
	extent, _ := s.valueBytes()
	point := int64(l.ElementSize)
	n := box.Size()
	for _, d := range []struct {
		count  int
		stride int64 // bytes
	}{{l.ElementSize / extent, int64(extent)}, {n[0], point}, {n[1], point * l.Pitch}, {n[2], point * l.Plane}} {
		if t, err = datatype.HVector(d.count, 1, d.stride, t); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// spanOf returns the span of parts that are packed one after another in a message.
func spanOf(parts []Part, message *streams.Memory) streams.Span {
	bytes := int64(0)
	for _, p := range parts {
		bytes += p.Bytes
	}
	return message.Span(parts[0].Offset, bytes)
}

// directLimit is how long a GPU waits for a neighbour to take part in an exchange, unless SetLimit changes it.
const directLimit = 2 * time.Minute

// makeDirect prepares one kernel per GPU that does a whole exchange, where that is possible: every
// message takes path direct and every subdomain has its own GPU. Such an exchange needs one launch per
// GPU and no event between them.
func (e *Exchanger) makeDirect(c *kernels.Compiler) error {
	p := e.plan.Placement
	if len(e.plan.Messages) == 0 || !p.Processes.IsAlone() || !haveOwnGPUs(p.Devices) || e.plan.hasGaps() {
		return nil
	}
	ranks := make([]pack.DirectExchangeRank, len(p.Devices))
	for rank, d := range p.Devices {
		ranks[rank].Device = d
	}
	for _, m := range e.plan.Messages {
		if !m.isStored() {
			return nil
		}
		for _, part := range m.Parts {
			src, dst := e.arrays(m, part)
			ranks[m.From].Stores = append(ranks[m.From].Stores, pack.Store(dst, part.Ghost, src, part.Send))
		}
		for _, pair := range [][2]int{{m.From, m.To}, {m.To, m.From}} {
			if r := &ranks[pair[0]]; m.From != m.To && !slices.Contains(r.Neighbours, pair[1]) {
				r.Neighbours = append(r.Neighbours, pair[1])
			}
		}
	}
	exchanges, err := pack.NewDirectExchanges(c, ranks, directLimit)
	if err != nil {
		return err
	}
	for _, d := range exchanges {
		e.resources.Add(d)
	}
	e.direct = exchanges
	return nil
}

// Transfer returns the work of one message of the plan, by its index. If the plan has no such
// message, Send and Receive of the result return an error.
func (e *Exchanger) Transfer(message int) *Transfer {
	if e == nil {
		return &Transfer{usable: func() error { return errNoExchanger }}
	}
	if message < 0 || message >= len(e.transfers) {
		err := fmt.Errorf("halo: message %d of a plan of %d", message, len(e.transfers))
		return &Transfer{usable: func() error { return err }}
	}
	return e.transfers[message]
}

// usable returns an error if the exchanger is nil, it or one of its fields is closed, or an exchange
// has failed.
func (e *Exchanger) usable() error {
	if e == nil {
		return errNoExchanger
	}
	if e.guard.Closed() {
		return errors.New("halo: the exchanger is closed")
	}
	if err := e.failed.Load(); err != nil {
		return *err
	}
	for _, f := range e.fields {
		if err := f.Usable(); err != nil {
			return err
		}
	}
	if e.remote != nil {
		return e.remote.processes.Err()
	}
	return nil
}

// Err returns an error if a GPU reached its limit while it waited for another in an exchange
// that was queued before.
func (e *Exchanger) Err() error {
	if e == nil {
		return errNoExchanger
	}
	for _, d := range e.direct {
		if err := d.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Close frees what the exchanger holds. Nothing queued may still use it. It is an error, and the
// exchanger stays open, between a Start and its Wait, unless the exchange has failed. Closing twice is
// not an error, nor is closing nil.
func (e *Exchanger) Close() error {
	if e == nil {
		return nil
	}
	if e.started.Load() && (e.usable() != nil || e.Err() != nil) && e.started.CompareAndSwap(true, false) {
		e.release()
	}
	switch err := e.guard.Close(); {
	case errors.Is(err, guard.ErrClosed):
		return nil
	case err != nil:
		return fmt.Errorf("halo: an exchange is under way: %w: call Wait before Close", err)
	}
	return e.resources.Close()
}

// hold keeps the exchanger and its fields to one exchange, until release.
func (e *Exchanger) hold() error {
	if e == nil {
		return errNoExchanger
	}
	switch err := e.guard.Hold(guard.Alone); {
	case errors.Is(err, guard.ErrClosed):
		return e.usable()
	case err != nil:
		return fmt.Errorf("halo: an exchange is under way: %w: call Wait before the next Start", err)
	}
	for i, f := range e.fields {
		if err := f.hold(guard.Alone); err != nil {
			e.releaseFirst(i)
			return err
		}
	}
	return nil
}

// release ends what hold began.
func (e *Exchanger) release() { e.releaseFirst(len(e.fields)) }

// releaseFirst releases the first fields and the exchanger.
func (e *Exchanger) releaseFirst(fields int) {
	for _, f := range e.fields[:fields] {
		f.release(guard.Alone)
	}
	e.guard.Release(guard.Alone)
}
