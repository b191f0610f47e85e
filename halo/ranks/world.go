// Package ranks runs kernels whose thread blocks are device ranks: they put data into each other's memory and notify
// each other while they run, on one GPU or on several, so that some compute while the data of others is in flight. The
// model is dCUDA's (Gysi, Bär and Hoefler 2016; Kuster 2017). In this package a rank is a device rank; the other
// processes of MPI are called processes.
//
// A Program is a kernel in CUDA C++ that includes ranks.cuh, which has the functions that it calls, and its counterpart
// in Go for host devices, whose ranks are goroutines with a Rank. A World has the ranks of some devices, and Run
// runs the program on them.
package ranks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// Program is a kernel whose thread blocks are ranks.
type Program struct {
	Name    string         // for errors and traces
	Source  kernels.Source // that includes ranks.cuh
	Kernel  string         // its name in the source; its one parameter is a ranks::World
	Threads int            // of a rank, a multiple of 32
	Shared  int            // bytes of dynamic shared memory of a rank

	// What a rank does on a CPU device. It returns as soon as a wait or another call of the rank returns false. Nil:
	// CPU devices are rejected.
	Host func(r *Rank)

	// Errors by the code that a rank ends a run with, see Rank.Fail. The error of the run wraps that of its code, if
	// any.
	Errors map[int64]error
}

// check returns an error unless the program can be run.
func (p Program) check() error {
	switch {
	case p.Name == "":
		return errors.New("ranks: the program has no name")
	case p.Threads < 32 || p.Threads > 1024 || p.Threads%32 != 0:
		return fmt.Errorf("ranks: %s: %d threads per rank; must be a multiple of 32, at most 1024", p.Name, p.Threads)
	case p.Kernel == "":
		return fmt.Errorf("ranks: %s: Program.Kernel names no kernel", p.Name)
	case p.Shared < 0:
		return fmt.Errorf("ranks: %s: %d bytes of shared memory", p.Name, p.Shared)
	}
	for _, define := range p.Source.Defines {
		name, _, _ := strings.Cut(define, "=")
		if slices.Contains([]string{"RANK_TAGS", "RANK_QUEUES", "RANK_CHECKS", "RANK_PROXY"}, name) {
			return fmt.Errorf("ranks: %s: Source.Defines has %s, which New sets as Options say", p.Name, name)
		}
	}
	return nil
}

// Options are how a program runs. The zero value suits most programs.
type Options struct {
	// How many ranks each device has, the same number on all: Ranks, or, if that is 0, PerMultiprocessor on each
	// multiprocessor of a GPU, or, if both are 0, as many as fit at the same time. A core of a CPU device counts as a
	// multiprocessor, with one rank by default; all CPU devices of a world have up to 65536 ranks together.
	Ranks, PerMultiprocessor int
	// If not 0, the ranks of a device are a multiple of Multiple: Ranks must be one, and any other number is rounded
	// down, but to no less than Multiple. If not 0, a device has at most AtMost ranks.
	Multiple, AtMost int

	// The processes whose devices form the world, see New; nil: this process only. Ranks of different processes reach
	// each other through proxies, which send messages over MPI.
	Processes *mpi.Processes

	Limit time.Duration // of every wait of a rank; 0 is 20 seconds. More than 100 years are 100 years
	// Notifications keep their window and source, and a rank can wait for those that match (Gysi, Bär and Hoefler
	// 2016). This is slower than counts by tag.
	Queues bool

	// All GPUs reach each other through a proxy, a goroutine that copies for their ranks, also those that could store
	// to each other directly. GPUs that cannot always use it. CPU devices do not need it.
	Proxy bool

	Checks bool // check the arguments of every call, which costs time
	// Where Rank.Log writes; nil: nowhere. Errors of the writer are not reported. A writer that blocks delays the ranks
	// that log, and Run.
	Log io.Writer
}

// check returns an error unless the options make sense together.
func (o Options) check() error {
	switch {
	case o.Ranks < 0 || o.PerMultiprocessor < 0:
		return fmt.Errorf("%d ranks, %d a multiprocessor: one is negative", o.Ranks, o.PerMultiprocessor)
	case o.Limit < 0:
		return fmt.Errorf("a limit of %v is negative", o.Limit)
	case o.Multiple < 0 || o.AtMost < 0:
		return fmt.Errorf("options of a multiple of %d ranks, at most %d", o.Multiple, o.AtMost)
	case o.Multiple > 0 && o.Ranks%o.Multiple != 0:
		return fmt.Errorf("%d ranks are no multiple of %d", o.Ranks, o.Multiple)
	case o.AtMost > 0 && o.AtMost < o.Multiple:
		return fmt.Errorf("no multiple of %d ranks is at most %d", o.Multiple, o.AtMost)
	}
	return nil
}

// ranksOf returns how many ranks a device has if fits of them can run at the same time; 0 is no bound.
func (o Options) ranksOf(fits, cores int) int {
	each := min(o.PerMultiprocessor, math.MaxInt/max(cores, 1)) // fits nowhere where it is the second
	n := cmp.Or(o.Ranks, each*cores, fits, cores)
	if o.AtMost > 0 {
		n = min(n, o.AtMost)
	}
	if o.Multiple > 0 {
		n = max(1, n/o.Multiple) * o.Multiple
	}
	return n
}

// limit of a wait unless Options.Limit is set.
const limit = 20 * time.Second

// longest leaves room for what is added to a limit.
const longest = 100 * 365 * 24 * time.Hour

// mostOnHosts is how many ranks all host devices of a world have at most: each has a goroutine, and up to 20 KB. The
// tree of maxLevels holds as many.
const mostOnHosts = 1 << 16

// defines are the build options of a program's source.
func (o Options) defines() (all []string) {
	all = append(all, fmt.Sprintf("RANK_TAGS=%d", Tags))
	if o.Queues {
		all = append(all, "RANK_QUEUES")
	}
	if o.Checks {
		all = append(all, "RANK_CHECKS")
	}
	return all
}

// World is the ranks of a program on some devices. Run runs them, any number of times, one run after the other.
type World struct {
	program Program
	options Options
	topology
	resources streams.Resources
	windows   [2]uint64        // that NewWindow made
	presets   map[int][][]byte // their memory on host devices, by slot and rank of the world
	sizes     map[int][]int64  // as many bytes
	host      *hostRanks       // of runs on host devices
	channels  []channel        // that NewChannel made
	laid      int              // how many of them have memory on GPUs
	known     int              // how many of them GPUs know of
	log       logger
	first     uint64          // what all counts of notifications begin with
	members   []*member       // by device of this process
	arrivals  *streams.Memory // pinned: what the proxy gets of other processes, or nil
	served    []uint64        // likewise: devices of the world that it reaches by its proxy alone, a bit each
	use       sync.Mutex      // held by Run, NewWindow, NewChannel and Close
	closed    atomic.Bool
	grace     time.Duration // how long ranks may take to end when the run is over
	stuck     error         // of a run whose ranks may still be there: no other begins
	passable  reflect.Type  // the type of data that a run before has checked
}

// member is a device of a world.
type member struct {
	index    int // of the device in the world
	device   *streams.Device
	stream   *streams.Stream
	ended    *streams.Event
	kernel   *streams.Kernel
	control  *streams.Memory   // pinned
	ender    *streams.Stream   // of copies of control.ended, see copyEnded
	lines    *streams.Memory   // pinned: of the log
	memory   *streams.Memory   // of a GPU: what it has for its ranks, see memoryLayout
	staging  *streams.Memory   // pinned: what memory begins with, and the timings that it ends with
	zeros    *streams.Memory   // pinned: of what boxes, queues and rings begin with
	rings    []*streams.Memory // of a GPU: of channels
	ends     *streams.Memory   // of a GPU: of channels, or nil
	commands *streams.Memory   // pinned: what the proxy is to do, or nil
	proxied  *streams.Stream   // of the proxy
	batch    batch             // of the proxy
	space    *streams.Memory   // of a GPU: all its addresses from spaceBegin on, for the proxy, or nil
	data     *streams.Memory   // of a GPU: the caller's
	copied   *streams.Memory   // pinned: the same
	took     []int64           // timings of the last run, ns
}

// spaceBegin is the lowest address of memory that a proxy copies to or from.
const spaceBegin = 16

func (w *World) layout() memoryLayout {
	return memoryLayout{int64(w.ranks), int64(len(w.owners)), w.options.Queues, w.proxied()}
}

// controls is memory through which a GPU and the host notify each other during a run.
func (m *member) controls() *control { return (*control)(unsafe.Pointer(&m.control.Bytes()[0])) }

// copyEnded queues a copy of control.ended to device memory, where waiting ranks poll it. Its stream runs beside the
// kernel.
func (m *member) copyEnded() error {
	return m.ender.Copy(m.memory.Span(runEnded*lineBytes, 8), m.control.Span(0, 8))
}

// proxied reports whether any two devices need a proxy.
func (w *World) proxied() bool {
	return slices.ContainsFunc(w.served, func(bits uint64) bool { return bits != 0 })
}

// member returns a device of the world, nil if it belongs to another process.
func (w *World) member(device int) *member {
	if i := device - w.before; i >= 0 && i < len(w.members) {
		return w.members[i]
	}
	return nil
}

// Devices returns the devices of this process, in the order of their ranks.
func (w *World) Devices() []*streams.Device { return w.devices }

// Ranks returns how many ranks each device has.
func (w *World) Ranks() int { return w.ranks }

// First returns the first rank of this process. Those of its device i are First + Ranks*i and the next ones in the
// world.
func (w *World) First() int { return w.ranks * w.before }

// Name returns the number of a rank with its device or, if that belongs to another process, with the process.
func (w *World) Name(rank int) string {
	if rank < 0 || rank >= w.Size() {
		return fmt.Sprintf("rank %d", rank)
	}
	device := rank / w.ranks
	if m := w.member(device); m != nil {
		return fmt.Sprintf("rank %d (%v)", rank, m.device)
	}
	return fmt.Sprintf("rank %d (of %s)", rank, w.remote.processes.Name(w.owners[device]))
}

// Close waits for the end of a run and frees the memory of the world. Ranks must not call it. It may be called twice.
func (w *World) Close() error {
	w.closed.Store(true)
	w.use.Lock()
	defer w.use.Unlock()
	return w.resources.Close()
}

// usable returns an error if the world is closed, or not free: it is running.
func (w *World) usable(free bool) error {
	switch {
	case w.closed.Load():
		return fmt.Errorf("ranks: %s: the world is closed", w.program.Name)
	case !free:
		return fmt.Errorf("ranks: %s: the world is running", w.program.Name)
	}
	return nil
}

// agree returns an error on all processes if err is not nil on any of them.
func (w *World) agree(what string, err error) error {
	if w.remote == nil { // a run allocates nothing
		return err
	}
	what = fmt.Sprintf("ranks: %s: %s", w.program.Name, what)
	return w.options.Processes.Agree(context.Background(), what, err)
}

// gather returns mine of each process, by rank of the process, or an error on all if err is not nil on any of them.
func gather[T any](w *World, what string, mine T, err error) ([]T, error) {
	if err := w.agree(what, err); err != nil {
		return nil, err
	}
	what = fmt.Sprintf("ranks: %s: %s", w.program.Name, what)
	return mpi.Gather(context.Background(), w.options.Processes, what, mine)
}
