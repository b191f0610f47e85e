package kernels

import (
	"errors"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/streams"
)

// BoxSet is boxes that one launch sweeps, see Sweep, and the name of the launch.
type BoxSet struct {
	Name  string
	Boxes []domain.Box
}

// Measure makes a launch ready for each set of boxes that sweeps it as SweepAs does, to the
// same bits, and on its way takes the norms of dst and of its change from src: no second
// look at the memory is needed. total is the norms over all sets, once the launches
// and, ordered after all of them, total are queued. The order of the sums depends on the
// sets and on the shape that the sweeper has now; not on time. Closing total frees
// the launches too.
func (s *Sweeper) Measure(dst, src Array, sets ...BoxSet) (launches []*streams.Kernel, total *NormReduction, err error) {
	for _, p := range sets {
		if err := s.check(dst, src, p.Boxes); err != nil {
			return nil, nil, err
		}
	}
	m := measure{sweeper: s, dst: dst, src: src, slots: int64(len(sets))}
	if s.device.Backend != streams.Host {
		m.plan(sets)
	}
	if total, err = newNormReduction(s.device, 1+sumBlocks+m.slots); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			launches, total, err = nil, nil, errors.Join(err, total.Close())
		}
	}()
	for i, p := range sets {
		k, err := newKernel(s.device, m.spec(i, p, total.result))
		if err != nil {
			return nil, total, err
		}
		total.resources.Add(k)
		launches = append(launches, k)
	}
	return launches, total, total.launchAll(s.device, "norms", m.totals(total.result))
}

// measure is the launches of one call of Measure. Their norms lie in memory one after the
// other: the total, sums of sumBlocks blocks, and a slot for each block of each launch, or
// on a host device for each launch.
type measure struct {
	sweeper  *Sweeper
	dst, src Array
	onGPU    []sweepLaunch
	slots    int64
}

// sumBlocks is how many blocks sum the slots where there are more than some thousand,
// and how many sums the last block then has to add.
const sumBlocks = 128

// plan chooses the launches and gives their blocks slots.
func (m *measure) plan(sets []BoxSet) {
	m.slots = 0
	for _, p := range sets {
		k := m.sweeper.launchOf(m.dst, m.src, p.Boxes, m.sweeper.form.measured(m.sweeper.shape))
		for i := range k.arg.part {
			k.arg.part[i].slot += m.slots
		}
		m.onGPU, m.slots = append(m.onGPU, k), m.slots+k.blocks()
	}
}

// spec returns the launch of the i-th set.
func (m *measure) spec(i int, p BoxSet, result *streams.Memory) streams.KernelSpec {
	spec := streams.KernelSpec{Name: p.Name, Work: streams.Sweep, Uses: []streams.Span{m.dst.Data, m.src.Data, result.All()}}
	if m.onGPU != nil {
		m.onGPU[i].arg.norms = slotsOf(result)
		m.onGPU[i].fill(m.sweeper, &spec, withNorms)
		return spec
	}
	slot := result.Span((1+sumBlocks+int64(i))*normsBytes, normsBytes)
	spec.Run = m.sweeper.onHost(m.dst, m.src, p.Boxes, &slot)
	return spec
}

// totals returns the launches that sum the slots.
func (m *measure) totals(result *streams.Memory) []streams.KernelSpec {
	if m.onGPU == nil {
		return []streams.KernelSpec{{Run: func() { addNorms(result, 1+sumBlocks, m.slots) }}}
	}
	return totalOfSlots(m.sweeper.sums, result, m.slots)
}

// slotsOf returns where the slots begin in the memory of norms on a GPU.
func slotsOf(result *streams.Memory) uint64 { return result.Address() + (1+sumBlocks)*normsBytes }

// totalOfSlots returns the launches that sum the slots on a GPU, by norms_sums and norms_total.
func totalOfSlots(sums [2]streams.Function, result *streams.Memory, slots int64) []streams.KernelSpec {
	const few = 4096 // the sweeps of 128^3 points need no norms_sums
	block, one := [3]int{blockSize, 1, 1}, [3]int{1, 1, 1}
	arg := normsArgs{result: result.Address(), sums: slotsOf(result), blocks: slots}
	if slots <= few {
		return []streams.KernelSpec{{Function: sums[1], Grid: one, Block: block, Argument: argument(&arg)}}
	}
	arg = normsArgs{
		result: result.Address(), sums: result.Address() + normsBytes, blocks: sumBlocks,
		partial: slotsOf(result), partials: slots,
	}
	return []streams.KernelSpec{
		{Function: sums[0], Grid: [3]int{sumBlocks, 1, 1}, Block: block, Argument: argument(&arg)},
		{Function: sums[1], Grid: one, Block: block, Argument: argument(&arg)},
	}
}

// addNorms sums the slots into the first norms of the memory, on a host device.
func addNorms(result *streams.Memory, first, slots int64) {
	v := streams.View[float64](result.Bytes())
	var sum Norms
	for i := first; i < first+slots; i++ {
		n := v[4*i : 4*i+4]
		sum.Add(Norms{MaxChange: n[0], SumChange2: n[1], Max: n[2], Sum2: n[3]})
	}
	putNorms(v, sum)
}

func putNorms(v []float64, n Norms) {
	v[0], v[1], v[2], v[3] = n.MaxChange, n.SumChange2, n.Max, n.Sum2
}

// addBand joins the norms of a band, which was swept from old to new, row by row.
func addBand[T rows.Float](sum *Norms, new, old []T, o int64, b rows.Band) {
	for range b.Count {
		rows.AddRow(sum, new[o:o+int64(b.Points)], old[o:o+int64(b.Points)])
		o += int64(b.Pitch)
	}
}
