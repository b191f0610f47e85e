package packing

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Side is one end of a transfer: a message at its place on the packer's device.
type Side struct {
	Packer  *Packer        // packer of the side's device
	Place   Place          // location of the elements
	Message *MessageLayout // layout of the message
}

// check returns an error unless the side is complete.
func (s *Side) check() error {
	switch {
	case s.Packer == nil:
		return errors.New("packing: the packer of a transfer side is nil")
	case s.Message == nil || s.Message.Type == nil || s.Message.Layout == nil:
		return errNoMessage
	}
	return nil
}

// span returns the span of a contiguous message.
func (s *Side) span() streams.Span {
	data, l := s.Place.Data, s.Message.Layout
	return data.Memory.Span(data.Offset+s.Place.Origin+l.TrueLB(), l.Size())
}

// TransferOptions configure a transfer. The zero value is usually best.
type TransferOptions struct {
	Path     p2p.Path // one of p2p.Paths; "" or Auto: Direct, or Staged if peers cannot access each other
	Engine   Engine   // engine that packs and unpacks; "": Auto
	Fragment int64    // bytes per fragment, at most 2^16 fragments per message; 0: automatic, possibly none
	Ring     int      // fragments in flight, up to 1024; 0: automatic
	// Remote unpacks from the sender's memory, over the link, instead of from a copy at the receiver (Wu et
	// al. 4.1). Only for path Peer. Default: false.
	Remote bool
}

// Transfer sends a message from one device to another, any number of times. The receiver's layout may differ
// but must have the same signature. The message is sent in fragments through a ring of buffers, so that
// packing, the link and unpacking overlap; the receiver acknowledges each fragment by an event that the
// sender's streams wait for (Wu et al. 4.1). On path Direct the packing kernel stores into the receiver's
// buffer, on Peer a copy moves the fragment, on Staged kernels write and read pinned host memory (4.2). On
// other paths the route moves it from buffer to buffer.
//
// On path Direct without a fragment size there is no packed buffer: if the data is contiguous at one end, a
// kernel packs or unpacks it over the link; otherwise one kernel copies from layout to layout, unless the
// blocks are too short for that.
type Transfer struct {
	resources streams.Resources
	path      p2p.Path
	fragments []fragment
	ring      []slot
	link      *streams.Stream // sender's stream for copies
	ready     *streams.Event  // the receiver's stream has reached the transfer
	done      *streams.Event  // everything has arrived
}

// fragment is a range of the packed bytes, with the jobs that move it; nil jobs have nothing to do.
type fragment struct {
	pack, unpack *Job
	route        *p2p.Route
}

// slot is a slot of the ring: events for packed, sent and received.
type slot struct{ packed, sent, taken *streams.Event }

// NewTransfer prepares a transfer. Close frees it.
func NewTransfer(dst, src Side, o TransferOptions) (t *Transfer, err error) {
	if err := errors.Join(dst.check(), src.check()); err != nil {
		return nil, err
	}
	if err := compatible(dst.Message, src.Message); err != nil {
		return nil, err
	}
	from, to := src.Message.Layout, dst.Message.Layout
	if src.Place.whole(from).Overlaps(dst.Place.whole(to)) && touch(src.Place.spans(from), dst.Place.spans(to)) {
		return nil, fmt.Errorf("packing: received data must not overlap sent data in %v", src.Place.Data)
	}
	if paths := p2p.Paths(); !slices.Contains(append(paths, "", p2p.Auto), o.Path) {
		slices.Reverse(paths)
		return nil, fmt.Errorf("packing: the path must be %s, got %q", p2p.Choices(paths), o.Path)
	}
	names := namesOf(src.Packer.engines)
	if !slices.Contains(append(names, "", Auto), o.Engine) {
		return nil, fmt.Errorf("packing: the engine must be one of %v or auto, got %q", names, o.Engine)
	}
	if err := o.checkFragments(src.Message.Layout.Size()); err != nil {
		return nil, err
	}
	made := &Transfer{}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	m := maker{Transfer: made, dst: dst, src: src, o: o.withDefaults(dst, src), took: map[*Side]Engine{}}
	made.path = m.o.Path
	if err := m.events(); err != nil {
		return nil, err
	}
	if err := m.makeFragments(); err != nil {
		return nil, fmt.Errorf("packing: transfer from device %v to %v by path %s: %w", src.Packer.device,
			dst.Packer.device, m.o.Path, err)
	}
	return made, nil
}

const (
	maxFragments = 1 << 16 // each has its own jobs
	maxRing      = 1024    // each slot has a buffer and events
)

// checkFragments returns an error if a message of a size needs too many fragments.
func (t TransferOptions) checkFragments(size int64) error {
	if t.Ring > maxRing {
		return fmt.Errorf("packing: Ring must be at most %d fragments, got %d", maxRing, t.Ring)
	}
	if t.Fragment > 0 && (size-1)/t.Fragment >= maxFragments {
		return fmt.Errorf("packing: %d bytes in fragments of %d must be at most %d", size, t.Fragment, maxFragments)
	}
	return nil
}

// compatible returns an error unless the two messages have the same signature.
func compatible(dst, src *MessageLayout) error {
	to, from := dst.Type.Signature().Times(int64(dst.Count)), src.Type.Signature().Times(int64(src.Count))
	if to != from {
		return fmt.Errorf("packing: sent and received data must have equal signatures, got %v and %v", from, to)
	}
	if dst.Layout.Overlaps() {
		return fmt.Errorf("packing: a received message must not name a byte twice")
	}
	return nil
}

// withDefaults sets the options that are zero, except the fragments. If the sender's kernels cannot access
// the receiver's memory, messages are staged through the host.
func (t TransferOptions) withDefaults(dst, src Side) TransferOptions {
	if t.Path == "" || t.Path == p2p.Auto {
		t.Path = p2p.Direct
		if m := dst.Place.Data.Memory; m != nil && !src.Packer.device.Reaches(m) {
			t.Path = p2p.Staged
		}
	}
	if t.Engine == "" {
		t.Engine = Auto
	}
	_, t.Ring = t.Fragments(0)
	return t
}

// maker makes the parts of a transfer.
type maker struct {
	*Transfer
	dst, src Side
	o        TransferOptions
	took     map[*Side]Engine
}

// events makes the ring's events and the stream for copies.
func (m *maker) events() error {
	from, to, r := m.src.Packer.device, m.dst.Packer.device, &m.resources
	m.link, m.ready, m.done = r.NewStream(from, streams.Urgent), r.NewEvent(to), r.NewEvent(to)
	for range m.o.Ring {
		m.ring = append(m.ring, slot{packed: r.NewEvent(from), sent: r.NewEvent(from), taken: r.NewEvent(to)})
	}
	return r.Err()
}

// makeFragments makes the fragments, with as few copies as the two layouts allow.
func (m *maker) makeFragments() error {
	size := m.src.Message.Layout.Size()
	if size == 0 {
		return nil
	}
	if m.o.Path.Traits().Access {
		short, err := m.short()
		if short || err != nil {
			return err
		}
	}
	m.o.Fragment, _ = m.o.Fragments(size)
	buffers, err := m.buffers(m.o.Fragment)
	if err != nil {
		return err
	}
	for lo := int64(0); lo < size; lo += m.o.Fragment {
		n := min(m.o.Fragment, size-lo)
		if err := m.fragment(buffers[len(m.fragments)%len(m.ring)], lo, n); err != nil {
			return err
		}
	}
	return nil
}

// Fragments returns the bytes of a fragment of a message of a size, and the number of fragments in flight.
func (t TransferOptions) Fragments(size int64) (bytes int64, ring int) {
	const fewest, least, most = 4, 512 << 10, 4 << 20
	if bytes = t.Fragment; bytes <= 0 {
		bytes = min(most, max(least, (size/fewest+255)/256*256))
	}
	if ring = t.Ring; ring <= 0 {
		ring = 3
	}
	return min(size, bytes), ring
}

// NewFragments prepares the jobs of one side of a transfer whose other side is in another process: job i packs fragment
// i into the buffers in turns, or unpacks it from there. A buffer holds a fragment, see TransferOptions.Fragments.
// Closing the resources frees the jobs.
func NewFragments(s Side, unpack bool, buffers []streams.Span, o TransferOptions, r *streams.Resources) ([]*Job,
	error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	size := s.Message.Layout.Size()
	if err := o.checkFragments(size); err != nil {
		return nil, err
	}
	m := maker{Transfer: &Transfer{}, o: o.withDefaults(s, s), took: map[*Side]Engine{}}
	r.Add(m.Transfer)
	m.o.Fragment, _ = o.Fragments(size)
	var jobs []*Job
	for lo := int64(0); lo < size; lo += m.o.Fragment {
		j, err := m.job(&s, buffers[len(jobs)%len(buffers)].Part(0, min(m.o.Fragment, size-lo)), lo, unpack)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// short makes the transfer of one job of the sender, if possible: a copy if the data is contiguous at both
// ends, otherwise a kernel that stores into the receiver's memory.
func (m *maker) short() (bool, error) {
	in, out := m.dst.Message.Layout.Contiguous(), m.src.Message.Layout.Contiguous()
	direct := m.o.Path.Traits().Stored
	switch {
	case in && out:
		return true, m.only(m.src.Packer.Pack(Copies, m.dst.span(), m.src.Place, m.src.Message))
	case direct && in:
		return true, m.only(m.src.Packer.Pack(m.o.Engine, m.dst.span(), m.src.Place, m.src.Message))
	case direct && out && !isFine(m.dst.Message.Layout):
		return true, m.only(m.src.Packer.Unpack(m.o.Engine, m.dst.Place, m.src.span(), m.dst.Message))
	case direct && m.o.Fragment == 0:
		j, err := directCopy(&m.dst, &m.src)
		if !errors.Is(err, ErrUnsuited) {
			return true, m.only(j, err)
		}
	}
	return false, nil
}

// only makes the transfer of one job of the sender.
func (m *maker) only(j *Job, err error) error {
	if err != nil {
		return err
	}
	m.resources.Add(j)
	m.fragments = append(m.fragments, fragment{pack: j})
	return nil
}

// buffer is the buffers of a fragment at the sender and at the receiver.
type buffer struct{ out, in *streams.Memory }

// buffers makes the ring's buffers: two for a route; one if kernels of both ends can access it, or the
// receiver unpacks from the sender's.
func (m *maker) buffers(bytes int64) (all []buffer, err error) {
	traits, from, to := m.o.Path.Traits(), m.src.Packer.device, m.dst.Packer.device
	r := &m.resources
	for range m.ring {
		var b buffer
		switch {
		case traits.Stored:
			b.in = r.Alloc(to, bytes)
			b.out = b.in
		case traits.Pinned == 1: // between the kernels of both ends
			b.in = r.AllocPinned(from, bytes)
			b.out = b.in
		case m.o.Remote && traits.Access:
			b.out = r.Alloc(from, bytes)
			b.in = b.out
		default:
			b.out, b.in = r.Alloc(from, bytes), r.Alloc(to, bytes)
		}
		all = append(all, b)
	}
	return all, r.Err()
}

// fragment makes the fragment of n packed bytes starting at lo.
func (m *maker) fragment(b buffer, lo, n int64) (err error) {
	var f fragment
	from, to := b.out.Span(0, n), b.in.Span(0, n)
	if f.pack, err = m.job(&m.src, from, lo, false); err != nil {
		return err
	}
	if b.out != b.in {
		if f.route, err = p2p.NewRoute(m.o.Path, to, from); err != nil {
			return err
		}
		m.resources.Add(f.route)
	}
	if f.unpack, err = m.job(&m.dst, to, lo, true); err != nil {
		return err
	}
	m.fragments = append(m.fragments, f)
	return nil
}

// job makes a side's job for the packed bytes starting at lo that fill the buffer. Auto measures the first
// fragment of a side; the others use the same engine.
func (m *maker) job(s *Side, packed streams.Span, lo int64, unpack bool) (*Job, error) {
	part, err := s.Message.slice(lo, lo+packed.Length)
	if err != nil {
		return nil, err
	}
	t := &task{message: part, packed: packed, place: s.Place, unpack: unpack}
	e := m.o.Engine
	if known, ok := m.took[s]; ok {
		e = known
	}
	j, err := s.Packer.job(e, t)
	if errors.Is(err, ErrUnsuited) && m.o.Engine == Auto {
		j, err = s.Packer.job(Auto, t)
	}
	if err != nil {
		return nil, err
	}
	m.resources.Add(j)
	m.took[s] = j.Engine
	return j, nil
}

// Path returns the path of the transfer.
func (t *Transfer) Path() p2p.Path { return t.path }

// InFragments reports whether the message is sent in fragments through the ring of buffers, rather than by
// one job of the sender.
func (t *Transfer) InFragments() bool { return len(t.fragments) > 0 && t.fragments[0].unpack != nil }

// Queue queues the transfer. It begins after the work queued before on the streams, one on each device, and
// both streams continue when it is finished. Queuing allocates nothing. The host does not wait.
func (t *Transfer) Queue(dst, src *streams.Stream) error {
	if err := errors.Join(dst.Record(t.ready), src.Wait(t.ready)); err != nil {
		return err
	}
	for i := range t.fragments {
		if err := t.send(i, dst, src); err != nil {
			return err
		}
	}
	return errors.Join(dst.Record(t.done), src.Wait(t.done))
}

// send queues a fragment.
func (t *Transfer) send(i int, dst, src *streams.Stream) error {
	f, s := &t.fragments[i], &t.ring[i%len(t.ring)]
	if i >= len(t.ring) { // acknowledgment of the slot's previous fragment
		if err := src.Wait(s.taken); err != nil {
			return err
		}
	}
	if err := f.pack.Queue(src); err != nil {
		return err
	}
	if err := t.push(f, s, src); err != nil {
		return err
	}
	if err := dst.Wait(s.sent); err != nil {
		return err
	}
	if f.unpack == nil {
		return nil
	}
	if f.route != nil {
		if err := f.route.Pull(dst); err != nil {
			return err
		}
	}
	if err := f.unpack.Queue(dst); err != nil {
		return err
	}
	return dst.Record(s.taken)
}

// push queues the move of a packed fragment to the receiver.
func (t *Transfer) push(f *fragment, s *slot, src *streams.Stream) error {
	if f.route == nil {
		return src.Record(s.sent)
	}
	return errors.Join(src.Record(s.packed), t.link.Wait(s.packed), f.route.Push(t.link), t.link.Record(s.sent))
}

// Close frees the transfer. Closing twice is not an error.
func (t *Transfer) Close() error { return t.resources.Close() }

// minStored is the minimum mean length in bytes of blocks that are stored over a link one by one; shorter
// ones are faster packed. (Columns of an 8 MiB float64 matrix between two H200: 164 us stored, 64 us packed,
// copied and unpacked.)
const minStored = 64

// isFine reports whether the blocks are shorter than minStored.
func isFine(l *datatype.Layout) bool {
	return l.NumBlocks() > 1 && l.Size()/l.NumBlocks() < minStored
}

// directCopy makes a job of the source's packer that copies from one layout to the other, without a packed
// buffer in between; ErrUnsuited if the layouts do not allow it. The n-th packed byte of one goes to the n-th
// of the other.
func directCopy(dst, src *Side) (*Job, error) {
	from, to := src.Message.Layout, dst.Message.Layout
	j := &Job{Engine: Units}
	if copies, ok := directPieces(dst, src); ok {
		c, err := src.Packer.copier.Strided("send", src.Packer.options.strided(), copies...)
		if err != nil {
			return nil, err
		}
		j.Engine = Transform
		j.resources.Add(c)
		return j, j.launch(c.Kernel, nil)
	}
	if n := max(from.NumBlocks(), to.NumBlocks()); n > maxListed || isFine(from) || isFine(to) {
		return nil, fmt.Errorf("%w: %d blocks of %d bytes in total", ErrUnsuited, n, from.Size())
	}
	list, places := directBlocks(from, to)
	table, err := src.Packer.units.Scatter(places, list, src.Packer.options.units())
	if err != nil {
		return nil, err
	}
	j.resources.Add(table)
	data, start := dst.Place.Data, dst.Place.Origin+to.TrueLB()
	packed := data.Memory.Span(data.Offset+start, to.TrueUB()-to.TrueLB())
	return j, j.inUnits(table, pack.Passage{Packed: packed, Strided: src.Place.Data, Origin: src.Place.Origin})
}

// directPieces returns the copies from piece to piece, if the pieces of both layouts have the same shape.
func directPieces(dst, src *Side) (all []pack.Strided, ok bool) {
	from, to := src.Message.Layout, dst.Message.Layout
	if !from.Strided() || !to.Strided() || len(from.Pieces()) != len(to.Pieces()) {
		return nil, false
	}
	for i := range from.Pieces() {
		p, q := &from.Pieces()[i], &to.Pieces()[i]
		if !sameShape(p, q) || p.Length < minStored {
			return nil, false
		}
		s := pack.Strided{
			Dst:    pack.Point{Data: dst.Place.Data, Offset: dst.Place.Origin + q.Displacement},
			Src:    pack.Point{Data: src.Place.Data, Offset: src.Place.Origin + p.Displacement},
			Length: p.Length,
		}
		for d := range p.Rank {
			s.Dims = append(s.Dims, pack.Dim{Count: p.Dims[d].Count, Dst: q.Dims[d].Stride, Src: p.Dims[d].Stride})
		}
		all = append(all, s)
	}
	return all, true
}

// sameShape reports whether two pieces differ only in the places of their blocks.
func sameShape(p, q *datatype.Piece) bool {
	if p.Length != q.Length || p.Rank != q.Rank || p.Offset != q.Offset {
		return false
	}
	for d := range p.Rank {
		if p.Dims[d].Count != q.Dims[d].Count || p.Dims[d].Packed != q.Dims[d].Packed {
			return false
		}
	}
	return true
}

// directBlocks divides the packed bytes wherever a block of either layout ends. It returns the resulting
// blocks of the first layout, and where each begins in the second, counted from its lower bound.
func directBlocks(from, to *datatype.Layout) (list []pack.Block, places []int64) {
	var ends []datatype.Block // remaining blocks of the second
	for _, b := range to.Blocks() {
		ends = append(ends, b)
	}
	for _, b := range from.Blocks() {
		for b.Length > 0 {
			e := &ends[0]
			n := min(b.Length, e.Length)
			list = append(list, pack.Block{Displacement: b.Displacement, Length: n})
			places = append(places, e.Displacement-to.TrueLB())
			b.Displacement, b.Length = b.Displacement+n, b.Length-n
			e.Displacement, e.Length = e.Displacement+n, e.Length-n
			if e.Length == 0 {
				ends = ends[1:]
			}
		}
	}
	return list, places
}
