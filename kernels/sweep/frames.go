package sweep

import (
	"fmt"
	"time"

	"github.com/halox/halox/streams"
)

// Frames hold the step, time and parameters of each stage for the coming steps, in memory of a device. Kernels that are
// replayed, or that run many steps per launch, look them up there; other kernels get them in their argument. The thread
// that launches fills them, and allocates nothing.
type Frames struct {
	table
	feed   *streams.Feed
	stages []fedStage
}

// fedStage is a stage that looks up its frames.
type fedStage struct {
	plan *plan // nil of others
	give Give
	at   int64 // the offset among the frames of a step
}

// frameLimit is how long the host waits for the device until it can fill frames again.
const frameLimit = time.Minute

// NewFrames makes room for the frames of so many steps, a power of two, on the device of the sweepers: one for each
// stage that looks up its frames, nil for others. give sets the parameters of those stages, where it is not nil.
func NewFrames(d *streams.Device, steps int64, stages []*Sweeper, give []Give) (f *Frames, err error) {
	f = &Frames{table: table{steps: steps}, stages: make([]fedStage, len(stages))}
	for i, s := range stages {
		if s != nil {
			f.stages[i] = fedStage{s.plan, give[i], f.stride}
			f.stride += int64(s.plan.frameBytes())
		}
	}
	if f.feed, err = streams.NewFeed(d, f.stride*steps); err != nil {
		return nil, err
	}
	f.memory = f.feed.Memory()
	return f, nil
}

// Fed returns a sweeper of a stage whose launches look up their frames: the sweeper itself if the stage does not.
func (f *Frames) Fed(stage int, s *Sweeper) *Sweeper {
	if f == nil || f.stages[stage].plan == nil {
		return s
	}
	n, fed := *s.plan, *s
	n.table, n.place = &f.table, f.stages[stage].at
	fed.plan = &n
	return &fed
}

// SetFirst says which step lies in place 0, for launches that are captured and later replayed for other steps. It is
// step 0 for kernels that run many steps, which compute places themselves.
func (f *Frames) SetFirst(step int64) { f.first = step }

// Queue queues the frames of some steps, the first of them at a moment, for what is queued behind it.
func (f *Frames) Queue(s *streams.Stream, m Moment, steps int64) error {
	if f == nil {
		return nil
	}
	if steps < 1 || steps > f.steps {
		return fmt.Errorf("sweep: frames of %d steps; must be between 1 and %d", steps, f.steps)
	}
	host, err := f.feed.Next(frameLimit)
	if err != nil {
		return err
	}
	from, size := f.offset(m.Step), int64(len(host))
	for range steps {
		at := f.offset(m.Step)
		for i := range f.stages {
			if st := &f.stages[i]; st.plan != nil {
				if err := st.plan.putFrame(host[at+st.at:][:st.plan.frameBytes()], m, st.give); err != nil {
					return err
				}
			}
		}
		m.Step++
	}
	to := from + steps*f.stride
	if to > size {
		if err := f.feed.Queue(s, 0, to-size); err != nil {
			return err
		}
	}
	return f.feed.Queue(s, from, min(to, size))
}

// Close frees the memory. Nothing queued may still use it. A second call does nothing.
func (f *Frames) Close() error { return f.feed.Close() }
