package sweep

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// RankSteps are time steps of one stage by ranks: thread blocks, or on host devices goroutines, each of which
// owns a tile of its device's subdomain, see rank_steps.cuh. Who runs them launches the ranks: the k-th rank of a
// device owns its k-th tile.
type RankSteps struct {
	resources streams.Resources
	devices   []*streams.Device
	phases    [][]StageRank // by phase and device
	boxes     []domain.Box  // that the devices own
	classes   classes
	tiles     [][]rankTile      // by device; set by Cut
	tables    []*streams.Memory // struct RankSteps of each GPU
}

// RankSpan is struct RankSpan of rank_steps.cuh: what the ranks of a device are launched with.
type RankSpan struct {
	Steps         uint64 // Table of the device
	Step, Count   int64  // as Moment counts them
	Start, Length float64
}

// RankKernel is the name of the kernel in the source of RankSteps.
const RankKernel = "rank_steps"

// A rank has at most 512 threads, for each of which there are 128 registers, and half as many threads where registers are scarce. With
// columns of more registers, by the estimate of plan.registers, some stencils spill.
const (
	rankThreads         = 512
	registersOfAColumn  = 76
	mostLayersOfAColumn = 2
)

// NewRankSteps plans the steps: ranks by phase, stage and device, on different devices that reach each other. It
// returns ErrImpossible for steps of several stages.
func NewRankSteps(ranks [][][]StageRank) (*RankSteps, error) {
	if err := checkCounts(ranks); err != nil {
		return nil, err
	}
	if n := len(ranks[0]); n != 1 {
		return nil, fmt.Errorf("%w: ranks make steps of one stage, and there are %d", ErrImpossible, n)
	}
	s := &RankSteps{}
	for _, r := range ranks[0][0] {
		if slices.Contains(s.devices, r.Sweeper.device) {
			return nil, fmt.Errorf("sweep: two ranks on device %v", r.Sweeper.device)
		}
		s.devices, s.boxes = append(s.devices, r.Sweeper.device), append(s.boxes, r.owned())
	}
	for phase, stages := range ranks {
		for device, r := range stages[0] {
			if err := r.check(s.devices); err != nil {
				return nil, err
			}
			if r.owned() != s.boxes[device] {
				return nil, fmt.Errorf("sweep: device %v sweeps %v in phase %d, but %v in phase 0", s.devices[device], r.owned(), phase, s.boxes[device])
			}
			c, _ := classesOf(slices.Concat(r.Arrays...))
			if s.classes == nil {
				s.classes = c
			}
			if !slices.Equal(c, s.classes) {
				return nil, fmt.Errorf("%w: the arrays of device %v in phase %d have other strides in common than those of device %v", ErrImpossible, s.devices[device], phase, s.devices[0])
			}
		}
		s.phases = append(s.phases, stages[0])
	}
	return s, nil
}

// owned returns the box of the boundary region and the interior together.
func (r StageRank) owned() domain.Box {
	all := r.Interior
	for _, b := range r.Boundary {
		if all.Empty() {
			all = b
		}
		for a := range b.Lo {
			all.Lo[a], all.Hi[a] = min(all.Lo[a], b.Lo[a]), max(all.Hi[a], b.Hi[a])
		}
	}
	return all
}

// plan returns that of the stage, which all devices have.
func (s *RankSteps) plan() *plan { return s.phases[0][0].Sweeper.plan }

// Threads returns how many threads a rank has.
func (s *RankSteps) Threads() int {
	n, form := s.plan(), s.phases[0][0].Sweeper.form
	if form.scarce() {
		return rankThreads / 2
	}
	return min(rankThreads, threadsFor([]*plan{n}, false))
}

// layers returns how many layers the columns of a thread have at most.
func (s *RankSteps) layers() int {
	n, form := s.plan(), s.phases[0][0].Sweeper.form
	if form.scarce() {
		return 1
	}
	layers := mostLayersOfAColumn
	for layers > 1 && n.registers(layers) > registersOfAColumn {
		layers /= 2
	}
	return layers
}

// Source returns the program of the ranks, whose kernel is RankKernel, compiled so that a multiprocessor can hold so
// many ranks.
func (s *RankSteps) Source(perMultiprocessor int) (kernels.Source, error) {
	p := s.program(perMultiprocessor)
	files, err := p.Files()
	return kernels.Source{Name: p.File, Text: files[p.File], Defines: p.Defines, Headers: p.Headers}, err
}

func (s *RankSteps) program(perMultiprocessor int) kernels.Program {
	n, reflects := s.plan(), false
	for _, devices := range s.phases {
		reflects = reflects || slices.ContainsFunc(devices, StageRank.reflects)
	}
	form := s.phases[0][0].Sweeper.form
	options := stageOptions(form, Shape{Layers: 1, Single: true}, 1, len(s.phases), storing{reflects: reflects})
	options += fmt.Sprintf("#define RANK_THREADS %d\n#define RANK_BLOCKS %d\n#define RANK_LAYERS %d\n#define RANK_STEPS_BYTES %d\n",
		s.Threads(), perMultiprocessor, s.layers(), s.tableBytes())
	return n.programOf("rank_steps.cu", n.source(s.classes, form, options))
}

// tableBytes is the size of struct RankSteps.
func (s *RankSteps) tableBytes() int {
	phases := len(s.phases)
	return 8*(phases*(s.plan().arrays+2*s.classes.count()+2)+2) + s.plan().frameBytes()
}

// Table returns the address of what the ranks of a device share, 0 on a host device.
func (s *RankSteps) Table(device int) uint64 {
	if len(s.tables) == 0 {
		return 0
	}
	return s.tables[device].Address()
}

// Partners returns the ranks of the world, Ranks of each device after another, with which a rank exchanges
// notifications: all that read what it stores, or store what it reads.
func (s *RankSteps) Partners(device, rank int) []int { return s.tiles[device][rank].partners }

// Sweep makes a step of the tile of a rank on a host device, and stores its points into ghosts.
func (s *RankSteps) Sweep(device, rank int, m Moment) {
	t := &s.tiles[device][rank]
	if t.box.Empty() {
		return
	}
	phase := int(m.Step % int64(len(s.phases)))
	putMoment(t.frame, m)
	t.sweep[phase](t.frame)
	s.phases[phase][device].storeOnHost(t.box)
}

// Close frees what is held. No rank may still run. Closing twice is no error.
func (s *RankSteps) Close() error { return s.resources.Close() }
