package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// openBench opens the devices that a bench measures, of this process where several measure together.
type openBench func(ctx context.Context, processes *mpi.Processes, notes io.Writer) (*halo.Session, error)

// check refuses a backend and a network that there are not.
func (b *benchFlags) check() error {
	if err := option.OneOf("backend", b.backend, configs.Auto, string(streams.CUDA), string(streams.Host)); err != nil {
		return err
	}
	return option.OneOf("exchange-network", b.network, append([]string{configs.Auto}, texts(mpi.Networks())...)...)
}

// count opens the first n devices, of each process, all where n is 0.
func (b *benchFlags) count(n int) openBench {
	return func(ctx context.Context, processes *mpi.Processes, notes io.Writer) (*halo.Session, error) {
		return openShared(ctx, configs.Devices{Backend: b.backend, Count: configs.Count(n)}, shared{processes, mpi.Network(b.network)}, notes)
	}
}

// most opens n devices together, all where n is 0: so that of several processes each has as many as the others, or one less.
func (b *benchFlags) most(n int) openBench {
	return func(ctx context.Context, processes *mpi.Processes, notes io.Writer) (*halo.Session, error) {
		each := n
		if !processes.IsAlone() {
			each = n / processes.Size()
			if processes.Rank < n%processes.Size() {
				each++
			}
		}
		if n > 0 && each == 0 {
			each = 1
		}
		return b.count(each)(ctx, processes, notes)
	}
}

// named opens the devices that a flag names.
func (b *benchFlags) named(flag string, ids []int) openBench {
	return func(ctx context.Context, _ *mpi.Processes, notes io.Writer) (*halo.Session, error) {
		s, err := openSession(ctx, configs.Devices{Backend: b.backend, IDs: slices.Compact(slices.Clone(ids))}, notes)
		if err != nil {
			return nil, fmt.Errorf("--backend %s --%s %s: %w", b.backend, flag, option.List(ids), err)
		}
		return s, nil
	}
}

// fewHostDevices is how many host devices are measured where nobody says which: they are all alike.
const fewHostDevices = 4

// some opens the devices that are named, or all GPUs, or a few host devices.
func (b *benchFlags) some(ids []int) openBench {
	return func(ctx context.Context, processes *mpi.Processes, notes io.Writer) (*halo.Session, error) {
		if !processes.IsAlone() && len(ids) > 0 {
			return nil, errors.New("--devices: of several processes each takes its first device: leave it out")
		}
		if !processes.IsAlone() {
			return b.tried(ctx, processes, notes)
		}
		s, err := openSession(ctx, configs.Devices{Backend: b.backend, IDs: ids}, notes)
		if err != nil || !s.Devices[0].HostMemory || len(ids) > 0 {
			return s, err
		}
		if err := s.Close(); err != nil {
			return nil, err
		}
		return openSession(ctx, configs.Devices{Backend: string(s.Backend), Count: fewHostDevices}, notes)
	}
}

// tried opens the first device of each process, and tries the networks between them.
func (b *benchFlags) tried(ctx context.Context, processes *mpi.Processes, notes io.Writer) (*halo.Session, error) {
	s, err := b.count(1)(ctx, processes, notes)
	if err != nil {
		return nil, err
	}
	if _, err := s.TryNetworks(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// checkDevice refuses a number of a device below 0.
func checkDevice(id int) error {
	if id < 0 {
		return fmt.Errorf("--device %d: devices are counted from 0", id)
	}
	return nil
}

// checkDevices refuses a list of devices that has one below 0, or twice.
func checkDevices(ids []int) error {
	for i, id := range ids {
		if id < 0 || slices.Contains(ids[:i], id) {
			return fmt.Errorf("--devices %s: name each device once, counted from 0", option.List(ids))
		}
	}
	return nil
}
