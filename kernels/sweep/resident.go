package sweep

import (
	"errors"
	"fmt"
	"time"

	"github.com/halox/halox/kernels/step"
)

// ResidentSteps are time steps of which a launch makes many without the host: on each device one kernel,
// whose thread blocks wait for each other, and for those of neighbours, after each stage. All ranks queue
// the same steps, each by one thread.
type ResidentSteps struct {
	group *stageGroup
	ranks []*ResidentRank
}

// NewResidentSteps makes the steps of all phases ready: ranks by phase and stage, on different devices that
// reach each other. Parameters stay as they are. limit is how long a device waits for another. With checks a rank may have more of them than none, see ResidentRank.MostChecks. The ghosts
// are those of the first step's beginning when that is queued.
//
// group is how many steps go between two exchanges: phases whose number is a multiple of it store into ghosts of others, and the number of phases is
// one. With more than one a GPU makes steps of tiles alone, and NewResidentSteps returns ErrImpossible, with the reason, where it can make none. Ghosts of
// neighbours that a step reads are whole when it is the first of a launch.
func NewResidentSteps(ranks [][][]StageRank, group int, limit time.Duration, checks bool) (r *ResidentSteps, err error) {
	r = &ResidentSteps{}
	defer func() {
		if err != nil {
			r, err = nil, errors.Join(err, r.Close())
		}
	}()
	if r.group, err = newStageGroup(ranks, limit); err != nil {
		return r, err
	}
	if group < 1 || len(ranks)%group > 0 {
		return r, fmt.Errorf("sweep: %d phases of steps, of which %d go between two exchanges", len(ranks), group)
	}
	if group == 1 {
		if err = r.group.checkSameBoxes(); err != nil { // those of phase 0 are taken for all
			return r, err
		}
	}
	if err = r.group.onGPUs(); err != nil {
		return r, err
	}
	if r.ranks, err = r.group.onTiles(group, checks); !errors.Is(err, step.ErrNoTiles) {
		return r, err
	}
	if group > 1 {
		return r, fmt.Errorf("%w with %d steps between two exchanges: %w", ErrImpossible, group, err)
	}
	slabs := r.group.residentSlabs()
	for rank := range r.group.devices {
		one := &ResidentRank{group: r.group, rank: rank}
		if err = one.onGPU(slabs); err != nil {
			return r, err
		}
		r.ranks = append(r.ranks, one)
	}
	return r, nil
}

// Rank returns the steps on a rank's device.
func (r *ResidentSteps) Rank(rank int) *ResidentRank { return r.ranks[rank] }

// Close frees what is held. Nothing queued may still use it. Closing twice is no error.
func (r *ResidentSteps) Close() error {
	if r.group == nil {
		return nil
	}
	return r.group.resources.Close()
}
