package sweep

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// NewFusedStages makes the stages of all phases ready: ranks by phase and stage, on different devices
// that reach each other. limit is how long a device waits for another. The ghosts are those of the
// first step's beginning when that is queued.
func NewFusedStages(ranks [][][]StageRank, limit time.Duration) (g *FusedStages, err error) {
	g = &FusedStages{limit: limit}
	defer func() {
		if err != nil {
			g, err = nil, errors.Join(err, g.Close())
		}
	}()
	for _, r := range ranks[0][0] {
		if slices.Contains(g.devices, r.Sweeper.device) {
			return g, fmt.Errorf("sweep: two ranks of fused stages on device %v", r.Sweeper.device)
		}
		g.devices = append(g.devices, r.Sweeper.device)
	}
	if err := g.allocate(); err != nil {
		return g, err
	}
	g.findPeers(ranks)
	for _, stages := range ranks {
		var made [][]*FusedStage
		for stage := range stages {
			one, err := g.newStage(stages[stage], ranks)
			if err != nil {
				return g, err
			}
			made = append(made, one)
		}
		g.stages = append(g.stages, made)
	}
	return g, nil
}

// allocate makes the memory by which ranks wait for each other.
func (g *FusedStages) allocate() error {
	for range g.devices {
		g.waits = append(g.waits, make([]int64, len(g.devices)))
	}
	for _, d := range g.devices {
		counts, err := kernels.Zeros(d, int64(len(g.devices))*lineBytes)
		if err != nil {
			return err
		}
		g.resources.Add(counts)
		report, err := d.AllocPinned(8)
		if err != nil {
			return err
		}
		clear(report.Bytes())
		g.resources.Add(report)
		g.counts, g.reports = append(g.counts, counts), append(g.reports, report)
	}
	return nil
}

// findPeers finds out which ranks exchange points in any stage.
func (g *FusedStages) findPeers(ranks [][][]StageRank) {
	g.peers = make([][]int, len(g.devices))
	for _, stages := range ranks {
		for _, stage := range stages {
			for from, r := range stage {
				for _, s := range r.Stores {
					for _, pair := range [][2]int{{from, s.To}, {s.To, from}} {
						if pair[0] != pair[1] && !slices.Contains(g.peers[pair[0]], pair[1]) {
							g.peers[pair[0]] = append(g.peers[pair[0]], pair[1])
						}
					}
				}
			}
		}
	}
}

// slabsOf returns the slabs of a rank in a stage. A slab deals with a rank into whose ghosts points of
// it go in any stage, and with one that in any stage stores into ghosts that it reads.
func (g *FusedStages) slabsOf(rank int, r StageRank, ranks [][][]StageRank) (all []slab) {
	total, threads := int64(0), int64(r.Sweeper.shape.Block[0]*r.Sweeper.shape.Block[1])
	for _, b := range r.Boundary {
		total += b.Points()
	}
	each := max(1, ceil(total, threads*int64(max(1, r.Sweeper.device.Cores)))) // points a thread: one block a multiprocessor
	for _, b := range r.Boundary {
		if b.Empty() {
			continue
		}
		s := slab{box: b, blocks: ceil(b.Points(), threads*each)}
		for _, other := range g.peers[rank] {
			if dealsWith(rank, other, b, r.Sweeper.plan.radius(), ranks) {
				s.peers = append(s.peers, other)
			}
		}
		all = append(all, s)
	}
	return all
}

// dealsWith reports whether a box of one rank exchanges points with another rank in any stage.
func dealsWith(rank, other int, b domain.Box, radius domain.Radius, ranks [][][]StageRank) bool {
	reads := b.Grow(radius)
	for _, stages := range ranks {
		for _, stage := range stages {
			for _, s := range stage[rank].Stores {
				if s.To == other && !s.Send.Intersect(b).Empty() {
					return true
				}
			}
			for _, s := range stage[other].Stores {
				if s.To == rank && !s.Ghost.Intersect(reads).Empty() {
					return true
				}
			}
		}
	}
	return false
}

// newStage makes a stage of one phase ready on all ranks.
func (g *FusedStages) newStage(stage []StageRank, ranks [][][]StageRank) (all []*FusedStage, err error) {
	slabs := make([][]slab, len(stage))
	for rank, r := range stage {
		if err := g.check(rank, r); err != nil {
			return nil, err
		}
		slabs[rank] = g.slabsOf(rank, r, ranks)
	}
	for rank, r := range stage {
		f := &FusedStage{group: g, rank: rank, adds: make([]int64, len(stage))}
		for other := range stage {
			for _, s := range slabs[other] {
				if slices.Contains(s.peers, rank) {
					f.adds[other] += s.blocks
				}
			}
		}
		if r.Sweeper.device.Backend == streams.Host {
			err = f.onHost(r, slabs[rank])
		} else {
			err = f.onGPU(r, slabs[rank])
		}
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// check returns an error unless a rank can make a stage.
func (g *FusedStages) check(rank int, r StageRank) error {
	if r.Sweeper.device != g.devices[rank] || len(r.Boundary) > maxSlabs || len(g.peers[rank]) > maxPeers {
		return fmt.Errorf("sweep: a fused stage of device %v on %v, with a boundary region of %d boxes and %d neighbours; %d and %d are possible",
			r.Sweeper.device, g.devices[rank], len(r.Boundary), len(g.peers[rank]), maxSlabs, maxPeers)
	}
	boxes := slices.Clone(r.Boundary)
	if !r.Interior.Empty() {
		boxes = append(boxes, r.Interior)
	}
	for first := 0; first < len(boxes); first += maxBoxes {
		if err := r.Sweeper.check(r.Arrays, boxes[first:min(first+maxBoxes, len(boxes))]); err != nil {
			return err
		}
	}
	for _, s := range r.Stores {
		if s.To < 0 || s.To >= len(g.devices) || s.Send.Empty() || s.Send.Size() != s.Ghost.Size() || r.Sweeper.plan.written(s.Access, s.Component) < 0 {
			return fmt.Errorf("sweep: a store of access %d, component %d, from %v into %v of rank %d", s.Access, s.Component, s.Send, s.Ghost, s.To)
		}
		if !s.Send.Intersect(r.Interior).Empty() {
			return fmt.Errorf("sweep: a store of %v, of which points lie in the interior %v", s.Send, r.Interior)
		}
		if err := s.Array.Holds(s.Ghost); err != nil {
			return err
		}
	}
	return nil
}

// Stage returns a stage of a phase on a rank.
func (g *FusedStages) Stage(phase, stage, rank int) *FusedStage { return g.stages[phase][stage][rank] }

// Queue queues the stage behind those queued before, with norms and reductions if they are wanted and
// it has some. It returns an error also if the device has waited in vain before.
func (f *FusedStage) Queue(s *streams.Stream, m Moment, parameters any, measured bool) error {
	if err := f.Err(); err != nil {
		return err
	}
	l := f.plain
	if measured && f.measured != nil {
		l = f.measured
	}
	waits := f.group.waits[f.rank]
	for at, other := range f.group.peers[f.rank] {
		*l.expected[at] = waits[other]
	}
	for other, n := range f.adds {
		waits[other] += n
	}
	l.SetMoment(m)
	if parameters != nil {
		if err := l.SetParameters(parameters); err != nil {
			return err
		}
	}
	return s.Launch(l.Kernel)
}

// Totals returns what a measured stage takes, nil if that is nothing.
func (f *FusedStage) Totals() *Totals { return f.totals }

// Err returns an error if the device has waited in vain for another.
func (f *FusedStage) Err() error {
	n := atomic.LoadUint64(word(f.group.reports[f.rank], 0))
	if n == 0 {
		return nil
	}
	other := f.group.peers[f.rank][n-1]
	return fmt.Errorf("sweep: device %v waited in vain for its neighbour on device %v to make a stage", f.group.devices[f.rank], f.group.devices[other])
}

// Close frees what is held. Nothing queued may still use it. Closing twice is no error.
func (g *FusedStages) Close() error { return g.resources.Close() }
