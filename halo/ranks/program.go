package ranks

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p/mpi"
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
	// What ranks log; nil: it is lost. Errors of the writer are not reported. One that blocks holds up the ranks that log, and Run.
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

// mostOnHosts is how many ranks all host devices of a world have at most: each has a goroutine, and up to 20 KB. The tree of maxLevels
// holds as many.
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
