package ranks

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/halox/halox/kernels"
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
}

// check returns an error unless the program can be run.
func (p Program) check() error {
	switch {
	case p.Name == "":
		return errors.New("ranks: the program has no name")
	case p.Threads < 32 || p.Threads > 1024 || p.Threads%32 != 0:
		return fmt.Errorf("ranks: %s: %d threads a rank; a multiple of 32 up to 1024 is possible", p.Name, p.Threads)
	case p.Shared < 0:
		return fmt.Errorf("ranks: %s: %d bytes of shared memory", p.Name, p.Shared)
	}
	return nil
}

// Options say how a program is run. The zero value is that of most programs.
type Options struct {
	// How many ranks each device has: Ranks, or, if that is 0, PerMultiprocessor on each multiprocessor of a GPU,
	// or as many as fit there together. All devices have as many. A core of a host device counts as a multiprocessor,
	// and has one if nothing is said.
	Ranks, PerMultiprocessor int

	Limit time.Duration // of every wait of a rank; 0 is 20 seconds
	// Notifications keep their window and their source, and a rank can wait for those of one: as in Gysi, Bär and Hoefler
	// 2016, and slower than counts by tag.
	Queues bool

	// GPUs reach each other through the host, also those that could reach each other directly: by a proxy, a thread of
	// the host that copies for their ranks. It serves GPUs that cannot in any case. Host devices have no need of it.
	Proxy bool

	Checks bool      // the arguments of every call are checked, which costs some
	Log    io.Writer // what ranks log; nil: it is lost
}

// limit of a wait where the caller has none.
const limit = 20 * time.Second

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
