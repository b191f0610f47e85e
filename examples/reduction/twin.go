package main

import (
	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/streams"
)

// sliceSum is the twin of slice_sum: of the numbers of a rank of a device by so many threads.
func sliceSum(numbers []float64, ranks, rank int64, threads []float64) float64 {
	lo, hi := compare.Part(int64(len(numbers)), ranks, rank), compare.Part(int64(len(numbers)), ranks, rank+1)
	mine, n := numbers[lo:hi], len(threads)
	for t := range threads {
		var sums [4]float64
		i := t
		for ; i+3*n < len(mine); i += 4 * n {
			for k := range sums {
				sums[k] += mine[i+k*n]
			}
		}
		for ; i < len(mine); i += n {
			sums[0] += mine[i]
		}
		threads[t] = (sums[0] + sums[1]) + (sums[2] + sums[3])
	}
	return compare.BlockSum(threads)
}

// sign is that of the numbers in an iteration.
func sign(iteration int64) float64 { return float64(1 - 2*(iteration%2)) }

// byRanks is the twin of by_ranks.
func (p *problem) byRanks(r *ranks.Rank) {
	d, n, me := ranks.Data[data](r), r.Size(ranks.All), r.Index(ranks.All)
	each, local := int64(r.Size(ranks.Device)), int64(r.Index(ranks.Device))
	numbers := streams.View[float64](p.numbers[r.Device()].Bytes())
	bytes := p.cells[r.Device()].Bytes()[8*cells*local:][:8*cells]
	mine, threads := streams.View[float64](bytes), make([]float64, p.options.Threads)
	w := r.CreateWindow(ranks.All, bytes)
	r.StartTimer()
	for t := int64(0); t < d.Iterations && !r.Failed(); t++ {
		mine[0] = sign(t) * sliceSum(numbers, each, local, threads)
		for step, round := 1, 0; step < n; step, round = 2*step, round+1 {
			if me%(2*step) == step {
				if t > 0 && !r.WaitNotifications(credit, 1) {
					return
				}
				p.options.Pause()
				r.PutNotify(w, me-step, int64(8*(1+round)), bytes[:8], round)
				break
			}
			if me+step >= n {
				continue
			}
			if !r.WaitNotifications(round, 1) {
				return
			}
			p.options.Pause()
			mine[0] += mine[1+round]
			r.Notify(me+step, ranks.All, credit)
		}
		if me == 0 {
			mine[total] += mine[0]
		}
	}
	r.Barrier(ranks.All)
	r.StopTimer()
	r.FreeWindow(w)
}

// addTree is the twin of add_tree.
func addTree(all []float64) {
	sums, total := all[:len(all)-1], &all[len(all)-1]
	for step := 1; step < len(sums); step *= 2 {
		for i := 0; i+step < len(sums); i += 2 * step {
			sums[i] += sums[i+step]
		}
	}
	*total += sums[0]
}
