//go:build linux

package halo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p/mpi"
)

// triesNetworks has sessions try all networks, name one, and recall what was found.
func triesNetworks(p processes) error {
	ctx := context.Background()
	done(here, nil, errors.Join(p.devices[0].Close(), p.devices[1].Close()))
	open := func(n mpi.Network) (*halo.Session, error) {
		return halo.Open(ctx, halo.Devices{Backend: "cuda", Count: 1, Processes: p.Processes, Network: n})
	}
	s := must(open(mpi.Auto))(here)
	if within, across := p.Used(); within != mpi.Pieces || across != mpi.Pieces {
		return fmt.Errorf("before a trial messages take %s and %s", within, across)
	}
	trials := must(s.TryNetworks(ctx))(here)
	for _, t := range trials {
		fmt.Printf("rank %d: network %s of %q: %s, measured %t\n", p.Rank, t.Network, t.Library, t.Why, t.Within != nil)
	}
	best, _ := p.Used()
	done(here, nil, s.Close())
	s = must(open(""))(here) // which recalls it
	if within, _ := p.Used(); within != best {
		return fmt.Errorf("the fastest was %s, and %s is taken later", best, within)
	}
	done(here, nil, s.Close())
	at := slices.IndexFunc(trials, func(t halo.NetworkTrial) bool { return t.Why != "" && t.Network != mpi.Device })
	if at < 0 {
		return named(p, open, mpi.Device)
	}
	if s, err := open(trials[at].Network); s != nil && err == nil {
		return fmt.Errorf("network %s is taken, which is not to be had: %s", trials[at].Network, trials[at].Why)
	}
	return named(p, open, mpi.Device)
}

// named has messages take the network that a session names, whatever MPI says of itself.
func named(p processes, open func(mpi.Network) (*halo.Session, error), n mpi.Network) error {
	s := must(open(n))(here)
	if within, across := p.Used(); within != n || across != n {
		return fmt.Errorf("messages take %s and %s, and %s was named", within, across, n)
	}
	fmt.Fprintf(os.Stdout, "rank %d takes %s\n", p.Rank, n)
	return s.Close()
}
