// Package packing packs and unpacks MPI datatypes where they lie: data on a GPU, that is
// not in one piece, into a buffer in one piece on that GPU, on a peer, or in pinned host
// memory, and back.
//
// A [MessageLayout] is some elements of a type, see package datatype. A [Packer] belongs to a device
// and makes a [Job] of a message and its place, by one of the engines of three papers: Wu et
// al. 2016 (Open MPI), Jenkins et al. 2014 (MPICH) and Shi et al. 2014 (HAND, MVAPICH2), or
// by the one that is fastest for that layout, which [Auto] measures once and remembers, and
// learns from for other layouts. A job is queued on a stream any number of times, and queuing
// it makes nothing.
package packing

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// Engine names a method of packing and unpacking. Each is declared next to the code that makes its jobs; see Engines.
type Engine string

// Auto is the fastest of the engines for a layout, as measured.
const Auto Engine = "auto"

// ErrUnsuited says that an engine cannot pack a layout, or only at an absurd cost, such as a million copies.
var ErrUnsuited = errors.New("the engine does not suit the layout")

// MessageLayout is count elements of a type, committed so that they can be packed any number of times.
type MessageLayout struct {
	Type   *datatype.Type // nil for a fragment of a message
	Count  int
	Layout *datatype.Layout
}

// NewMessageLayout commits the type.
func NewMessageLayout(t *datatype.Type, count int) (*MessageLayout, error) {
	l, err := datatype.Commit(t, count)
	if err != nil {
		return nil, err
	}
	return &MessageLayout{t, count, l}, nil
}

// slice returns what of a message is packed from byte lo to byte hi: the message, if that is
// all.
func (m *MessageLayout) slice(lo, hi int64) (*MessageLayout, error) {
	if lo == 0 && hi == m.Layout.Size() {
		return m, nil
	}
	l, err := m.Layout.Slice(lo, hi)
	return &MessageLayout{Layout: l}, err
}

// Place is where the elements of a message lie: displacement 0 is Origin bytes after the
// start of Data, which holds all that the message touches.
type Place struct {
	Data   streams.Span
	Origin int64
}

// task is a message at its place, to be packed into a buffer or unpacked from there.
type task struct {
	message *MessageLayout
	packed  streams.Span
	place   Place
	unpack  bool
}

var errNoMessage = errors.New("packing: there is no message (nil)")

// check returns an error unless the message lies within its memory on both sides.
func (t *task) check() error {
	if t.message == nil || t.message.Layout == nil {
		return errNoMessage
	}
	l := t.message.Layout
	if t.packed.Length < l.Size() {
		return fmt.Errorf("packing: %d bytes for a buffer of %d", l.Size(), t.packed.Length)
	}
	origin, lb, ub := t.place.Origin, l.TrueLB(), l.TrueUB()
	lo, hi := origin+lb, origin+ub
	wraps := (lo < origin) != (lb < 0) || (hi < origin) != (ub < 0)
	if wraps || lo < 0 || hi > t.place.Data.Length {
		return fmt.Errorf("packing: bytes from %d to %d, displacements %d to %d, do not lie in %v", lo, hi, l.TrueLB(),
			l.TrueUB(), t.place.Data)
	}
	packed := t.packed
	packed.Length = l.Size()
	if t.place.whole(l).Overlaps(packed) && touch(t.place.spans(l), []streams.Span{packed}) {
		return fmt.Errorf("packing: the packed bytes, in %v, overlap the elements of the message", t.packed)
	}
	return nil
}

// whole returns the smallest span that holds all elements of a layout at the place.
func (p Place) whole(l *datatype.Layout) streams.Span {
	lb := l.TrueLB()
	return streams.Span{Memory: p.Data.Memory, Offset: p.Data.Offset + p.Origin + lb, Length: l.TrueUB() - lb}
}

// spans returns the blocks of a layout at the place, by offset.
func (p Place) spans(l *datatype.Layout) (all []streams.Span) {
	for _, b := range l.Blocks() {
		all = append(all, streams.Span{
			Memory: p.Data.Memory, Offset: p.Data.Offset + p.Origin + b.Displacement, Length: b.Length,
		})
	}
	slices.SortFunc(all, func(a, b streams.Span) int { return cmp.Compare(a.Offset, b.Offset) })
	return all
}

// touch reports whether spans of one memory, by offset, have bytes in common with others.
func touch(all, others []streams.Span) bool {
	for len(all) > 0 && len(others) > 0 {
		switch a, b := all[0], others[0]; {
		case a.Overlaps(b):
			return true
		case a.Offset < b.Offset:
			all = all[1:]
		default:
			others = others[1:]
		}
	}
	return false
}

// alignment returns what both addresses of the task are multiples of, up to 16.
func (t *task) alignment() int64 {
	both := int64(t.place.Data.Address()+uint64(t.place.Origin)) | int64(t.packed.Address()) | 16
	return both & -both
}

// name says what the task is, for errors.
func (t *task) name() string {
	if t.unpack {
		return "unpack"
	}
	return "pack"
}

// Options say how the engines work. The zero value lets each do as suits it.
type Options struct {
	Blocks    int       // thread blocks that a kernel may take at most; 0 for as many as suit
	UnitBytes int       // of a work unit: 1024, 2048 or 4096; 0 for what suits (units)
	Loop      pack.Loop // what a thread copies one after the other (targeted, transform)
	Scan      pack.Scan // how prefix sums are computed (bypass)
	// threads along a block, a power of two up to 256; 0 for what suits (bypass, targeted of blocks of one length)
	Lanes     int
	Pinned    bool // the list of blocks stays in pinned host memory (bypass)
	Primitive bool // a thread moves one primitive, not a wide word (tree)
}

// strided and listed are the options of the kernels.
func (o Options) strided() pack.StridedOptions {
	return pack.StridedOptions{MaxBlocks: o.Blocks, Loop: o.Loop}
}

func (o Options) listed(equal bool) pack.BlockOptions {
	return pack.BlockOptions{Equal: equal, Pinned: o.Pinned, Scan: o.Scan, Lanes: o.Lanes, MaxBlocks: o.Blocks}
}

// Job packs or unpacks one message at one place, any number of times.
type Job struct {
	resources streams.Resources
	Engine    Engine // never Auto
	Why       string // why Auto took it: what was measured
	queue     func(s *streams.Stream) error
	most      int // operations that it queues, where they are more than two
}

// operations returns how many operations the job queues on a stream at most.
func (j *Job) operations() int { return max(2, j.most) }

// Queue queues the work on a stream of the packer's device.
func (j *Job) Queue(s *streams.Stream) error {
	if j.queue == nil {
		return nil
	}
	return j.queue(s)
}

// launch makes a job of one kernel.
func (j *Job) launch(k *streams.Kernel, err error) error {
	if err != nil {
		return err
	}
	j.resources.Add(k)
	j.queue = func(s *streams.Stream) error { return s.Launch(k) }
	return nil
}

// Close frees its memory. Closing twice is not an error.
func (j *Job) Close() error { return j.resources.Close() }
