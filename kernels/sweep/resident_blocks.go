package sweep

import "github.com/halox/halox/streams"

// residentSlabs returns the slabs by stage and rank. They are the same in all phases.
func (g *stageGroup) residentSlabs() (all [][][]slab) {
	for stage := range g.ranks[0] {
		var slabs [][]slab
		for rank, r := range g.ranks[0][stage] {
			some := g.slabsOf(rank, r)
			shareSome(some, r.Interior.Points(), int64(g.residentThreads(rank)), residentBlocks(g.devices[rank], len(some)))
			slabs = append(slabs, some)
		}
		all = append(all, slabs)
	}
	return all
}

// residentBlocks is how many blocks the kernel of a device has: one a multiprocessor, and more only where
// the slabs alone are more.
func residentBlocks(d *streams.Device, slabs int) int64 { return int64(max(d.Cores, slabs+1)) }

// blocksBefore returns for each stage and neighbour how many blocks of the neighbour finish earlier stages
// of a step, and in the end all stages.
func (g *stageGroup) blocksBefore(rank int, slabs [][][]slab) (before [][]int64) {
	neighbours := g.flags.Neighbours(rank)
	sum := make([]int64, len(neighbours))
	for _, stage := range slabs {
		before = append(before, append([]int64(nil), sum...))
		for at, other := range neighbours {
			sum[at] += finishing(stage[other], g.flags.Place(rank, other))
		}
	}
	return append(before, sum)
}

// residentThreads is how many threads the blocks of a rank's kernel have.
func (g *stageGroup) residentThreads(rank int) int {
	var plans []*plan
	for _, stage := range g.ranks[0] {
		plans = append(plans, stage[rank].Sweeper.plan)
	}
	return threadsFor(plans)
}

// threadsFor returns as many threads as there are registers for in all stages: a quarter more than their
// windows take, and some for what a thread knows of slabs and tiles.
func threadsFor(stages []*plan) int {
	const all, fewest, most, others = 65536, 256, 1024, 16
	threads := most
	for _, n := range stages {
		registers := n.registers(n.form().atOnce(false))*5/4 + 8*len(n.norms) + 2*len(n.point.Reductions) + others
		for threads > fewest && threads*registers > all {
			threads /= 2
		}
	}
	return threads
}
