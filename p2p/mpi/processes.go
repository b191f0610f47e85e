package mpi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/halox/halox/internal/host"
	binding "github.com/halox/halox/internal/mpi"
)

// Options configures how processes wait for each other and exchange messages. The zero value is usual. It must be
// the same on all processes.
type Options struct {
	Limit time.Duration // longest wait for another process; default: one minute
	Piece int64         // largest piece of a message in bytes, of which up to three are in flight; default: 8 MiB

	// Probe is a program and its arguments. It calls TakeProbe and ends with its exit code, such as "halox
	// probe-mpi". It is started to detect whether MPI supports device memory, which may crash. Default: none, and
	// network Device cannot be used.
	Probe []string
}

const (
	usualLimit = time.Minute
	usualPiece = 8 << 20
)

// Processes is a group of processes that run one program together, as seen by one of them. Methods may be called
// from several goroutines, except Gather, Broadcast, Agree and Close, which all processes must call in the same
// order.
type Processes struct {
	Rank    int      // of this process
	Hosts   []string // name of the host, by rank
	Nodes   []int    // number of the host, by rank, from 0 in the order of their first ranks
	Locals  []int    // index among the processes of the host, by rank, from 0
	Library string   // version string of the MPI library

	options Options
	library *binding.Library
	lent    bool
	control *binding.Comm // for collective calls
	data    *binding.Comm // for messages
	watch   *watch
	failure *failure
	whole   *Processes  // group that this one was taken from; nil if it is all processes
	unhook  func() bool // stops forwarding failures of that group; nil for a duplicate, which has the same failure

	sameHost, interHost Network // for messages to processes of this host, and of others
	pairs               *pairs  // nil before TryNCCL has opened NCCL

	lock    sync.Mutex
	host    []hostGroup // not freed yet
	nextTag int
	lastTag int
	closed  bool
	gone    bool // the communicators are freed
	ended   bool // Close has finalized MPI
}

// hostGroup is HostMessages: Close ends their use by this process, and free frees them once all have.
type hostGroup interface {
	Close() error
	unused() bool
	free() error
}

// Alone returns the group of only this process. It does not open MPI, its collective calls return at once, and a
// failure is returned but not kept.
func Alone() *Processes { return alone() }

var alone = sync.OnceValue(func() *Processes {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return &Processes{
		Hosts: []string{host}, Nodes: []int{0}, Locals: []int{0},
		options: Options{}.filled(), failure: newFailure(), sameHost: Pieces, interHost: Pieces,
	}
})

// IsAlone reports whether this process is the only one. It is true for nil, so that the zero value of options with
// a group means no other processes.
func (p *Processes) IsAlone() bool { return p == nil || len(p.Hosts) == 1 }

// OrAlone returns the group, or that of only this process if p is nil.
func (p *Processes) OrAlone() *Processes {
	if p == nil {
		return Alone()
	}
	return p
}

// Launched returns the rank of this process given by a launcher, before Join. ok is false without a launcher.
func Launched() (rank int, ok bool) {
	launcher, ok, _ := binding.FindLauncher(os.LookupEnv) // Join returns the error
	return launcher.Rank, ok && launcher.Size != 1
}

// Join returns the processes that a launcher has started with this one. Without a launcher, or with only one
// process, it returns Alone and does not open MPI. Otherwise it opens the library in HALOX_MPI, or that of the
// launcher, and initializes it. It returns an error if launcher and library do not match. Close ends MPI.
func Join(ctx context.Context, o Options) (*Processes, error) {
	launcher, launched, err := binding.FindLauncher(os.LookupEnv)
	if err != nil {
		return nil, fmt.Errorf("mpi: %w", err)
	}
	if !launched || launcher.Size == 1 {
		return Alone(), nil
	}
	library, err := binding.Open(os.Getenv(binding.Variable), launcher)
	if err != nil {
		return nil, fmt.Errorf("mpi: %s started this process%s: %w", launcher.Name, placeOf(launcher), err)
	}
	if err := launcher.Suits(library); err != nil {
		return nil, fmt.Errorf("mpi: %w", err)
	}
	o = o.filled()
	world, err := library.Init(ctx, o.Limit)
	if err != nil {
		err = fmt.Errorf("mpi: %s started this process%s; start %s: %w", launcher.Name, placeOf(launcher), library, err)
		if _, late := errors.AsType[*binding.LateError](err); late {
			err = fmt.Errorf("%w; it cannot be detected which process has ended or never started: "+
				"see what they printed", err)
		}
		return nil, err
	}
	if err := launcher.Check(world.Size(), library.String()); err != nil {
		return nil, errors.Join(fmt.Errorf("mpi: %w", err), world.Free(), library.Finalize(ctx, o.Limit))
	}
	return meet(ctx, world, o, false)
}

// placeOf returns the rank, size and host given by a launcher, as far as known: ", rank 1 of 4 on host node7".
func placeOf(l binding.Launcher) string {
	place := fmt.Sprintf(", rank %d", l.Rank)
	if l.Size > 0 {
		place += fmt.Sprintf(" of %d", l.Size)
	}
	if host, err := os.Hostname(); err == nil {
		place += " on host " + host
	}
	return place
}

// Lend returns the processes of a communicator of a program that has initialized MPI itself, with
// MPI_THREAD_MULTIPLE. The handle is that of the C interface of the library: an int in MPICH, a pointer in others.
// halox duplicates it, and neither initializes nor finalizes MPI. All processes of the communicator must call it;
// there may be only one.
func Lend(ctx context.Context, communicator uintptr, o Options) (*Processes, error) {
	library, err := binding.Open(os.Getenv(binding.Variable), binding.Launcher{})
	if err != nil {
		return nil, fmt.Errorf("mpi: %w", err)
	}
	o = o.filled()
	world, err := library.Lend(ctx, o.Limit, binding.Handle(communicator))
	if err != nil {
		return nil, err
	}
	return meet(ctx, world, o, true)
}

func (o Options) filled() Options {
	if o.Limit <= 0 {
		o.Limit = usualLimit
	}
	if o.Piece <= 0 {
		o.Piece = usualPiece
	}
	return o
}

// meet exchanges information between the processes of a communicator.
func meet(ctx context.Context, world *binding.Comm, o Options, lent bool) (*Processes, error) {
	p := &Processes{
		Rank: world.Rank(), Library: world.Library().Version,
		options: o, library: world.Library(), lent: lent, control: world, failure: newFailure(),
		sameHost: Pieces, interHost: Pieces,
	}
	all, err := p.introduce(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.compare(all); err != nil { // on all processes, which can end MPI together
		err = errors.Join(err, world.Free())
		if !lent {
			err = errors.Join(err, p.library.Finalize(ctx, o.Limit))
		}
		return nil, err
	}
	p.library.Spin(p.spinners())
	if p.lastTag, err = world.LargestTag(); err != nil {
		return nil, err
	}
	if p.data, err = world.Dup(ctx, o.Limit); err != nil {
		return nil, err
	}
	p.watch, err = newWatch(ctx, world, p.Hosts, o.Limit, p.failure)
	return p, err
}

// introduction is the information that each process sends to the others. Limit and Piece must be the same on all.
type introduction struct {
	Host  string
	Limit time.Duration
	Piece int64
}

// introduce exchanges introductions, counts hosts, and returns the introductions of all processes.
func (p *Processes) introduce(ctx context.Context) ([]introduction, error) {
	host, err := p.library.HostName()
	if err != nil {
		return nil, err
	}
	mine, err := encode(introduction{host, p.options.Limit, p.options.Piece})
	if err != nil {
		return nil, err
	}
	texts, err := p.control.Allgather(ctx, p.options.Limit, mine)
	if err != nil {
		return nil, fmt.Errorf("mpi: exchange host names: %w", err)
	}
	all := make([]introduction, len(texts))
	for rank, text := range texts {
		if err := decode(text, &all[rank]); err != nil {
			return nil, fmt.Errorf("mpi: rank %d has another version of halox: %w", rank, err)
		}
		p.Hosts = append(p.Hosts, all[rank].Host)
	}
	p.Nodes, p.Locals = number(p.Hosts)
	return all, nil
}

func encode[T any](v T) ([]byte, error) {
	if b, ok := any(v).([]byte); ok {
		return b, nil
	}
	return json.Marshal(v)
}

func decode[T any](text []byte, v *T) error {
	if b, ok := any(v).(*[]byte); ok {
		*b = text
		return nil
	}
	return json.Unmarshal(text, v)
}

// compare returns an error unless all processes have the same options.
func (p *Processes) compare(all []introduction) error {
	mine := all[p.Rank]
	for rank, other := range all {
		if other.Limit != mine.Limit || other.Piece != mine.Piece {
			return fmt.Errorf(
				"mpi: %s has a limit of %v and pieces of %d bytes, and %s a limit of %v and pieces of %d bytes: "+
					"all processes must give the same",
				p.Name(rank), other.Limit, other.Piece, p.Name(p.Rank), mine.Limit, mine.Piece)
		}
	}
	return nil
}

// spinners returns how many waits of this process may poll without sleeping: a few if it has its own cores, none
// if processes share them.
func (p *Processes) spinners() int {
	const most, coresEach = 4, 4
	_, processes := p.Local()
	cores := host.Threads() // those that a launcher has bound it to, or all
	if all, ok := host.Cores(); ok {
		cores = min(cores, all/processes)
	} else {
		cores /= processes
	}
	return min(most, cores/coresEach)
}

// number numbers the hosts, and the processes of each. Hosts with the same name are one host.
func number(hosts []string) (nodes, locals []int) {
	known, on := map[string]int{}, map[string]int{}
	for _, host := range hosts {
		if on[host] == 0 {
			known[host] = len(known)
		}
		nodes, locals = append(nodes, known[host]), append(locals, on[host])
		on[host]++
	}
	return nodes, locals
}

// Size returns the number of processes.
func (p *Processes) Size() int { return len(p.Hosts) }

// Counted returns the number of processes and hosts: "4 processes on 2 hosts".
func (p *Processes) Counted() string {
	if hosts := 1 + slices.Max(p.Nodes); hosts > 1 {
		return fmt.Sprintf("%d processes on %d hosts", p.Size(), hosts)
	}
	return fmt.Sprintf("%d processes on one host", p.Size())
}

// Local returns the index of this process on its host, and the number of processes there.
func (p *Processes) Local() (index, count int) {
	for _, node := range p.Nodes {
		if node == p.Nodes[p.Rank] {
			count++
		}
	}
	return p.Locals[p.Rank], count
}

// Name returns the name of a process in errors.
func (p *Processes) Name(rank int) string { return nameOf(rank, p.Hosts) }

// LibraryFile returns the path of the MPI library, or "" if it is linked into the program.
func (p *Processes) LibraryFile() string {
	if p.library == nil {
		return ""
	}
	return p.library.File()
}

// Limit returns the longest wait for another process.
func (p *Processes) Limit() time.Duration { return p.options.Limit }

// Tags reserves n tags for messages, and returns the first of them. All processes must call it in the same order,
// with the same n.
func (p *Processes) Tags(n int) (first int, err error) {
	if p.control == nil { // no messages
		return 0, nil
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	if n < 0 || n > p.lastTag-p.nextTag {
		return 0, fmt.Errorf("mpi: tags: must be at most %d more, got %d", p.lastTag-p.nextTag, n)
	}
	first = p.nextTag
	p.nextTag += n
	return first, nil
}

// Err returns the first known failure of any process, or nil.
func (p *Processes) Err() error { return p.failure.err() }

// Context returns a context that ends with the first failure, which is its cause.
func (p *Processes) Context() context.Context { return p.failure.ctx }

// Fail reports a failure of this process to all processes. Their waits for others end with a *RemoteError. Only
// the first failure counts. Fail returns the error.
func (p *Processes) Fail(err error) error {
	if p.watch == nil { // the only process
		return err
	}
	p.watch.fail(err)
	return err
}

// Network is a transport for messages between devices of different processes.
type Network string

// The networks. Auto selects the fastest one that works, see halo.Session.TryNetworks.
const (
	Auto   Network = "auto"
	Pieces Network = "mpi"        // in pieces through pinned memory, by MPI
	Device Network = "mpi-device" // by MPI with device memory
	NCCL   Network = "nccl"       // by NCCL, with the order of messages agreed by MPI

	// IPC is the network between processes of one host that map memory of each other's devices: the sender's kernels
	// store into memory of the receiver. No message passes through MPI, which only passes handles beforehand.
	IPC Network = "ipc"
)

// Networks returns all networks except Auto, in display order. If several are equally fast, the first is used.
func Networks() []Network { return slices.Clone(networks) }

// networks are all except Auto. A new network has one entry here, and its carriers in a separate file, see
// newCarrier.
var networks = []Network{Pieces, Device, NCCL, IPC}
