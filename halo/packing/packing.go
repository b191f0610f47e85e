// Package packing packs and unpacks MPI datatypes on GPUs: non-contiguous data on a GPU into a contiguous
// buffer on that GPU, on a peer, or in pinned host memory, and back.
//
// A [MessageLayout] is a number of elements of a type, see package datatype. A [Packer] belongs to a device
// and makes a [Job] from a message and its place, by one of the engines of three papers: Wu et al. 2016 (Open
// MPI), Jenkins et al. 2014 (MPICH) and Shi et al. 2014 (HAND, MVAPICH2). [Auto] selects the engine that is
// fastest for the layout; it measures each layout once and saves the result. A job can be queued on a stream
// any number of times, and queuing allocates nothing.
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

// Auto is the engine measured to be the fastest for a layout.
const Auto Engine = "auto"

// ErrUnsuited reports that an engine cannot pack a layout, or only at an excessive cost, such as a million
// copies.
var ErrUnsuited = errors.New("the engine does not suit the layout")

// MessageLayout is count elements of a type, committed so that they can be packed any number of times.
type MessageLayout struct {
	Type   *datatype.Type   // nil for a fragment of a message
	Count  int              // number of elements
	Layout *datatype.Layout // layout of all elements
}

// NewMessageLayout commits the type.
func NewMessageLayout(t *datatype.Type, count int) (*MessageLayout, error) {
	l, err := datatype.Commit(t, count)
	if err != nil {
		return nil, err
	}
	return &MessageLayout{t, count, l}, nil
}

// slice returns the layout of packed bytes lo to hi of a message: the message itself if that is all.
func (m *MessageLayout) slice(lo, hi int64) (*MessageLayout, error) {
	if lo == 0 && hi == m.Layout.Size() {
		return m, nil
	}
	l, err := m.Layout.Slice(lo, hi)
	return &MessageLayout{Layout: l}, err
}

// Place is the location of a message's elements: displacement 0 is Origin bytes after the start of Data,
// which contains all bytes of the message.
type Place struct {
	Data   streams.Span // memory of the elements
	Origin int64        // offset of displacement 0, bytes
}

// task is a message at its place, to be packed into a buffer or unpacked from there.
type task struct {
	message *MessageLayout
	packed  streams.Span
	place   Place
	unpack  bool
}

var errNoMessage = errors.New("packing: the message is nil")

// check returns an error unless the message is inside its memory on both sides.
func (t *task) check() error {
	if t.message == nil || t.message.Layout == nil {
		return errNoMessage
	}
	l := t.message.Layout
	if t.packed.Length < l.Size() {
		return fmt.Errorf("packing: the buffer must have at least %d bytes, got %d", l.Size(), t.packed.Length)
	}
	origin, lb, ub := t.place.Origin, l.TrueLB(), l.TrueUB()
	lo, hi := origin+lb, origin+ub
	wraps := (lo < origin) != (lb < 0) || (hi < origin) != (ub < 0)
	if wraps || lo < 0 || hi > t.place.Data.Length {
		return fmt.Errorf("packing: bytes %d to %d, displacements %d to %d, must be inside %v", lo, hi, l.TrueLB(),
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

// alignment returns the common alignment of both addresses of the task, up to 16.
func (t *task) alignment() int64 {
	both := int64(t.place.Data.Address()+uint64(t.place.Origin)) | int64(t.packed.Address()) | 16
	return both & -both
}

// name describes the task in errors.
func (t *task) name() string {
	if t.unpack {
		return "unpack"
	}
	return "pack"
}

// Options configure the engines. The zero value selects suitable values.
type Options struct {
	Blocks    int       // maximum thread blocks per kernel; 0: automatic
	UnitBytes int       // bytes per work unit: 1024, 2048 or 4096; 0: automatic (units)
	Loop      pack.Loop // order of a thread's copies; default: see pack.Loop (targeted, transform)
	Scan      pack.Scan // method of prefix sums; default: see pack.Scan (bypass)
	// threads along a block, a power of two up to 256; 0: automatic (bypass, targeted with blocks
	// of one length)
	Lanes     int
	Pinned    bool // keep the list of blocks in pinned host memory; default false (bypass)
	Upload    bool // copy the list of blocks from there to the device before each use; default false (bypass)
	Primitive bool // a thread moves one primitive instead of a wide word; default false (tree)
	Ahead     bool // cut all units before the first launch, instead of while kernels run; default false (units)
	Each      bool // a launch for each vector, as in HAND, instead of one for all; default false (transform)
	Uncached  bool // a job keeps its table of the layout for itself; default false (bypass, units, tree)
}

// strided and listed are the options of the kernels.
func (o Options) strided() pack.StridedOptions {
	return pack.StridedOptions{MaxBlocks: o.Blocks, Loop: o.Loop}
}

func (o Options) listed(equal bool) pack.BlockOptions {
	return pack.BlockOptions{Equal: equal, Pinned: o.Pinned, Upload: o.Upload, Scan: o.Scan, Lanes: o.Lanes,
		MaxBlocks: o.Blocks}
}

// units are the options of the table of units.
func (o Options) units() pack.UnitOptions {
	return pack.UnitOptions{Unit: o.UnitBytes, MaxBlocks: o.Blocks, Ahead: o.Ahead}
}

// Job packs or unpacks one message at one place, any number of times.
type Job struct {
	resources streams.Resources
	Engine    Engine // the engine used, never Auto
	Why       string // measurements that Auto chose it by
	queue     func(s *streams.Stream) error
	most      int // number of queued operations if more than two
}

// operations returns the maximum number of operations that the job queues on a stream.
func (j *Job) operations() int { return max(2, j.most) }

// Queue queues the job on a stream of the packer's device.
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

// Sequence returns a job that queues jobs of one device one after the other, and closes them. Its engine is that of the
// first.
func Sequence(jobs ...*Job) *Job {
	all := &Job{Engine: jobs[0].Engine, Why: jobs[0].Why}
	all.follow(jobs)
	return all
}

// follow makes the job queue others one after the other, and close them.
func (j *Job) follow(jobs []*Job) {
	for _, one := range jobs {
		j.resources.Add(one)
		j.most += one.operations()
	}
	j.queue = func(s *streams.Stream) error {
		for _, one := range jobs {
			if err := one.Queue(s); err != nil {
				return err
			}
		}
		return nil
	}
}

// Close frees the job. Closing twice is not an error.
func (j *Job) Close() error { return j.resources.Close() }
