package datatypes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// busy keeps a fraction of some devices busy while messages are timed, as in section
// 5.4 of Wu et al. and 4.4 of Jenkins et al.
type busy struct {
	resources streams.Resources
	fraction  float64
	occupants []*occupant // one per device
}

// occupant keeps one device busy: it launches one kernel over and over, on a separate stream. Each launch does the same
// work, so that the rate of launches tells how much of the device it gets.
type occupant struct {
	stream   *streams.Stream
	kernel   *streams.Kernel
	done     [4]*streams.Event // of queued launches
	finished streams.Counter   // launches
	blocks   int
	took     time.Duration // of a launch
	alone    float64       // launches per second when nothing else runs
}

// stint is about how long a launch takes alone: short enough for other kernels to get
// in between, long enough to be queued in time.
const stint = 250 * time.Microsecond

// busyValues is how many float64 it works on: more than a GPU's caches hold.
const busyValues = 8 << 20

// busyBlock is the number of threads of a block, and of values per round of a CPU device.
const busyBlock = 256

// busySource is the kernel of a GPU. In each round a thread loads a value from memory, computes with it and stores it:
// about 16 operations per byte.
var busySource = kernels.Source{Name: "busy.cu", Text: `
struct Busy { double *values; i64 count, rounds; }; // count is a multiple of all threads
extern "C" __global__ void __launch_bounds__(256) busy(const __grid_constant__ Busy p) {
	const i64 threads = (i64)gridDim.x * blockDim.x;
	i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
	for (i64 round = 0; round < p.rounds; round++) {
		double v = p.values[i];
#pragma unroll 16
		for (int k = 0; k < 128; k++)
			v = 0.5 * v + 0.25;
		p.values[i] = v;
		if ((i += threads) >= p.count)
			i -= p.count;
	}
}
`}

// busyArgument is struct Busy.
type busyArgument struct {
	Values        uint64
	Count, Rounds int64
}

// newBusy prepares the occupants and measures their rate when nothing else runs.
func newBusy(ctx context.Context, c *kernels.Compiler, devices []*streams.Device, fraction float64) (*busy, error) {
	b := &busy{fraction: fraction}
	err := b.measureAlone(ctx, c, devices)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *busy) measureAlone(ctx context.Context, c *kernels.Compiler, devices []*streams.Device) error {
	for _, d := range devices {
		if err := cmp.Or(ctx.Err(), b.add(c, d)); err != nil {
			return err
		}
	}
	rates, err := b.rates(func() error {
		time.Sleep(100 * stint)
		return nil
	})
	for i, o := range b.occupants {
		o.alone = rates[i]
	}
	return err
}

// add makes the occupant of a device, with launches that take about stint.
func (b *busy) add(c *kernels.Compiler, d *streams.Device) (err error) {
	o := &occupant{blocks: b.blocks(d.Info)}
	o.finished.Name = fmt.Sprintf("the kernel that keeps device %v busy", d)
	o.stream = b.resources.NewStream(d, streams.Normal)
	for i := range o.done {
		o.done[i] = b.resources.NewTimedEvent(d)
	}
	values := b.resources.Alloc(d, 8*busyValues)
	if err := b.resources.Err(); err != nil {
		return err
	}
	functions, err := c.Functions(d, busySource, "busy")
	if err != nil {
		return err
	}
	b.occupants = append(b.occupants, o)
	rounds := int64(64)
	if err := b.launch(o, values, functions[0], rounds); err != nil {
		return err
	}
	return b.launch(o, values, functions[0], max(1, rounds*int64(stint)/int64(max(1, o.took))))
}

// blocks returns how many thread blocks of a kernel are the fraction of those that run
// at once on a device.
func (b *busy) blocks(d streams.Info) int {
	if d.HostCores {
		return 1
	}
	return max(1, int(math.Round(b.fraction*float64(d.Cores*residentThreads(d.Arch)/busyBlock))))
}

// residentThreads returns how many threads a multiprocessor holds.
func residentThreads(arch string) int {
	switch arch {
	case "sm_75":
		return 1024
	case "sm_86", "sm_87", "sm_88", "sm_89", "sm_110", "sm_120", "sm_121":
		return 1536
	}
	return 2048
}

// launch gives the occupant a launch of the given number of rounds, and measures its time.
func (b *busy) launch(o *occupant, values *streams.Memory, f streams.Function, rounds int64) (err error) {
	threads := int64(o.blocks * busyBlock)
	o.kernel, err = kernels.Launch(values.Device(), kernels.LaunchSpec[busyArgument]{
		Name: "busy", Uses: []streams.Span{values.All()}, Host: b.hostRounds(values, rounds),
		Function: f, Grid: [3]int{o.blocks, 1, 1}, Block: [3]int{busyBlock, 1, 1},
		Argument: busyArgument{values.Address(), busyValues / threads * threads, rounds},
	})
	if err != nil {
		return err
	}
	b.resources.Add(o.kernel)
	o.took, err = o.time()
	return err
}

// hostRounds returns the work of a CPU device: the same for a block of values per round, then idle time, so
// that it works for the fraction of the time.
func (b *busy) hostRounds(values *streams.Memory, rounds int64) func() {
	return func() {
		start := time.Now()
		all := streams.View[float64](values.Bytes())
		for round := range rounds {
			first := round * busyBlock % busyValues
			for i := range all[first : first+busyBlock] {
				v := all[first+int64(i)]
				for range 128 {
					v = 0.5*v + 0.25
				}
				all[first+int64(i)] = v
			}
		}
		if b.fraction < 1 {
			time.Sleep(time.Duration(float64(time.Since(start)) * (1 - b.fraction) / b.fraction))
		}
	}
}

// time returns how long a launch takes alone.
func (o *occupant) time() (time.Duration, error) {
	start, end := o.done[0], o.done[1]
	for range 2 { // the first one warms up
		if err := errors.Join(o.stream.Record(start), o.stream.Launch(o.kernel), o.stream.Record(end),
			o.stream.Sync(timing.Limit)); err != nil {
			return 0, err
		}
	}
	return end.Since(start)
}

// during calls f while the occupants run, and returns the fraction of their rate that they lost, the mean of
// the devices. Without occupants it only calls f.
func (b *busy) during(f func() error) (lost float64, err error) {
	if b == nil {
		return 0, f()
	}
	rates, err := b.rates(f)
	if err != nil {
		return 0, err
	}
	for i, o := range b.occupants {
		lost += (1 - rates[i]/o.alone) / float64(len(b.occupants))
	}
	return lost, nil
}

// rates calls f once all occupants run, and returns the launches per second of each.
func (b *busy) rates(f func() error) (rates []float64, err error) {
	group := streams.NewWorkerGroup(1+len(b.occupants), timing.Limit)
	var stop atomic.Bool
	before := make([]int64, len(b.occupants))
	for i, o := range b.occupants {
		before[i] = o.finished.Count()
		group.Go("busy", func() error { return o.run(&stop) })
	}
	for i, o := range b.occupants {
		err = errors.Join(err, group.Await(&o.finished, before[i]+1))
		before[i] = o.finished.Count()
	}
	start := time.Now()
	if err == nil {
		err = f()
	}
	took := time.Since(start).Seconds()
	for i, o := range b.occupants {
		rates = append(rates, float64(o.finished.Count()-before[i])/took)
	}
	stop.Store(true)
	return rates, errors.Join(err, group.Wait())
}

// run launches the kernel repeatedly, with several launches queued, until it is stopped, and waits for them.
func (o *occupant) run(stop *atomic.Bool) error {
	for n := 0; !stop.Load(); n++ {
		done := o.done[n%len(o.done)]
		if n >= len(o.done) {
			if err := done.Sync(timing.Limit); err != nil {
				return err
			}
			o.finished.Add()
		}
		if err := errors.Join(o.stream.Launch(o.kernel), o.stream.Record(done)); err != nil {
			return err
		}
	}
	return o.stream.Sync(timing.Limit)
}

// busySettings describes the kernel that kept each device busy.
type busySettings struct {
	Fraction float64 `json:"fraction"` // of the thread blocks that run at once, or of the time of a CPU device
	Blocks   int     `json:"blocks"`   // thread blocks of a launch; 1 on CPU devices
	LaunchUS float64 `json:"launch_us"`
}

// describe returns the settings of the first device for a record.
func (b *busy) describe() busySettings {
	o := b.occupants[0]
	return busySettings{b.fraction, o.blocks, o.took.Seconds() * 1e6}
}

// Close frees its memory. Closing twice is not an error.
func (b *busy) Close() error { return b.resources.Close() }
