// Package ranks runs kernels whose thread blocks are ranks: they put data into each other's memory and notify
// each other while they run, on one GPU or on several, so that some compute while the data of others is under
// way. The model is dCUDA's (Gysi, Bär and Hoefler 2016; Kuster 2017).
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

	// What a rank does on a host device. It gives up where a wait or another call of the rank returns false. Nil:
	// host devices are refused.
	Host func(r *Rank)

	// What the codes mean that ranks end a run with, by Rank.Fail: a run's error wraps that of its code, if there is one.
	Errors map[int64]error
}

// check returns an error unless the program can be run.
func (p Program) check() error {
	switch {
	case p.Name == "":
		return errors.New("ranks: the program has no name")
	case p.Threads < 32 || p.Threads > 1024 || p.Threads%32 != 0:
		return fmt.Errorf("ranks: %s: %d threads a rank; a multiple of 32 up to 1024 is possible", p.Name, p.Threads)
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

// Options say how a program is run. The zero value is that of most programs.
type Options struct {
	// How many ranks each device has: Ranks, or, if that is 0, PerMultiprocessor on each multiprocessor of a GPU,
	// or as many as fit there together. All devices have as many. A core of a host device counts as a multiprocessor,
	// and has one if nothing is said; all host devices of a world have up to 65536 ranks together.
	Ranks, PerMultiprocessor int
	// If not 0, the ranks of a device are a multiple of Multiple: Ranks must be one, and any other number is made the next
	// one below, but at least Multiple. A device has no more than AtMost, whatever else is said.
	Multiple, AtMost int

	// The processes whose devices share the ranks, each with its own, see New; nil: this one alone. Ranks of different
	// processes reach each other through proxies, which send messages.
	Processes *mpi.Processes

	Limit time.Duration // of every wait of a rank; 0 is 20 seconds. More than 100 years are 100 years
	// Notifications keep their window and their source, and a rank can wait for those of one: as in Gysi, Bär and Hoefler
	// 2016, and slower than counts by tag.
	Queues bool

	// GPUs reach each other through the host, also those that could reach each other directly: by a proxy, a goroutine
	// of the host that copies for their ranks. It serves GPUs that cannot in any case. Host devices have no need of it.
	Proxy bool

	Checks bool // the arguments of every call are checked, which costs some
	// What ranks log; nil: it is lost. Errors of the writer are not reported. One that blocks holds up the ranks that log,
	// and Run.
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

// ranksOf returns how many ranks a device has of which so many fit, 0 for any number.
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

// limit of a wait where the caller has none.
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

// World is the ranks of a program on some devices, ready to be run, any number of times, one after the other.
type World struct {
	program   Program
	options   Options
	devices   []*streams.Device // of this process
	owners    []int             // by device of the world: its process
	before    int               // how many devices of the world are those of processes before this one
	remote    *remote           // the other processes; nil: there are none
	ranks     int               // of each device
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

// member is what a device has of a world.
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

// spaceBegin is the first address that may be one of memory.
const spaceBegin = 16

func (w *World) layout() memoryLayout {
	return memoryLayout{int64(w.ranks), int64(len(w.owners)), w.options.Queues, w.proxied()}
}

// controls returns what a GPU and the host tell each other.
func (m *member) controls() *control { return (*control)(unsafe.Pointer(&m.control.Bytes()[0])) }

// copyEnded queues a copy of control.ended to where the ranks of a GPU look for it: a stream of its own passes the
// kernel that runs.
func (m *member) copyEnded() error {
	return m.ender.Copy(m.memory.Span(runEnded*lineBytes, 8), m.control.Span(0, 8))
}

// proxied reports whether a proxy serves any two devices.
func (w *World) proxied() bool {
	return slices.ContainsFunc(w.served, func(bits uint64) bool { return bits != 0 })
}

// member returns what a device of the world has here, nil if it is one of another process.
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

// Size returns how many ranks there are, of all processes.
func (w *World) Size() int { return w.ranks * len(w.owners) }

// Name names a rank by its device, or, if that is one of another process, by this; one that is not there by its number
// alone.
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

// Close frees what it holds, once a run under way has ended, which it waits for: ranks may not call it. Closing twice
// is no error.
func (w *World) Close() error {
	w.closed.Store(true)
	w.use.Lock()
	defer w.use.Unlock()
	return w.resources.Close()
}

// agree has all processes fail where one does.
func (w *World) agree(what string, err error) error {
	if w.remote == nil {
		return err
	}
	return w.remote.processes.Agree(context.Background(), fmt.Sprintf("ranks: %s: %s", w.program.Name, what), err)
}

// gather returns what each process has given, by rank, unless one has failed.
func (w *World) gather(what string, mine []byte, err error) ([][]byte, error) {
	if w.remote == nil {
		return [][]byte{mine}, err
	}
	if err := w.agree(what, err); err != nil {
		return nil, err
	}
	return w.remote.processes.Gather(context.Background(), fmt.Sprintf("ranks: %s: %s", w.program.Name, what), mine)
}
