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

// Options say how processes wait for each other and exchange messages. The zero value is usual.
// All processes must give the same.
type Options struct {
	Limit time.Duration // how long one waits for another at most; 0: a minute
	Piece int64         // largest piece of a message; up to three are under way; 0: 8 MiB

	// Probe is a program with arguments that calls TakeProbe and ends with its exit code, such as "halox probe-mpi". It
	// is started to find out whether MPI takes device memory, which may crash. Without it network Device cannot be
	// used.
	Probe []string
}

const (
	usualLimit = time.Minute
	usualPiece = 8 << 20
)

// Processes are those that run one program together, as one of them sees it. Methods may be
// called from several goroutines, except Gather, Broadcast, Agree and Close, which all processes
// call in the same order.
type Processes struct {
	Rank    int      // of this process
	Hosts   []string // by rank: the name of its host
	Nodes   []int    // by rank: the number of its host, from 0 in the order of their first ranks
	Locals  []int    // by rank: which it is of the processes of its host, from 0
	Library string   // MPI's own words about itself

	options Options
	library *binding.Library
	lent    bool
	control *binding.Comm // of collective calls
	data    *binding.Comm // of messages
	watch   *watch
	failure *failure
	whole   *Processes  // the processes that these were taken from; nil where they are all
	unhook  func() bool // has a failure of those no longer be one of these

	sameHost, interHost Network // of messages to processes of this host, and of others
	pairs               *pairs  // nil before TryNCCL has opened NCCL

	lock    sync.Mutex
	nextTag int
	lastTag int
	closed  bool
	gone    bool // the communicators are freed
	ended   bool // MPI is, by Close
}

// Alone returns the group of this process alone. No MPI is opened, collective calls return at once, and a failure is
// only returned, not kept: the next call starts afresh.
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

// IsAlone reports whether this process is the only one. It is true for nil, so that the zero value of options that have
// a group means no other processes.
func (p *Processes) IsAlone() bool { return p == nil || len(p.Hosts) == 1 }

// OrAlone returns the group, or that of this process alone for nil.
func (p *Processes) OrAlone() *Processes {
	if p == nil {
		return Alone()
	}
	return p
}

// Launched returns which of the processes of a launcher this one is, before Join. ok is false without a launcher.
func Launched() (rank int, ok bool) {
	launcher, ok, _ := binding.FindLauncher(os.LookupEnv) // whose error Join returns
	return launcher.Rank, ok && launcher.Size != 1
}

// Join returns the processes that a launcher has started with this one. If no launcher did, or it started one process,
// that is Alone, and no MPI is opened. Otherwise it opens the library that HALOX_MPI names, or the launcher's,
// starts it, and rejects it where launcher and library do not know each other. Close ends it.
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
			err = fmt.Errorf("%w; which of them has ended, or never began, cannot be told before all have met: "+
				"see what they printed", err)
		}
		return nil, err
	}
	if err := launcher.Check(world.Size(), library.String()); err != nil {
		return nil, errors.Join(fmt.Errorf("mpi: %w", err), world.Free(), library.Finalize(ctx, o.Limit))
	}
	return meet(ctx, world, o, false)
}

// placeOf says which of the processes of a launcher this one is, as far as it says so: ", rank 1 of 4 on host node7".
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

// Lend returns the processes of a communicator of a program that has started MPI itself, with
// MPI_THREAD_MULTIPLE. The handle is that of the library's own interface: an int in MPICH, a
// pointer elsewhere. halox copies it, and neither starts nor ends MPI. All processes of the
// communicator call it; it may be of one process.
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

// meet has the processes of a communicator find out about each other.
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
	if err := p.compare(all); err != nil { // at all processes, which can end MPI together
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

// introduction is what each process tells the others when they meet. Limit and Piece must be the same on all.
type introduction struct {
	Host  string
	Limit time.Duration
	Piece int64
}

// introduce tells the others the name of this host, counts hosts, and returns what all processes say.
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
		return nil, fmt.Errorf("mpi: ask the other processes for their hosts: %w", err)
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

// compare returns an error unless all processes give the same options.
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

// spinners returns how many waits of this process may poll without sleeping: a few where it has cores to itself, none
// where processes share them.
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

// number counts hosts, and the processes of each. Hosts of one name are one.
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

// Size returns how many processes there are.
func (p *Processes) Size() int { return len(p.Hosts) }

// Counted says how many processes there are: "4 processes on 2 hosts".
func (p *Processes) Counted() string {
	if hosts := 1 + slices.Max(p.Nodes); hosts > 1 {
		return fmt.Sprintf("%d processes on %d hosts", p.Size(), hosts)
	}
	return fmt.Sprintf("%d processes on one host", p.Size())
}

// Local returns which of the processes of its host this one is, and how many these are.
func (p *Processes) Local() (index, count int) {
	for _, node := range p.Nodes {
		if node == p.Nodes[p.Rank] {
			count++
		}
	}
	return p.Locals[p.Rank], count
}

// Name names a process as errors do.
func (p *Processes) Name(rank int) string { return nameOf(rank, p.Hosts) }

// LibraryFile returns where the MPI library lies, "" where it is part of the program.
func (p *Processes) LibraryFile() string {
	if p.library == nil {
		return ""
	}
	return p.library.File()
}

// Limit returns how long one process waits for another at most.
func (p *Processes) Limit() time.Duration { return p.options.Limit }

// Tags reserves n tags for messages, and returns the first of them. All processes must call it
// in the same order, with the same n.
func (p *Processes) Tags(n int) (first int, err error) {
	if p.control == nil { // nothing is sent
		return 0, nil
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	if n < 0 || n > p.lastTag-p.nextTag {
		return 0, fmt.Errorf("mpi: %d more tags; %d of %d are taken", n, p.nextTag, p.lastTag)
	}
	first = p.nextTag
	p.nextTag += n
	return first, nil
}

// Err returns the first failure of any process that this one has learnt of, nil as long as all
// goes well.
func (p *Processes) Err() error { return p.failure.err() }

// Context returns a context that ends with the first failure, which is its cause.
func (p *Processes) Context() context.Context { return p.failure.ctx }

// Fail tells all processes that this one has failed, and why. What they wait for with others
// ends with a *RemoteError. Only the first failure counts. It returns the error.
func (p *Processes) Fail(err error) error {
	if p.watch == nil { // this process is alone
		return err
	}
	p.watch.fail(err)
	return err
}

// Network is an engine that carries messages between devices of different processes.
type Network string

// The networks. Auto stands for the fastest that was found right, see halo.Session.TryNetworks.
const (
	Auto   Network = "auto"
	Pieces Network = "mpi"        // through pinned memory, in pieces, by MPI
	Device Network = "mpi-device" // by MPI, which is given device memory
	NCCL   Network = "nccl"       // by NCCL, which MPI tells the order of messages
)

// Networks returns all networks but Auto, in the order in which they are shown. Of networks that take equally long the
// first is taken.
func Networks() []Network { return slices.Clone(networks) }

// networks are those but Auto. A new one has its line here, and its carriers in a file of its own, see newCarrier.
var networks = []Network{Pieces, Device, NCCL}
