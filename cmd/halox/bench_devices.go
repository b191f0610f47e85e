package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// openBench opens the devices that a bench measures.
type openBench func(ctx context.Context, notes io.Writer) (*opened, error)

// opened is a machine with those of its devices open that are measured.
type opened struct {
	*machine
	devices []*streams.Device
}

// openDevices opens the devices that are wanted.
func openDevices(ctx context.Context, want configs.Devices, notes io.Writer) (o *opened, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m, err := openMachine(want, notes)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	ids, err := m.ids(want)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	devices, err := m.platform.Open(ids...)
	if err != nil {
		return nil, err
	}
	return &opened{m, devices}, nil
}

// benched returns the devices as benchmarks take them.
func (o *opened) benched() *bench.Machine {
	return &bench.Machine{
		Devices: o.devices, Topology: o.topology(), Driver: o.driver(), Program: version + builtFrom(), Compiler: kernels.CompilerFromEnv(),
	}
}

func (o *opened) close() error {
	return errors.Join(streams.CloseAll(o.devices), o.machine.close())
}

// check refuses a backend that there is not.
func (b *benchFlags) check() error {
	return option.OneOf("backend", b.backend, configs.Auto, string(streams.CUDA), string(streams.Host))
}

// count opens the first n devices, all where n is 0.
func (b *benchFlags) count(n int) openBench {
	return func(ctx context.Context, notes io.Writer) (*opened, error) {
		return openDevices(ctx, configs.Devices{Backend: b.backend, Count: configs.Count(n)}, notes)
	}
}

// named opens the devices that a flag names.
func (b *benchFlags) named(flag string, ids []int) openBench {
	return func(ctx context.Context, notes io.Writer) (*opened, error) {
		o, err := openDevices(ctx, configs.Devices{Backend: b.backend, IDs: slices.Compact(slices.Clone(ids))}, notes)
		if err != nil {
			return nil, fmt.Errorf("--backend %s --%s %s: %w", b.backend, flag, option.List(ids), err)
		}
		return o, nil
	}
}

// fewHostDevices is how many host devices are measured where nobody says which: they are all alike.
const fewHostDevices = 4

// some opens the devices that are named, or all GPUs, or a few host devices.
func (b *benchFlags) some(ids []int) openBench {
	return func(ctx context.Context, notes io.Writer) (*opened, error) {
		o, err := openDevices(ctx, configs.Devices{Backend: b.backend, IDs: ids}, notes)
		if err != nil || o.backend != streams.Host || len(ids) > 0 {
			return o, err
		}
		if err := o.close(); err != nil {
			return nil, err
		}
		return openDevices(ctx, configs.Devices{Backend: string(streams.Host), Count: fewHostDevices}, notes)
	}
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
