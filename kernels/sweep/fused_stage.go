package sweep

import (
	"github.com/halox/halox/streams"
)

// FusedStages are the stages of time steps that devices make together, each with one kernel a
// device. All ranks queue the same stages in the same order, each by one thread.
type FusedStages struct {
	group  *stageGroup
	waits  [][]int64         // by rank and neighbour: the count at which the stage queued next may begin
	begun  [][]int64         // and by how much it has grown since, see StageRank.Continued
	stages [][][]*FusedStage // by phase, stage and rank
}

// FusedStage is a stage of one phase on one device, made ready.
type FusedStage struct {
	all       *FusedStages
	rank      int
	continued bool
	plain     *fusedLaunch // nil where there is nothing to sweep
	measured  *fusedLaunch // the same, which takes norms and reductions; nil where there are none
	totals    *Totals
	adds      []int64 // by neighbour: how many of its blocks count for this one in the stage
}

// fusedLaunch is a launch, and where in its argument the counts to wait for lie.
type fusedLaunch struct {
	*Launch
	expected []*int64 // by neighbour
}

// Stage returns a stage of a phase on a rank.
func (f *FusedStages) Stage(phase, stage, rank int) *FusedStage { return f.stages[phase][stage][rank] }

// Queue queues the stage behind those queued before, with norms and reductions if they are wanted and
// it has some. It returns an error also if the device has waited in vain before.
func (s *FusedStage) Queue(at *streams.Stream, m Moment, parameters any, measured bool) error {
	if err := s.Err(); err != nil {
		return err
	}
	l := s.plain
	if measured && s.measured != nil {
		l = s.measured
	}
	waits, begun := s.all.waits[s.rank], s.all.begun[s.rank]
	if l != nil {
		for neighbour, expected := range l.expected {
			*expected = waits[neighbour]
		}
	}
	for neighbour, n := range s.adds {
		if begun[neighbour] += n; !s.continued {
			waits[neighbour] += begun[neighbour]
			begun[neighbour] = 0
		}
	}
	if l == nil {
		return nil
	}
	l.SetMoment(m)
	if parameters != nil {
		if err := l.SetParameters(parameters); err != nil {
			return err
		}
	}
	return at.Launch(l.Kernel)
}

// Totals returns what a measured stage takes, nil if that is nothing.
func (s *FusedStage) Totals() *Totals { return s.totals }

// Err returns an error if the device has waited in vain for another.
func (s *FusedStage) Err() error { return s.all.group.flags.Err(s.rank, "a stage") }

// Close frees what is held. Nothing queued may still use it. Closing twice is no error.
func (f *FusedStages) Close() error {
	if f.group == nil {
		return nil
	}
	return f.group.resources.Close()
}
