package halo

import (
	"cmp"
	"context"
	"slices"

	"github.com/halox/halox/p2p/mpi"
)

// prove returns an error, on all processes, unless a network can be had and carries data right.
func (s networks) prove(ctx context.Context, n mpi.Network, insist bool) error {
	switch n {
	case mpi.Device:
		return s.TryDevice(ctx, s.devices[0], insist)
	case mpi.NCCL:
		return s.TryNCCL(ctx, s.devices[0])
	}
	return nil
}

// choose has messages take the network that is wanted, or the fastest that is known. It returns what is known. All processes
// call it.
func (s networks) choose(ctx context.Context, want mpi.Network) (trials []NetworkTrial, err error) {
	want = cmp.Or(want, mpi.Auto)
	if trials, err = s.recall(ctx); err != nil {
		return nil, err
	}
	if want == mpi.Auto {
		return trials, s.take(ctx, fastest(trials))
	}
	known := slices.ContainsFunc(trials, func(t NetworkTrial) bool { return t.Network == want && t.Why == "" })
	if !known || want != mpi.Device { // which another process tries for long
		if err := s.prove(ctx, want, true); err != nil {
			return nil, optionError("Devices.Network", "%s: %w", want, err)
		}
	}
	return trials, s.Use(want, want)
}

// take has messages take networks that were right before. Where NCCL is among them and does not start, none of its messages do.
func (s networks) take(ctx context.Context, n usedNetworks) error {
	for _, one := range []*mpi.Network{&n.within, &n.across} {
		if *one != mpi.NCCL {
			continue
		}
		if err := s.TryNCCL(ctx, s.devices[0]); err != nil {
			if s.Err() != nil {
				return err
			}
			*one = mpi.Pieces
		}
	}
	return s.Use(n.within, n.across)
}

// follow has messages take the networks of other processes, of which these are some.
func (s networks) follow(ctx context.Context, others *mpi.Processes) error {
	within, across := others.Used()
	return s.take(ctx, usedNetworks{within, across})
}
