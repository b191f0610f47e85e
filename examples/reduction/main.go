// Reduction adds the numbers of all device ranks along a binomial tree, like listing 3.2 of Kuster (2017). Each device
// rank puts its sum into the memory of its parent. Before it puts the next one, it waits for the parent's notification
// that the place is free.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed reduction.cu
var cuda string

func source(threads int) kernels.Source {
	return example.Source("reduction.cu", cuda, threads,
		kernels.Mirror{Name: "Data", Value: data{}}, kernels.Mirror{Name: "CELLS", Value: cells},
		kernels.Mirror{Name: "TOTAL", Value: total}, kernels.Mirror{Name: "CREDIT", Value: credit})
}

// Constants of reduction.cu.
const (
	cells  = 32
	total  = cells - 1
	credit = 255
)

// data is struct Data of reduction.cu: what the device ranks of a device share.
type data struct {
	Numbers, Cells    uint64
	Count, Iterations int64
}

// reduction is a sum of the numbers on some devices: number i of device d is number(count*d + i).
type reduction struct {
	*example.Setup
	count                int64 // of each device
	world                *ranks.World
	numbers, cells, zero []*streams.Memory // by device; zero is the initial content of cells
}

// number returns an integer between -1000 and 1000, so that sums are exact in any order.
func number(i int64) float64 { return float64(example.Hash(uint64(i), 0)%2001) - 1000 }

// sign is that of the numbers in an iteration.
func sign(iteration int64) float64 { return float64(1 - 2*(iteration%2)) }

func newReduction(s *example.Setup, count int64) (x *reduction, err error) {
	x = &reduction{Setup: s, count: count}
	x.world, err = s.World(ranks.Program{
		Name: "reduction", Source: source(s.Threads), Kernel: "by_ranks", Host: x.byRanks,
	})
	if err != nil {
		return nil, err
	}
	if count == 0 {
		x.count = int64(x.world.Ranks() * s.Threads)
	}
	// Sums are NaN until they are computed, and totals 0.
	zero := slices.Repeat([]float64{math.NaN()}, cells*x.world.Ranks())
	for i := total; i < len(zero); i += cells {
		zero[i] = 0
	}
	for i, d := range s.Devices {
		numbers := make([]float64, x.count)
		for k := range numbers {
			numbers[k] = number(int64(i)*x.count + int64(k))
		}
		var memory [3]*streams.Memory
		for n, values := range [][]float64{numbers, zero, zero} {
			if memory[n], err = example.Upload(s, d, values); err != nil {
				return nil, err
			}
		}
		x.numbers, x.cells, x.zero = append(x.numbers, memory[0]), append(x.cells, memory[1]), append(x.zero, memory[2])
	}
	return x, nil
}

// sliceSum is slice_sum of reduction.cu.
func sliceSum(numbers []float64, ranks, rank int64, threads []float64) float64 {
	lo, hi := example.Part(int64(len(numbers)), ranks, rank), example.Part(int64(len(numbers)), ranks, rank+1)
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
	return example.BlockSum(threads)
}

// byRanks is the counterpart of kernel by_ranks on CPU devices.
func (x *reduction) byRanks(r *ranks.Rank) {
	d, n, me := ranks.Data[data](r), r.Size(ranks.All), r.Index(ranks.All)
	each, local := int64(r.Size(ranks.Device)), int64(r.Index(ranks.Device))
	numbers := streams.View[float64](x.numbers[r.Device()].Bytes())
	bytes := x.cells[r.Device()].Bytes()[8*cells*local:][:8*cells]
	mine, threads := streams.View[float64](bytes), make([]float64, x.Threads)
	w := r.CreateWindow(ranks.All, bytes)
	r.StartTimer()
	for t := int64(0); t < d.Iterations && !r.Failed(); t++ {
		mine[0] = sign(t) * sliceSum(numbers, each, local, threads)
		for step, round := 1, 0; step < n; step, round = 2*step, round+1 {
			if me%(2*step) == step {
				if t > 0 && !r.WaitNotifications(credit, 1) {
					return
				}
				r.PutNotify(w, me-step, int64(8*(1+round)), bytes[:8], round)
				break
			}
			if me+step >= n {
				continue
			}
			if !r.WaitNotifications(round, 1) {
				return
			}
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

func (x *reduction) String() string {
	return fmt.Sprintf("a sum of %d integers on each device by %d device ranks of %d threads",
		x.count, x.world.Ranks(), x.Threads)
}

// Reset sets the sums to NaN and the totals to 0.
func (x *reduction) Reset() (err error) {
	for i, d := range x.Devices {
		err = errors.Join(err, example.Copy(d, x.cells[i].All(), x.zero[i].All()))
	}
	return err
}

func (x *reduction) Run(ctx context.Context, iterations int) (time.Duration, error) {
	all := make([]data, len(x.numbers))
	for i := range all {
		all[i] = data{x.numbers[i].Address(), x.cells[i].Address(), x.count, int64(iterations)}
	}
	return example.Timed(ctx, x.world, all)
}

// Values returns the sum of the last iteration and the total of all iterations.
func (x *reduction) Values(int) ([]float64, error) {
	all, err := example.Read[float64](x.cells[0].Span(0, 8*cells))
	if err != nil {
		return nil, err
	}
	return []float64{all[0], all[total]}, nil
}

// Check compares with the sum of the numbers one after the other.
func (x *reduction) Check(values []float64, iterations int) (string, error) {
	sum := 0.0
	for i := range x.count * int64(len(x.numbers)) {
		sum += number(i)
	}
	last, all := sign(int64(iterations)-1)*sum, sum*float64(iterations%2)
	if values[0] != last || values[1] != all {
		return "", fmt.Errorf("the last sum and the total are %v, the reference has %v and %v", values, last, all)
	}
	return fmt.Sprintf("sum %.0f, as in the reference", values[0]), nil
}

func newProgram() example.Program {
	var numbers int64
	setup := example.Setup{Iterations: 20, Options: ranks.Options{PerMultiprocessor: 4}}
	return example.Ranks("reduction", setup, func(f *flag.FlagSet) {
		f.Int64Var(&numbers, "numbers", 1<<20, "numbers of each device; 0 for one per thread, as in the thesis")
	}, func(s *example.Setup) (example.Problem, error) {
		if numbers < 0 || numbers > 1<<32 {
			return nil, fmt.Errorf("--numbers must be between 0 and %d, got %d", int64(1<<32), numbers)
		}
		return newReduction(s, numbers)
	})
}

func main() { newProgram().Main() }
