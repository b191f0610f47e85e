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
	Packer  *Packer
	Place   Place
	Message *MessageLayout
}

// check returns an error unless there is all of a side.
func (s *Side) check() error {
	switch {
	case s.Packer == nil:
		return errors.New("packing: a side of a transfer has no packer (nil)")
	case s.Message == nil || s.Message.Type == nil || s.Message.Layout == nil:
		return errNoMessage
	}
	return nil
}

// span returns where a message in one piece lies.
func (s *Side) span() streams.Span {
	data, l := s.Place.Data, s.Message.Layout
	return data.Memory.Span(data.Offset+s.Place.Origin+l.TrueLB(), l.Size())
}

// TransferOptions say how a message travels. The zero value suits most.
type TransferOptions struct {
	Path     p2p.Path // one of p2p.Paths; "" or Auto for Direct, or Staged where peers cannot reach each other
	Engine   Engine   // packs and unpacks; "" for Auto
	Fragment int64    // bytes of a fragment, of which a message has up to 2^16; 0 for what suits, also none at all
	Ring     int      // fragments under way at once, up to 1024; 0 for what suits
	// Remote unpacks from the sender's memory, over the link, and not from a copy that
	// the receiver has (Wu et al. 4.1). It is for path Peer.
	Remote bool
}

// Transfer sends a message from one device to another, where it may have another shape but
// has the same signature, any number of times. It goes in fragments through a ring of
// buffers, so that packing, the link and unpacking work at the same time; the receiver
// acknowledges each by an event that the sender's streams wait for (Wu et al. 4.1). Over
// path Direct the packing kernel stores into the receiver's buffer, over Peer a copy
// brings it there, over Staged kernels write and read pinned host memory (4.2). Over another path
// its route brings it from buffer to buffer.
//
// Over path Direct, unless fragments are asked for, there is no packed buffer: if the data is contiguous at one end, a
// kernel packs or unpacks it over the link; otherwise one kernel copies from layout to layout, if the blocks are not
// too short for that.
type Transfer struct {
	resources streams.Resources
	path      p2p.Path
	fragments []fragment
	ring      []slot
	link      *streams.Stream // of the sender, for copies
	ready     *streams.Event  // the receiver's stream has come to the transfer
	done      *streams.Event  // all has arrived
}

// fragment is a range of the packed bytes, with the jobs that move it; nil where there is nothing to do.
type fragment struct {
	pack, unpack *Job
	route        *p2p.Route
}

// slot is a place in the ring: what was packed there, sent, and taken.
type slot struct{ packed, sent, taken *streams.Event }

// NewTransfer prepares a transfer. Close frees what it holds.
func NewTransfer(dst, src Side, o TransferOptions) (t *Transfer, err error) {
	if err := errors.Join(dst.check(), src.check()); err != nil {
		return nil, err
	}
	if err := compatible(dst.Message, src.Message); err != nil {
		return nil, err
	}
	from, to := src.Message.Layout, dst.Message.Layout
	if src.Place.whole(from).Overlaps(dst.Place.whole(to)) && touch(src.Place.spans(from), dst.Place.spans(to)) {
		return nil, fmt.Errorf("packing: what is received overlaps what is sent, in %v", src.Place.Data)
	}
	if paths := p2p.Paths(); !slices.Contains(append(paths, "", p2p.Auto), o.Path) {
		slices.Reverse(paths)
		return nil, fmt.Errorf("packing: %q is no path: %s", o.Path, p2p.Choices(paths))
	}
	names := namesOf(src.Packer.engines)
	if !slices.Contains(append(names, "", Auto), o.Engine) {
		return nil, fmt.Errorf("packing: no engine %q: %v or auto", o.Engine, names)
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
	maxFragments = 1 << 16 // each has jobs of its own
	maxRing      = 1024    // each place has a buffer and events
)

// checkFragments returns an error if a message of so many bytes would go in too many fragments.
func (t TransferOptions) checkFragments(size int64) error {
	if t.Ring > maxRing {
		return fmt.Errorf("packing: a ring of %d fragments; must be at most %d", t.Ring, maxRing)
	}
	if t.Fragment > 0 && (size-1)/t.Fragment >= maxFragments {
		return fmt.Errorf("packing: %d bytes in fragments of %d; must be at most %d fragments", size, t.Fragment,
			maxFragments)
	}
	return nil
}

// compatible returns an error unless the two messages have the same signature.
func compatible(dst, src *MessageLayout) error {
	to, from := dst.Type.Signature().Times(int64(dst.Count)), src.Type.Signature().Times(int64(src.Count))
	if to != from {
		return fmt.Errorf("packing: what is sent is %v, what is received %v", from, to)
	}
	if dst.Layout.Overlaps() {
		return fmt.Errorf("packing: what is received touches bytes twice")
	}
	return nil
}

// withDefaults fills in the options that were left open, except the fragments. Where the sender's kernels do
// not reach the receiver's memory, messages go through the host.
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
	if t.Ring <= 0 {
		t.Ring = 3
	}
	return t
}

// maker makes the parts of a transfer.
type maker struct {
	*Transfer
	dst, src Side
	o        TransferOptions
	took     map[*Side]Engine
}

// events makes the ring's events and the stream of the link.
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
	if m.o.Fragment <= 0 {
		const fewest, least, most = 4, 512 << 10, 4 << 20
		m.o.Fragment = min(most, max(least, (size/fewest+255)/256*256))
	}
	buffers, err := m.buffers(min(size, m.o.Fragment))
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

// short makes the transfer of one job of the sender, where that can be: a copy of what is
// in one piece at both ends, else a kernel that stores into the receiver's memory.
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

// buffer is where a fragment lies at the sender and at the receiver.
type buffer struct{ out, in *streams.Memory }

// buffers makes the ring's buffers: two for a route; one where kernels of both ends reach it, or the receiver unpacks
// from the sender's.
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

// fragment makes a fragment of the packed bytes from lo on.
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

// job makes a side's job for the packed bytes from lo on that fill the buffer. Auto
// measures the first fragment of a side; the others are of the same kind.
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

// Path returns the path that the transfer takes.
func (t *Transfer) Path() p2p.Path { return t.path }

// InFragments reports whether the message goes in fragments through the ring of buffers, and not as
// one job of the sender.
func (t *Transfer) InFragments() bool { return len(t.fragments) > 0 && t.fragments[0].unpack != nil }

// Queue queues the transfer: it begins when what was queued before on the streams, one of
// each device, is done, and both go on when it is. Queuing it makes nothing. The host
// does not wait.
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
	if i >= len(t.ring) { // the acknowledgement of what was there before
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

// push queues what brings a packed fragment to the receiver.
func (t *Transfer) push(f *fragment, s *slot, src *streams.Stream) error {
	if f.route == nil {
		return src.Record(s.sent)
	}
	return errors.Join(src.Record(s.packed), t.link.Wait(s.packed), f.route.Push(t.link), t.link.Record(s.sent))
}

// Close frees its memory. Closing twice is not an error.
func (t *Transfer) Close() error { return t.resources.Close() }

// minStored is the mean length in bytes of blocks that are worth to be stored over a
// link one by one: shorter ones travel better packed. (Columns of a float64 matrix of 8 MiB
// between two H200: 164 us stored, 64 us packed, copied and unpacked.)
const minStored = 64

// isFine reports whether blocks are too short for that.
func isFine(l *datatype.Layout) bool {
	return l.NumBlocks() > 1 && l.Size()/l.NumBlocks() < minStored
}

// directCopy makes a job of the source's packer that copies from one layout to the other at once,
// with no packed buffer between them; ErrUnsuited, if the two do not allow it. The bytes
// that are n-th when packed go from one to the other.
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
		return nil, fmt.Errorf("%w: %d blocks of %d bytes in all", ErrUnsuited, n, from.Size())
	}
	list, places := directBlocks(from, to)
	table, err := src.Packer.units.Scatter(places, list,
		pack.UnitOptions{Unit: src.Packer.options.UnitBytes, MaxBlocks: src.Packer.options.Blocks})
	if err != nil {
		return nil, err
	}
	j.resources.Add(table)
	data, start := dst.Place.Data, dst.Place.Origin+to.TrueLB()
	packed := data.Memory.Span(data.Offset+start, to.TrueUB()-to.TrueLB())
	return j, j.inUnits(table, pack.Passage{Packed: packed, Strided: src.Place.Data, Origin: src.Place.Origin})
}

// directPieces returns the copies from piece to piece, where the pieces of both layouts have
// the same shape.
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

// sameShape reports whether two pieces differ in where their blocks lie in memory only.
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

// directBlocks cuts the packed bytes wherever a block of either layout ends. It returns the
// stretches as they lie in the first, and where each begins in the second, counted from
// its lower bound.
func directBlocks(from, to *datatype.Layout) (list []pack.Block, places []int64) {
	var ends []datatype.Block // what is left of the blocks of the second
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
