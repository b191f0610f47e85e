// Package ranks runs kernels whose thread blocks are device ranks: they put data into each other's memory and notify
// each other while they run, on one GPU or on several, so that some compute while the data of others is in flight. The
// model is dCUDA's (Gysi, Bär and Hoefler 2016; Kuster 2017). In this package a rank is a device rank; the other
// processes of MPI are called processes.
//
// A Program is a kernel in CUDA C++ that includes ranks.cuh, which has the functions that it calls, and its counterpart
// in Go for CPU devices, whose ranks are goroutines with a Rank. A World has the ranks of some devices, and Run
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
	Name    string         // required: name in errors and traces
	Source  kernels.Source // required: source that includes ranks.cuh
	Kernel  string         // required: kernel name in the source; its only parameter is a ranks::World
	Threads int            // required: threads per rank, a multiple of 32 up to 1024
	Shared  int            // bytes of dynamic shared memory per rank; default 0

	// Host is what a rank does on a CPU device. It must return as soon as a wait or another call of the rank
	// returns false. Default: nil, which rejects CPU devices.
	Host func(r *Rank)

	// Errors has errors by the code that a rank ends a run with, see Rank.Fail. The error of the run wraps
	// that of its code, if any. Default: nil.
	Errors map[int64]error
}

// check returns an error unless the program can be run.
func (p Program) check() error {
	switch {
	case p.Name == "":
		return errors.New("ranks: the program has no name")
	case p.Threads < 32 || p.Threads > 1024 || p.Threads%32 != 0:
		return fmt.Errorf("ranks: %s: Program.Threads must be a multiple of 32 up to 1024, got %d", p.Name, p.Threads)
	case p.Kernel == "":
		return fmt.Errorf("ranks: %s: Program.Kernel must not be empty", p.Name)
	case p.Shared < 0:
		return fmt.Errorf("ranks: %s: Program.Shared must be at least 0, got %d", p.Name, p.Shared)
	}
	for _, define := range p.Source.Defines {
		name, _, _ := strings.Cut(define, "=")
		if slices.Contains([]string{"RANK_TAGS", "RANK_QUEUES", "RANK_CHECKS", "RANK_PROXY"}, name) {
			return fmt.Errorf("ranks: %s: Source.Defines must not have %s, which Options set", p.Name, name)
		}
	}
	return nil
}

// Options configure the ranks. The zero value suits most programs.
type Options struct {
	// Ranks is the number of ranks per device, equal on all devices. If it is 0, PerMultiprocessor ranks run
	// on each multiprocessor of a GPU; if both are 0, as many as fit at the same time. A core of a CPU device
	// counts as a multiprocessor, with one rank by default; all CPU devices of a world have at most 65536
	// ranks together.
	Ranks, PerMultiprocessor int
	// If Multiple is not 0, the ranks per device must be a multiple of it: Ranks must be one, and any other
	// number is rounded down, but not below Multiple. If AtMost is not 0, a device has at most AtMost ranks.
	Multiple, AtMost int

	// Processes are the processes whose devices form the world, see New; nil for this process only. Ranks of
	// different processes communicate through proxies, which send messages over MPI.
	Processes *mpi.Processes

	Limit time.Duration // limit of every wait of a rank; 0: 20 seconds; at most 100 years
	// Queues keeps the window and source of notifications, so that a rank can wait for those that match
	// (Gysi, Bär and Hoefler 2016). This is slower than counts by tag. Default: false.
	Queues bool

	// Proxy makes all GPUs access each other through a proxy, a goroutine that copies for their ranks, even
	// if they could store to each other directly. GPUs without direct access always use it. CPU devices do
	// not need it. Default: false.
	Proxy bool

	Checks bool // check the arguments of every call, which takes time; default false
	// Log is where Rank.Log writes; nil discards the lines. Errors of the writer are ignored. A writer that
	// blocks delays the ranks that log, and Run.
	Log io.Writer
}

// check returns an error unless the options are consistent.
func (o Options) check() error {
	switch {
	case o.Ranks < 0 || o.PerMultiprocessor < 0:
		return fmt.Errorf("Ranks and PerMultiprocessor must be at least 0, got %d and %d", o.Ranks, o.PerMultiprocessor)
	case o.Limit < 0:
		return fmt.Errorf("option Limit must not be negative, got %v", o.Limit)
	case o.Multiple < 0 || o.AtMost < 0:
		return fmt.Errorf("options Multiple and AtMost must not be negative, got %d and %d", o.Multiple, o.AtMost)
	case o.Multiple > 0 && o.Ranks%o.Multiple != 0:
		return fmt.Errorf("Ranks must be a multiple of Multiple, got %d and %d", o.Ranks, o.Multiple)
	case o.AtMost > 0 && o.AtMost < o.Multiple:
		return fmt.Errorf("AtMost must be at least Multiple (%d), got %d", o.Multiple, o.AtMost)
	}
	return nil
}

// ranksOf returns the number of ranks of a device if fits of them can run at the same time; 0 means no bound.
func (o Options) ranksOf(fits, cores int) int {
	each := min(o.PerMultiprocessor, math.MaxInt/max(cores, 1)) // does not fit anywhere if it is the second
	n := cmp.Or(o.Ranks, each*cores, fits, cores)
	if o.AtMost > 0 {
		n = min(n, o.AtMost)
	}
	if o.Multiple > 0 {
		n = max(1, n/o.Multiple) * o.Multiple
	}
	return n
}

// limit is the default of Options.Limit.
const limit = 20 * time.Second

// longest leaves space for what is added to a limit.
const longest = 100 * 365 * 24 * time.Hour

// mostOnHosts is the maximum number of ranks on all CPU devices of a world: each has a goroutine, and up to
// 20 KB. The tree of maxLevels holds as many.
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

// World is the ranks of a program on some devices. Run runs them, any number of times, one run after another.
type World struct {
	program Program
	options Options
	topology
	resources streams.Resources
	windows   [2]uint64        // made by NewWindow
	presets   map[int][][]byte // their memory on CPU devices, by slot and rank of the world
	sizes     map[int][]int64  // sizes of presets in bytes
	host      *hostRanks       // ranks on CPU devices
	channels  []channel        // made by NewChannel
	laid      int              // number of channels with memory on GPUs
	known     int              // number of channels that GPUs know
	log       logger
	first     uint64          // initial value of all counts of notifications
	members   []*member       // by device of this process
	arrivals  *streams.Memory // pinned: data that the proxy gets from other processes, or nil
	served    []uint64        // by device of this process: bits of the devices that it accesses only by its proxy
	use       sync.Mutex      // held by Run, NewWindow, NewChannel and Close
	closed    atomic.Bool
	grace     time.Duration // limit for ranks to end after the end of a run
	stuck     error         // error of a run whose ranks may still run: no other run begins
	passable  reflect.Type  // type of data checked by an earlier run
}

// member is a device of a world.
type member struct {
	index    int // index of the device in the world
	device   *streams.Device
	stream   *streams.Stream
	ended    *streams.Event
	kernel   *streams.Kernel
	control  *streams.Memory   // pinned
	ender    *streams.Stream   // stream for copies of control.ended, see copyEnded
	lines    *streams.Memory   // pinned: lines of the log
	memory   *streams.Memory   // of a GPU: memory of its ranks, see memoryLayout
	staging  *streams.Memory   // pinned: initial content of memory, and final timings
	zeros    *streams.Memory   // pinned: initial content of boxes, queues and rings
	rings    []*streams.Memory // of a GPU: rings of channels
	ends     *streams.Memory   // of a GPU: ends of channels, or nil
	commands *streams.Memory   // pinned: commands for the proxy, or nil
	proxied  *streams.Stream   // stream of the proxy
	batch    batch             // batch of the proxy
	space    *streams.Memory   // of a GPU: all its addresses from spaceBegin, for the proxy, or nil
	data     *streams.Memory   // of a GPU: the caller's data
	copied   *streams.Memory   // pinned: the caller's data
	took     []int64           // timings of the last run, ns
}

// spaceBegin is the lowest address of memory that a proxy copies to or from.
const spaceBegin = 16

func (w *World) layout() memoryLayout {
	return memoryLayout{int64(w.ranks), int64(len(w.owners)), w.options.Queues, w.proxied()}
}

// controls is memory through which a GPU and the host notify each other during a run.
func (m *member) controls() *control { return (*control)(unsafe.Pointer(&m.control.Bytes()[0])) }

// copyEnded queues a copy of control.ended to device memory, where waiting ranks poll it. Its stream runs
// concurrently with the kernel.
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

// Ranks returns the number of ranks per device.
func (w *World) Ranks() int { return w.ranks }

// First returns the first rank of this process. The ranks of its device i are First() + Ranks()*i and the
// following.
func (w *World) First() int { return w.ranks * w.before }

// Name returns the number of a rank and its device or, if that belongs to another process, the process.
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

// usable returns an error if the world is closed, or running (not free).
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
