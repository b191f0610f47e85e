package sweep

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// residentStage is a stage of one phase on a host device.
type residentStage struct {
	rank            StageRank
	plain, measured []func(frame []byte) // what sweeps the slabs and then the interior
	frame           []byte
}

// onHost makes the launches of a rank on a host device ready. Their argument is what putSpan puts.
func (r *ResidentRank) onHost(slabs [][][][]slab) (err error) {
	g := r.group
	stages := make([][]residentStage, len(g.ranks)) // by phase
	spec := streams.KernelSpec{Name: "resident", Work: streams.Sweep, Uses: []streams.Span{g.flags.Report(r.rank).All()}, Argument: make([]byte, spanBytes)}
	measures := false
	for phase := range g.ranks {
		r.totals = append(r.totals, make([]*Totals, len(slabs[phase])))
		for stage, ranks := range g.ranks[phase] {
			one := residentStage{rank: ranks[r.rank]}
			n := one.rank.Sweeper.plan
			one.frame = n.frame()
			spec.Uses = append(spec.Uses, spansOf(slices.Concat(one.rank.Arrays...))...)
			spec.Reaches = append(spec.Reaches, one.rank.reaches(r.rank)...)
			if one.plain, err = g.hostParts("resident", one.rank, slabs[phase][stage][r.rank], nil); err != nil {
				return err
			}
			if n.totals() > 0 && !one.rank.sweepsGhosts() {
				measures = true
				if one.measured, err = g.hostParts("resident", one.rank, slabs[phase][stage][r.rank], &r.totals[phase][stage]); err != nil {
					return err
				}
			}
			stages[phase] = append(stages[phase], one)
		}
	}
	counts := g.countsOf(r.rank, slabs)
	if r.plain, err = r.hostKernel(spec, stages, slabs, counts, false); err != nil || !measures {
		return err
	}
	r.measured, err = r.hostKernel(spec, stages, slabs, counts, true)
	return err
}

// sweepsGhosts reports whether a rank sweeps more than it owns.
func (r StageRank) sweepsGhosts() bool {
	w := r.Sweeper.plan.writes[0]
	owned := r.Arrays[w.access][w.component].Layout.Owned
	return slices.ContainsFunc(append(slices.Clone(r.Boundary), r.Interior), func(b domain.Box) bool { return b.Intersect(owned).Points() < b.Points() })
}

// hostKernel makes one launch, of steps that measure or do not.
func (r *ResidentRank) hostKernel(spec streams.KernelSpec, stages [][]residentStage, slabs [][][][]slab, counts stageCounts, measured bool) (*streams.Kernel, error) {
	g := r.group
	expected := make([]uint64, len(g.flags.Neighbours(r.rank)))
	spec.RunWith = func(argument []byte) {
		number := func(i int) int64 { return int64(binary.NativeEndian.Uint64(argument[8*i:])) }
		made, count := number(0), number(1)
		m := Moment{Step: number(2), Start: math.Float64frombits(uint64(number(3))), Length: math.Float64frombits(uint64(number(4)))}
		begun := m.Step - made
		for range count {
			phase := int(m.Step % int64(len(stages)))
			for i, stage := range stages[phase] {
				for at := range expected {
					expected[at] = uint64(counts.between(begun, m.Step, at) + counts.stages[phase][i][at])
				}
				parts := stage.plain
				if measured && stage.measured != nil {
					parts = stage.measured
				}
				putMoment(stage.frame, m)
				if !g.stageOnHost(r.rank, stage.rank, slabs[phase][i][r.rank], parts, stage.frame, expected) {
					return
				}
			}
			m.Step++
		}
	}
	k, err := g.devices[r.rank].NewKernel(spec)
	if err == nil {
		g.resources.Add(k)
	}
	return k, err
}
