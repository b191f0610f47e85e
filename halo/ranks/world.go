package ranks

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// World is the ranks of a program on some devices, ready to be run, any number of times, one after the other.
type World struct {
	program   Program
	options   Options
	compiler  *kernels.Compiler
	source    kernels.Source    // with what makes it one of ranks
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
	index   int // of the device in the world
	device  *streams.Device
	stream  *streams.Stream
	ended   *streams.Event
	kernel  *streams.Kernel
	control *streams.Memory   // pinned
	ender   *streams.Stream   // of copies of control.ended, see copyEnded
	lines   *streams.Memory   // pinned: of the log
	board   *streams.Memory   // of a GPU
	staging *streams.Memory   // pinned: what a board begins with, and the timings that it ends with
	zeros   *streams.Memory   // pinned: of what boxes, queues and rings begin with
	rings   []*streams.Memory // of a GPU: of channels
	ends    *streams.Memory   // of a GPU: of channels, or nil
	orders  *streams.Memory   // pinned: what the proxy is to do, or nil
	proxied *streams.Stream   // of the proxy
	joins   joiner            // of the proxy
	space   *streams.Memory   // of a GPU: all its addresses from spaceBegin on, for the proxy, or nil
	data    *streams.Memory   // of a GPU: the caller's
	copied  *streams.Memory   // pinned: the same
	took    []int64           // timings of the last run, ns
}

// spaceBegin is the first address that may be one of memory.
const spaceBegin = 16

func (w *World) board() board {
	return board{int64(w.ranks), int64(len(w.owners)), w.options.Queues, w.proxied()}
}

// controls returns what a GPU and the host tell each other.
func (m *member) controls() *control { return (*control)(unsafe.Pointer(&m.control.Bytes()[0])) }

// copyEnded queues a copy of control.ended to where the ranks of a GPU look for it: a stream of its own passes the kernel that runs.
func (m *member) copyEnded() error {
	return m.ender.Copy(m.board.Span(runEnded*lineBytes, 8), m.control.Span(0, 8))
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

// First returns the first rank of this process. Those of its device i are First + Ranks*i and the next ones in the world.
func (w *World) First() int { return w.ranks * w.before }

// Size returns how many ranks there are, of all processes.
func (w *World) Size() int { return w.ranks * len(w.owners) }

// Name names a rank by its device, or, if that is one of another process, by this; one that is not there by its number alone.
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

// Functions returns other kernels of the program's source on a device of the world, for launches of their own: they were
// compiled with that of the ranks, once. Device is an index of Devices. On a host device they are nil.
func (w *World) Functions(device int, names ...string) ([]streams.Function, error) {
	if device < 0 || device >= len(w.devices) {
		return nil, fmt.Errorf("ranks: %s: functions of device %d of %d", w.program.Name, device, len(w.devices))
	}
	return w.compiler.Functions(w.devices[device], w.source, names...)
}

// Close frees what it holds, once a run under way has ended, which it waits for: ranks may not call it. Closing twice is no error.
func (w *World) Close() error {
	w.closed.Store(true)
	w.use.Lock()
	defer w.use.Unlock()
	return w.resources.Close()
}
