package sweep

import (
	"github.com/halox/halox/kernels/sums"
)

// residentSlabs returns the slabs of phase 0 by stage and rank.
func (g *stageGroup) residentSlabs() (all [][][]slab) {
	for _, stage := range g.ranks[0] {
		var slabs [][]slab
		for rank, r := range stage {
			some := g.slabsOf(rank, r)
			threads, blocks := g.residentThreads(rank, false), max(g.devices[rank].Cores, len(some)+1)
			shareSome(some, r.Interior.Points(), int64(threads), int64(blocks))
			slabs = append(slabs, some)
		}
		all = append(all, slabs)
	}
	return all
}

// blocksBefore returns for each stage of a phase and neighbour how many blocks of the neighbour finish earlier stages
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
func (g *stageGroup) residentThreads(rank int, measured bool) int {
	var plans []*plan
	for _, stage := range g.ranks[0] {
		plans = append(plans, stage[rank].Sweeper.plan)
	}
	return threadsFor(plans, measured)
}

// threadsFor returns as many threads as there are registers for in all stages, by estimates that were
// compared with what the compiler needs. Where threads have one point each, that need not be a power of two.
func threadsFor(stages []*plan, measured bool) int {
	threads := 1024
	for _, n := range stages {
		f := n.form()
		registers, many, some := n.registers(f.atOnce(false))+20*(len(stages)-1), 64, 104
		if measured {
			registers, many, some = registers+n.measuredRegisters(), 50, 112
			if n.point.Sums != sums.Fast && n.point.linear == nil {
				some = 104 // sums of a tile and of all
			}
		} else if f.way == streaming {
			many = 76
		}
		switch {
		case f.scarce():
			threads = min(threads, n.scarceThreads())
		case registers <= many && !f.layered:
		case registers <= some && !(f.layered && measured):
			threads = min(threads, 512)
		default:
			threads = min(threads, 256)
		}
	}
	return threads
}

// scarceThreads is how many threads there are registers for where each has one point: a quarter more than
// the point takes, some for what a thread knows of slabs and tiles, and the addresses of the many arrays,
// which differ from phase to phase.
func (n *plan) scarceThreads() int {
	const fewest, most, few, others = 256, 1024, 128, 16
	registers := n.singleRegisters()*5/4 + others + n.arrays + n.measuredRegisters()
	return max(fewest, min(most, allRegisters/registers/few*few))
}

// prefetchFor returns how many layers a thread of a stage loads at once: more than one, if there are
// registers for them.
func prefetchFor(n *plan, threads int, measured bool) int {
	if f := n.form(); f.way == streaming && !f.layered && !measured && threads == 1024 && n.registers(2) <= 72 {
		return 2
	}
	return 1
}
