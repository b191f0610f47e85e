package halo

import (
	"cmp"
	"context"
	"slices"

	"github.com/halox/halox/p2p/mpi"
)

// prove returns an error, on all processes, unless a network can be had and carries data right.
func (s networks) prove(ctx context.Context, n mpi.Network, insist bool) error {
	if n == mpi.Device {
		return s.TryDevice(ctx, s.devices[0], insist)
	}
	return nil
}

// choose has messages take the network that is wanted, or the fastest that is known. All processes call it.
func (s networks) choose(ctx context.Context, want mpi.Network) error {
	want = cmp.Or(want, mpi.Auto)
	trials, err := s.recall(ctx)
	if err != nil {
		return err
	}
	if want == mpi.Auto {
		best := fastest(trials)
		return s.Use(best.within, best.across)
	}
	known := slices.ContainsFunc(trials, func(t NetworkTrial) bool { return t.Network == want && t.Why == "" })
	if !known || want != mpi.Device { // which another process tries for long
		if err := s.prove(ctx, want, true); err != nil {
			return optionError("Devices.Network", "%s: %w", want, err)
		}
	}
	return s.Use(want, want)
}
