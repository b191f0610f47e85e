// Package litmus has litmus tests of ranks: short programs with random data and poisoned memory that check
// the contracts of puts, notifications and barriers on the available devices.
package litmus

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

//go:embed litmus.cu
var source string

// Tests are the litmus tests of some devices of one backend.
type Tests struct {
	Compiler *kernels.Compiler // required: compiler of the kernels
	Links    *p2p.Links        // links between the devices
	// The processes whose devices are tested together, each with its own; nil for a single process. All run
	// the same tests.
	Processes *mpi.Processes
	Ranks     int           // ranks per device; 0: one per multiprocessor, three on a CPU device
	Rounds    int64         // rounds per test; 0: the number of alignments of Puts
	Limit     time.Duration // limit of each wait; 0: as in ranks.Options
	Seed      uint32        // seed of the data and of Soak; 0: random

	each         int   // ranks per multiprocessor; 0: one
	fault, where int64 // fault to inject, and in which round; for tests of this package
}

const (
	allRounds = alignments * alignments
	hostRanks = 3
	threads   = 64
)

// test is a kernel and its Go counterpart, which gets the memory of a rank's slots.
type test struct {
	kernel string
	host   func(c *call)
}

// Puts checks puts between ranks: within a device, if there is one, otherwise from each device to the next
// one, over all processes. Sizes are random, at all distances of target and source from a multiple of 16, in
// pieces of which the last notifies. A notified rank checks all data that it has, and the bytes around it.
func (t Tests) Puts(ctx context.Context, devices ...*streams.Device) error {
	return t.run(ctx, test{"pieces", (*call).pieces}, devices)
}

// Counts checks, between the same ranks, that notifications are counted per tag: all that were sent can be
// taken, in any order of tags, and no more.
func (t Tests) Counts(ctx context.Context, devices ...*streams.Device) error {
	return t.run(ctx, test{"counts", (*call).counts}, devices)
}

// Barriers checks that no rank leaves a barrier, of all ranks or of a device, before all have entered, and
// that earlier stores are visible afterwards.
func (t Tests) Barriers(ctx context.Context, devices ...*streams.Device) error {
	return t.run(ctx, test{"barriers", (*call).barriers}, devices)
}

// AllToOne checks that one rank, each in turn, gets what all put to it at the same time, with one tag.
func (t Tests) AllToOne(ctx context.Context, devices ...*streams.Device) error {
	return t.run(ctx, test{"all_to_one", (*call).allToOne}, devices)
}

// rounds is the number of rounds of each test.
func (t Tests) rounds() int64 { return cmp.Or(t.Rounds, allRounds) }

// run runs one test on the devices. Its error has the seed of the data.
func (t Tests) run(ctx context.Context, one test, devices []*streams.Device) error {
	if t.Seed == 0 {
		t.Seed = rand.Uint32()
	}
	seed, err := mpi.Broadcast(ctx, t.Processes, "the seed of litmus tests", t.Seed, 0)
	if err != nil {
		return err
	}
	t.Seed = seed
	if err := t.seeded(ctx, one, devices); err != nil {
		return fmt.Errorf("seed %d: %w", t.Seed, err)
	}
	return nil
}

// agree makes all processes fail if one does.
func (t Tests) agree(ctx context.Context, what string, err error) error {
	return t.Processes.Agree(ctx, "litmus tests: "+what, err)
}

func (t Tests) seeded(ctx context.Context, one test, devices []*streams.Device) (err error) {
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	var memory slots
	program := ranks.Program{
		Name: "litmus " + one.kernel, Kernel: one.kernel, Threads: threads,
		Source: kernels.Source{
			Name: "litmus.cu", Text: source, Mirrors: []kernels.Mirror{{Name: "Litmus", Value: litmus{}}},
		},
		Host: func(r *ranks.Rank) {
			one.host(&call{r, ranks.Data[litmus](r), memory.of(r, memory.windows), memory.of(r, memory.sources)})
		},
	}
	options := ranks.Options{
		Ranks: t.Ranks, PerMultiprocessor: max(1, t.each), Processes: t.Processes, Limit: t.Limit, Checks: true,
	}
	if options.Ranks == 0 && devices[0].GoKernels {
		options.Ranks = hostRanks
	}
	world, err := ranks.New(t.Compiler, devices, t.Links, program, options)
	if err != nil {
		return err
	}
	open.Add(world)
	memory.slot = max(4096, int64(word*world.Size()))
	data, err := t.data(world, &memory, &open)
	if err := t.agree(ctx, "allocate memory", err); err != nil {
		return err
	}
	if err := ranks.Run(ctx, world, data); err != nil {
		return err
	}
	for _, l := range data {
		if l.Wrong != 0 && err == nil {
			err = l.describe(world)
		}
	}
	return t.agree(ctx, "compare", err)
}

// slots are the memory of the ranks of each device.
type slots struct {
	windows, sources []*streams.Memory
	slot             int64
}

// of returns the slot of a rank.
func (s *slots) of(r *ranks.Rank, all []*streams.Memory) []byte {
	return all[r.Device()].Bytes()[s.slot*int64(r.Index(ranks.Device)):][:s.slot]
}

// data allocates the slots, and returns the data of the devices.
func (t Tests) data(world *ranks.World, memory *slots, open *streams.Resources) (data []litmus, err error) {
	shared := litmus{Slot: memory.slot, Rounds: t.rounds(), Seed: int64(t.Seed), Fault: t.fault, Where: t.where}
	if world.Size() == world.Ranks() {
		shared.Near = 1
	}
	for _, d := range world.Devices() {
		for _, all := range []*[]*streams.Memory{&memory.windows, &memory.sources} {
			m, err := d.Alloc(memory.slot * int64(world.Ranks()))
			if err != nil {
				return nil, err
			}
			open.Add(m)
			*all = append(*all, m)
		}
		last := len(memory.windows) - 1
		shared.Windows, shared.Sources = memory.windows[last].Address(), memory.sources[last].Address()
		data = append(data, shared)
	}
	return data, nil
}
