package sweep

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/step"
	"github.com/halox/halox/streams"
)

// ResidentRank is the steps on one device, made ready.
type ResidentRank struct {
	group    *stageGroup
	rank     int
	plain    *streams.Kernel
	measured *streams.Kernel // the same, which takes norms and reductions; nil where there are none
	tiles    *step.TileSteps // instead of both, where the arrays stay on the multiprocessors
	totals   [][]*Totals     // by phase and stage; nil where it takes none
	made     int64           // steps that were queued
}

// maxSteps is how many steps a launch may make.
const maxSteps = step.MaxTileSteps

// Queue queues steps behind those queued before, up to 2^30, the first of them at a moment; with norms
// and reductions of the last if they are wanted and there are some. It returns an error also if the device
// has waited in vain before.
func (r *ResidentRank) Queue(at *streams.Stream, m Moment, steps int64, measured bool) error {
	if steps < 1 || steps > maxSteps {
		return fmt.Errorf("sweep: %d steps in one launch", steps)
	}
	if err := r.Err(); err != nil {
		return err
	}
	if r.tiles != nil {
		return r.tiles.Queue(at, m.Step, steps, measured && r.totals[0][0] != nil)
	}
	if !measured || r.measured == nil {
		return r.queue(at, r.plain, m, steps)
	}
	if steps > 1 {
		if err := r.queue(at, r.plain, m, steps-1); err != nil {
			return err
		}
		m.Step += steps - 1
	}
	return r.queue(at, r.measured, m, 1)
}

// Checks are norms that a launch takes of some of its steps but the last, and what ends it there.
type Checks = step.Checks

// MostChecks is how many steps of a launch beside the last may have their norms taken, see QueueChecked: 0 where none may.
func (r *ResidentRank) MostChecks() int64 {
	if r.tiles == nil || r.totals[0][0] == nil || !r.tiles.CanCheck() {
		return 0
	}
	return step.MostChecks
}

// QueueChecked is Queue with totals of the last step, and with checks of those before it.
func (r *ResidentRank) QueueChecked(at *streams.Stream, m Moment, steps int64, c Checks) error {
	if r.MostChecks() == 0 {
		return errors.New("sweep: checks of steps that take none")
	}
	return r.tiles.QueueChecked(at, m.Step, steps, c)
}

// Checked is to be called when such a launch is done, before another is queued: see step.TileSteps.
func (r *ResidentRank) Checked() (norms []rows.Norms, ended int64) { return r.tiles.Checked() }

// queue queues one launch.
func (r *ResidentRank) queue(at *streams.Stream, k *streams.Kernel, m Moment, steps int64) error {
	putSpan(k.Argument(), r.made, steps, m)
	r.made += steps
	return at.Launch(k)
}

// spanBytes is the size of what putSpan puts.
const spanBytes = 5 * 8

// putSpan puts the beginning of struct Steps of point_steps.cu.
func putSpan(argument []byte, first, count int64, m Moment) {
	for i, v := range []uint64{uint64(first), uint64(count), uint64(m.Step), math.Float64bits(m.Start), math.Float64bits(m.Length)} {
		binary.NativeEndian.PutUint64(argument[8*i:], v)
	}
}

// Totals returns what a measured step of a phase takes of a stage, nil if that is nothing.
func (r *ResidentRank) Totals(phase, stage int) *Totals { return r.totals[phase][stage] }

// Err returns an error if the device has waited in vain for another, or its blocks for each other.
func (r *ResidentRank) Err() error {
	if r.tiles != nil {
		return r.tiles.Err()
	}
	return r.group.flags.Err(r.rank, "a step")
}
