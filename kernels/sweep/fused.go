package sweep

import (
	"errors"
	"time"
)

// NewFusedStages makes the stages of all phases ready: ranks by phase and stage, on different devices
// that reach each other. limit is how long a device waits for another. The ghosts are those of the
// first step's beginning when that is queued.
func NewFusedStages(ranks [][][]StageRank, limit time.Duration) (f *FusedStages, err error) {
	f = &FusedStages{}
	defer func() {
		if err != nil {
			f, err = nil, errors.Join(err, f.Close())
		}
	}()
	if f.group, err = newStageGroup(ranks, limit); err != nil {
		return f, err
	}
	if err := f.group.onGPUs(); err != nil {
		return f, err
	}
	for rank := range f.group.devices {
		f.waits = append(f.waits, make([]int64, len(f.group.flags.Neighbours(rank))))
		f.begun = append(f.begun, make([]int64, len(f.group.flags.Neighbours(rank))))
	}
	for _, stages := range f.group.ranks {
		var made [][]*FusedStage
		for _, stage := range stages {
			one, err := f.newStage(stage)
			if err != nil {
				return f, err
			}
			made = append(made, one)
		}
		f.stages = append(f.stages, made)
	}
	return f, nil
}

// newStage makes a stage of one phase ready on all ranks.
func (f *FusedStages) newStage(stage []StageRank) (all []*FusedStage, err error) {
	slabs := make([][]slab, len(stage))
	for rank, r := range stage {
		slabs[rank] = f.group.slabsOf(rank, r)
		if err := r.share(slabs[rank]); err != nil {
			return nil, err
		}
	}
	for rank, r := range stage {
		s := &FusedStage{all: f, rank: rank, continued: r.Continued}
		for _, other := range f.group.flags.Neighbours(rank) {
			s.adds = append(s.adds, finishing(slabs[other], f.group.flags.Place(rank, other)))
		}
		all = append(all, s)
		if len(slabs[rank]) == 0 && r.Interior.Empty() {
			continue
		}
		if err := s.onGPU(r, slabs[rank]); err != nil {
			return nil, err
		}
	}
	return all, nil
}
