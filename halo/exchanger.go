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

// Exchanger holds the buffers and launches that execute a plan for some fields. NewExchanger makes them, and
// the first call of Start makes the streams and events that it needs. After that, an exchange allocates
// nothing.
//
// Either one thread drives it with Start and Wait, for all devices; calls from other threads in between,
// including Close, return an error. Or several threads drive its Transfers, one thread each; close it after
// all of them.
type Exchanger struct {
	resources streams.Resources
	plan      *Plan
	fields    []*Field
	adds      bool // the receiver adds the messages, see Accumulator
	copiers   map[*streams.Device]*pack.BoxCopier
	packers   map[*streams.Device]*packing.Packer // for fields of types with gaps
	transfers []*Transfer                         // by message
	direct    []*pack.DirectExchange              // by rank; nil unless one kernel per GPU does the exchange
	channels  []*channel                          // by rank, made at the first Start
	remote    *remote                             // nil if this process has all subdomains
	mapped    *mpi.HostMessages                   // messages between processes that map memory of each other
	mappedAt  map[int]int                         // by message: its index there
	guard     guard.Guard                         // held exclusively from Start to Wait, like the fields
	started   atomic.Bool                         // true between Start and Wait
	failed    atomic.Pointer[error]               // error of a partly queued exchange; nothing is queued after it
}

// manyWorkers is a number of threads so large that waiting threads do not spin.
const manyWorkers = 1 << 10

// remote holds what an exchanger needs for messages to and from other processes.
type remote struct {
	processes *mpi.Processes
	waits     *streams.WorkerGroup // for waits of the thread that drives all devices
	first     int                  // first MPI tag
	next      map[[2]int]int       // by sending and receiving process: number of prepared messages
}

// tag returns the tag of the next message between two processes. Both process their messages in the order of
// the plan.
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

// NewExchanger prepares the exchange of the fields, one for each Spec of the plan and in that order. If
// several processes share the grid, all of them call it, in the same order as for other plans; if one fails,
// all return an error. Close frees the buffers.
func NewExchanger(plan *Plan, c *kernels.Compiler, fields ...*Field) (*Exchanger, error) {
	return newExchanger(plan, c, fields, false)
}

// newExchanger implements NewExchanger, and NewAccumulator with the plan of the forward exchange.
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
			err = fmt.Errorf("halo: field %q: elements to add must be numbers, got type %v", f.Spec.Name, f.Spec.Type)
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
		err = e.shareMemory()
	}
	if err == nil {
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

// joinProcesses prepares the exchange with other processes, if there are any, and compares their plans. All
// processes call it.
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
	// The MPI thread waits half as long and has the better error message.
	waits := streams.NewWorkerGroup(manyWorkers, 2*p.Processes.Limit())
	e.remote = &remote{processes: p.Processes, waits: waits, first: first, next: map[[2]int]int{}}
	return nil
}

// makeReady prepares everything that an exchange needs except its channels.
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
	for i, m := range e.plan.Messages {
		t, err := e.newTransfer(i, m)
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

// newTransfer prepares a message. A contiguous message is copied directly from field to field, or, if it is
// added, into a buffer with the layout of the ghosts. Any other message is packed, copied from buffer to
// buffer, and unpacked or added. On a path with stores, one kernel stores into the ghosts, or into a buffer
// of the receiver if the message is added or has gaps.
func (e *Exchanger) newTransfer(i int, m Message) (*Transfer, error) {
	p := e.plan.Placement
	if !p.IsLocal(m.From) && !p.IsLocal(m.To) {
		elsewhere := fmt.Errorf("halo: the message from subdomain %d to %d belongs to other processes", m.From, m.To)
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
		err = e.addRemote(t, i, m)
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

// shareMemory prepares the messages between processes that map memory of each other. All processes call it.
func (e *Exchanger) shareMemory() (err error) {
	p := e.plan.Placement
	var all []mpi.HostMessage
	e.mappedAt = map[int]int{}
	for i, m := range e.plan.Messages {
		from, to := p.Owners[m.From], p.Owners[m.To]
		if !p.crossesProcesses(m) || !p.Processes.Maps(from, to) {
			continue
		}
		one := mpi.HostMessage{From: from, To: to, Bytes: m.Bytes, Device: p.Devices[m.From], Name: p.nameOf(m)}
		if p.IsLocal(m.To) {
			one.Device = p.Devices[m.To]
		}
		e.mappedAt[i] = len(all)
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil
	}
	if e.mapped, err = p.Processes.NewHostMessages(context.Background(), all); err == nil {
		e.resources.Add(e.mapped)
	}
	return err
}

// nameOf describes a message between processes, and the other process.
func (p *Placement) nameOf(m Message) string {
	end, other := "to ", p.Owners[m.To]
	if p.IsLocal(m.To) {
		end, other = "from ", p.Owners[m.From]
	}
	return fmt.Sprintf("the message of subdomain %d to subdomain %d in %v, %s%s", m.From, m.To, m.Dir, end,
		p.Processes.Name(other))
}

// addRemote adds the local end of a message between processes. The sender packs into a buffer that a network sends or,
// if the processes map memory of each other, into the buffer of the receiver.
func (e *Exchanger) addRemote(t *Transfer, i int, m Message) error {
	p := e.plan.Placement
	sends, rank := p.IsLocal(m.From), m.To
	if sends {
		rank = m.From
	}
	at, mapped := e.mappedAt[i]
	var buffer streams.Span
	if mapped {
		buffer = e.mapped.Span(at)
	} else {
		b, err := e.buffer(rank, m.Bytes)
		if err != nil {
			return err
		}
		buffer = b.All()
	}
	var err error
	if sends {
		err = e.addPacking(t, m, buffer)
	} else {
		err = e.addUnpacking(t, m, buffer)
	}
	if err != nil || e.remote == nil {
		return err
	}
	t.waits = e.remote.waits
	processes, from, to := e.remote.processes, p.Owners[m.From], p.Owners[m.To]
	switch tag := e.remote.tag(from, to); {
	case mapped && sends:
		t.out.senders = []sender{e.mapped.Sender(at)}
	case mapped:
		t.in.receivers = []receiver{e.mapped.Receiver(at)}
	case sends:
		s, err := processes.NewSender(buffer, to, tag, p.nameOf(m))
		if err != nil {
			return err
		}
		e.resources.Add(s)
		t.out.senders = []sender{s}
	default:
		r, err := processes.NewReceiver(buffer, from, tag, p.nameOf(m))
		if err != nil {
			return err
		}
		e.resources.Add(r)
		t.in.receivers = []receiver{r}
	}
	return nil
}

// addStored makes the sender store into the ghosts, or into a buffer of the receiver if the message is added
// or has gaps.
func (e *Exchanger) addStored(t *Transfer, m Message) (err error) {
	var in streams.Span
	boxes, typed := e.byLayout(m)
	if e.adds || len(typed) > 0 {
		b, err := e.buffer(m.To, m.Bytes)
		if err != nil {
			return err
		}
		in = b.All()
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

// addContiguous makes the transfer a direct copy, including padding and ghosts between its rows.
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
	return errors.Join(e.addPacking(t, m, out.All()), e.addUnpacking(t, m, in.All()), e.addRoute(t, m, in.All(), out.All()))
}

// addPacking makes the sender pack a message into a buffer.
func (e *Exchanger) addPacking(t *Transfer, m Message, out streams.Span) error {
	if e.adds {
		t.out.name = "pack ghosts"
	}
	boxes, typed := e.byLayout(m)
	for _, p := range boxes {
		src, _ := e.arrays(m, p)
		t.out.copies = append(t.out.copies, pack.Pack(out.Part(p.Offset, p.Bytes), src, p.Send))
	}
	return e.addTypedPacking(t, m, typed, out)
}

// addUnpacking makes the receiver unpack a message from a buffer, or add its parts.
func (e *Exchanger) addUnpacking(t *Transfer, m Message, in streams.Span) error {
	if e.adds {
		return e.addSums(t, m, func(p Part) pack.Place {
			return pack.Dense(in.Part(p.Offset, p.Bytes), p.Send.Size())
		})
	}
	boxes, typed := e.byLayout(m)
	for _, p := range boxes {
		_, dst := e.arrays(m, p)
		t.in.copies = append(t.in.copies, pack.Unpack(dst, p.Ghost, in.Part(p.Offset, p.Bytes)))
	}
	return e.addTypedUnpacking(t, m, typed, in)
}

// addSums makes the receiver add the parts of a message, each from its place. Overlapping parts, such as a
// face and an edge, are added by separate launches, one after another.
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
				Number: e.fields[p.Field].Spec.Element,
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

// addRoute sets the route of a transfer from device to device.
func (e *Exchanger) addRoute(t *Transfer, m Message, dst, src streams.Span) error {
	r, err := p2p.NewRoute(m.Path, dst, src)
	if err != nil {
		return err
	}
	e.resources.Add(r)
	t.out.routes, t.in.routes = append(t.out.routes, r), append(t.in.routes, r)
	return nil
}

// alike reports whether a contiguous message has the same layout at both ends. The layouts can only differ
// for arrays of the caller; then the bytes between the rows must not be overwritten.
func (e *Exchanger) alike(m Message) bool {
	src, dst := e.arrays(m, m.Parts[0])
	from, to := src.Span(m.Parts[0].Send), dst.Span(m.Parts[0].Ghost)
	whole := to.Length == m.Bytes || dst.Layout.Padded()
	return whole && from.Length == to.Length && src.Layout.Pitch == dst.Layout.Pitch
}

// arrays returns the arrays that a part is sent from and received into.
func (e *Exchanger) arrays(m Message, p Part) (src, dst kernels.Array) {
	f := e.fields[p.Field]
	return f.Array(m.From, p.Component), f.Array(m.To, p.Component)
}

// buffer allocates memory on the device of a rank.
func (e *Exchanger) buffer(rank int, bytes int64) (*streams.Memory, error) {
	b, err := e.plan.Placement.Devices[rank].Alloc(bytes)
	if err == nil {
		e.resources.Add(b)
	}
	return b, err
}

// ready prepares the launches of an end: one launch for all copies, then the separate ones.
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

// byLayout divides the parts of a message into those that are copied as boxes and, field by field, those of
// types with gaps, which are consecutive in the message.
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

// addTypedPacking makes the sender pack parts with gaps, field by field, by the fastest engine for the
// layout.
func (e *Exchanger) addTypedPacking(t *Transfer, m Message, typed [][]Part, out streams.Span) error {
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

// addTypedUnpacking makes the receiver unpack parts with gaps.
func (e *Exchanger) addTypedUnpacking(t *Transfer, m Message, typed [][]Part, in streams.Span) error {
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

// boxType returns the type of the values in a box of an array, with displacement 0 at the first point.
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

// spanOf returns the span of consecutive parts in a message.
func spanOf(parts []Part, message streams.Span) streams.Span {
	bytes := int64(0)
	for _, p := range parts {
		bytes += p.Bytes
	}
	return message.Part(parts[0].Offset, bytes)
}

// directLimit is the default limit of a GPU's wait for a neighbor in an exchange, see SetLimit.
const directLimit = 2 * time.Minute

// makeDirect prepares one kernel per GPU that does a whole exchange, if every message takes path direct and
// every subdomain has its own GPU. Such an exchange needs one launch per GPU and no events.
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
			if r := &ranks[pair[0]]; m.From != m.To && !slices.Contains(r.Neighbors, pair[1]) {
				r.Neighbors = append(r.Neighbors, pair[1])
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

// Transfer returns the transfer of one message of the plan, by its index. If the index is out of range, Send
// and Receive of the result return an error.
func (e *Exchanger) Transfer(message int) *Transfer {
	if e == nil {
		return &Transfer{usable: func() error { return errNoExchanger }}
	}
	if message < 0 || message >= len(e.transfers) {
		err := fmt.Errorf("halo: the message index must be less than %d, got %d", len(e.transfers), message)
		return &Transfer{usable: func() error { return err }}
	}
	return e.transfers[message]
}

// usable returns an error if the exchanger is nil, the exchanger or one of its fields is closed, or an
// exchange has failed.
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

// Err returns an error if a GPU reached its limit while waiting for another GPU in a queued exchange.
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

// Close frees the buffers. No queued work may still use them. Between Start and Wait it returns an error and
// the exchanger stays open, unless the exchange has failed. Close does nothing for a nil or closed exchanger.
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
		return fmt.Errorf("halo: an exchange is in progress: %w: call Wait before Close", err)
	}
	return e.resources.Close()
}

// hold reserves the exchanger and its fields for one exchange, until release.
func (e *Exchanger) hold() error {
	if e == nil {
		return errNoExchanger
	}
	switch err := e.guard.Hold(guard.Alone); {
	case errors.Is(err, guard.ErrClosed):
		return e.usable()
	case err != nil:
		return fmt.Errorf("halo: an exchange is in progress: %w: call Wait before the next Start", err)
	}
	for i, f := range e.fields {
		if err := f.hold(guard.Alone); err != nil {
			e.releaseFirst(i)
			return err
		}
	}
	return nil
}

// release undoes hold.
func (e *Exchanger) release() { e.releaseFirst(len(e.fields)) }

// releaseFirst releases the exchanger and the first fields.
func (e *Exchanger) releaseFirst(fields int) {
	for _, f := range e.fields[:fields] {
		f.release(guard.Alone)
	}
	e.guard.Release(guard.Alone)
}
