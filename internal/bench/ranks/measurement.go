package ranks

import (
	"context"
	"fmt"

	haloranks "github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// run is the devices whose ranks are timed, and the settings.
type run struct {
	*bench.Machine
	options *Options
	pace    measure.Pace
}

// measurement is a kernel whose laps are timed on some devices.
type measurement struct {
	*run
	what    string
	name    string // of its rows
	devices int
	kernel  kernel
	ranks   haloranks.Options
	lap     lap
	value   func(row results.Row, us results.Sample, ranks int) results.Row // of a round
}

// labels returns the labels of the row of a measurement.
func (m measurement) labels() results.Row {
	row := results.NewRow().Label("what", m.name).Label("devices", m.devices)
	if m.lap.Bytes > 0 {
		row = row.Label("bytes", m.lap.Bytes)
	}
	if m.ranks.PerMultiprocessor > 0 {
		row = row.Label("per_multiprocessor", m.ranks.PerMultiprocessor).Label("threads", m.threads())
	}
	return row
}

func (m measurement) task() bench.Task {
	return bench.OneRow(m.labels(), func(ctx context.Context, open *streams.Resources) (results.Row, error) {
		us, ranks, err := m.round(ctx, m.lap, open)
		return m.value(m.labels().Label("ranks", ranks), us, ranks), bench.LeaveOut(err, haloranks.ErrNoRoom)
	})
}

// threads per rank: fewer if many ranks share a multiprocessor, which would otherwise lack registers.
func (m measurement) threads() int {
	most := 512 // on a multiprocessor
	if m.what == overlaps {
		most = 1024 // see OVERLAP_BOUNDS of overlap.cu
	}
	each := m.ranks.PerMultiprocessor
	if each == 0 {
		return m.options.Threads
	}
	return min(m.options.Threads, max(32, most/each/32*32))
}

// round returns the time of a round, and the number of ranks per device.
func (m measurement) round(
	ctx context.Context, l lap, open *streams.Resources,
) (us results.Sample, ranks int, err error) {
	devices := m.Devices[:m.devices]
	memory := make([]*streams.Memory, len(devices))
	ends := make([]haloranks.Channel, 2)
	w, err := haloranks.New(m.Compiler, devices, m.Links, m.kernel.program(m.threads(), memory, ends), m.ranks)
	if err != nil {
		return us, 0, err
	}
	open.Add(w)
	for from := range ends {
		if m.what != channels {
			break
		}
		const slots = 16
		if ends[from], err = w.NewChannel(from, 1-from, slots, int(l.Bytes)); err != nil {
			return us, 0, err
		}
	}
	for i, d := range devices {
		memory[i] = open.Alloc(d, max(16, l.area()*int64(w.Ranks())))
	}
	if err := open.Err(); err != nil {
		return us, 0, err
	}
	first := int64(0)
	us, err = m.pace.Measure(ctx, func(n int) (float64, error) {
		laps := make([]lap, len(devices))
		for i := range laps {
			laps[i] = lap{memory[i].Address(), l.Bytes, int64(n), l.Comm, l.Work, first, l.Apart, l.Span}
		}
		first += int64(n)
		if err := haloranks.Run(ctx, w, laps); err != nil {
			return 0, err
		}
		took := w.Timings(len(devices) - 1)
		if len(took) != 1 || took[0] <= 0 {
			return 0, fmt.Errorf("ranks: the time of a lap of %d rounds must be positive, got %v", n, took)
		}
		return took[0].Seconds() * 1e6 / float64(n), nil
	})
	return us, w.Ranks(), err
}
