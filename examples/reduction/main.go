// Reduction adds up the numbers of all device ranks along a binomial tree, as listing 3.2 of Kuster (2017) does. Each
// device rank puts its sum into the memory of its parent. Before it puts the next one, the parent has told it that the
// place is free.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"math"
	"time"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed reduction.cu
var cuda string

var source = kernels.Source{Name: "reduction.cu", Text: example.RanksHeader + cuda, Mirrors: []kernels.Mirror{
	{Name: "Data", Value: data{}}, {Name: "CELLS", Value: cells}, {Name: "TOTAL", Value: total},
	{Name: "CREDIT", Value: credit},
}}

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
	count          int64 // of each device
	threads        int
	world          *ranks.World
	numbers, cells []*streams.Memory // by device
	resources      streams.Resources
}

// number returns an integer between -1000 and 1000, so that sums are exact in any order.
func number(i int64) float64 { return float64(example.Hash(uint64(i), 0)%2001) - 1000 }

// sign is that of the numbers in an iteration.
func sign(iteration int64) float64 { return float64(1 - 2*(iteration%2)) }

func newReduction(s *halo.Session, o example.RankOptions, count int64) (_ example.Problem, err error) {
	x := &reduction{threads: o.Threads, count: count}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	x.world, err = ranks.New(s.Compiler, s.Devices, s.Links, ranks.Program{
		Name: "reduction", Source: source, Kernel: "by_ranks", Threads: o.Threads, Host: x.byRanks,
	}, o.Ranks)
	if err != nil {
		return nil, err
	}
	x.resources.Add(x.world)
	if count == 0 {
		x.count = int64(x.world.Ranks() * o.Threads)
	}
	for i, d := range s.Devices {
		numbers, err := example.Alloc(&x.resources, d, 8*x.count)
		if err != nil {
			return nil, err
		}
		all, err := example.Alloc(&x.resources, d, 8*cells*int64(x.world.Ranks()))
		if err != nil {
			return nil, err
		}
		x.numbers, x.cells = append(x.numbers, numbers), append(x.cells, all)
		err = example.FillMemory(numbers.All(), func(values []float64, first int64) {
			for k := range values {
				values[k] = number(int64(i)*x.count + first + int64(k))
			}
		})
		if err != nil {
			return nil, err
		}
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

// byRanks is kernel by_ranks on CPU devices.
func (x *reduction) byRanks(r *ranks.Rank) {
	d, n, me := ranks.Data[data](r), r.Size(ranks.All), r.Index(ranks.All)
	each, local := int64(r.Size(ranks.Device)), int64(r.Index(ranks.Device))
	numbers := streams.View[float64](x.numbers[r.Device()].Bytes())
	bytes := x.cells[r.Device()].Bytes()[8*cells*local:][:8*cells]
	mine, threads := streams.View[float64](bytes), make([]float64, x.threads)
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
		x.count, x.world.Ranks(), x.threads)
}

// Reset sets the sums to NaN and the totals to 0.
func (x *reduction) Reset() (err error) {
	for _, m := range x.cells {
		err = errors.Join(err, example.FillMemory(m.All(), func(values []float64, first int64) {
			for i := range values {
				if values[i] = math.NaN(); (first+int64(i))%cells == total {
					values[i] = 0
				}
			}
		}))
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
	all, err := example.ReadMemory[float64](x.cells[0].Span(0, 8*cells))
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

func (x *reduction) Close() error { return x.resources.Close() }

func newExample() example.Ranks {
	var numbers int64
	return example.Ranks{Name: "reduction", PerMultiprocessor: 4,
		Flags: func(f *flag.FlagSet) {
			f.Int64Var(&numbers, "numbers", 1<<20, "numbers of each device; 0 for one per thread, as in the thesis")
		},
		New: func(s *halo.Session, o example.RankOptions) (example.Problem, error) {
			if err := example.Within("numbers", numbers, 0, 1<<34); err != nil {
				return nil, err
			}
			return newReduction(s, o, numbers)
		}}
}

func main() { newExample().Main() }
