// Spmv multiplies a sparse matrix with a vector. The matrix is cut in two dimensions, and the vector goes down the
// columns of blocks before and along their rows after the product, as in Kuster (2017), by ranks that put their own
// parts and notify their partners, and by streams, which copy whole vectors.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/examples/internal/sparse"
)

// iteration queues a product, with a barrier of all streams.
func (p *product) iteration(parity int) error {
	return errors.Join(p.queue.Broadcast(parity), p.queue.Multiply(parity), p.queue.Reduce(parity), p.queue.Barrier())
}

// Method makes a method ready.
func (p *product) Method(name string) (compare.Method, error) {
	if name == compare.Ranks {
		return compare.ByRanks(p.World, p.Shared), nil
	}
	if p.queue == nil {
		q, err := p.NewStreams(sparse.Launches{Product: func(*sparse.Block, int) int { return sparse.Product }, Total: p.total})
		if err != nil {
			return nil, err
		}
		p.queue, q.Iteration = q, p.iteration
	}
	return p.queue.Method(name), nil
}

// Ranks returns how many a device has.
func (p *product) Ranks() int { return p.World.Ranks() }

// work is what a product takes, with the barrier of all and, where there are several blocks, that of a device, and with
// the sum of all products.
func (p *product) work() sparse.Work { return p.Work(1+min(1, p.Side-1), 3) }

// Model is what an iteration takes by that.
func (p *product) Model() float64 { return p.Takes(p.work()) }

// String says what is multiplied, and what that takes.
func (p *product) String() string { return fmt.Sprintf("%v; %v", p.Blocks, p.work()) }

// input is an element of one of the two inputs.
func (p *product) input(i int, element int64) float64 {
	return p.data.Number(compare.Hash(uint64(element), 1<<32+uint64(i)), 8)
}

// Reset gives the inputs to the first row of blocks, and NaN to all else.
func (p *product) Reset() error {
	return p.Blocks.Reset(func(b *sparse.Block, i int) func(int64) float64 {
		if b.Row > 0 {
			return nil
		}
		return func(element int64) float64 { return p.input(i, int64(b.Column)*p.N+element) }
	})
}

// Values returns the total of the products of all iterations, which column 0 has.
func (p *product) Values(int) (all []float64, err error) {
	for _, b := range p.All[:p.Side] {
		part, err := compare.Read[float64](p.total(b))
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	return all, nil
}

// Check compares with the rows of the matrix, made again: the same where sums are exact, else within what rounding can
// do to either (Higham 2002, 3.1).
func (p *product) Check(_ context.Context, values []float64, iterations int) (string, error) {
	for i := len(p.references); i < 2; i++ {
		x := make([]float64, p.Rows())
		for k := range x {
			x[k] = p.input(i, int64(k))
		}
		var r reference
		r.product, r.magnitude, r.terms = p.Apply(x)
		p.references = append(p.references, r)
	}
	even, odd := float64((iterations+1)/2), float64(iterations/2) // how often each input is multiplied
	worst := 0.0
	for i, v := range values {
		a, b := p.references[0], p.references[1]
		want, bound := even*a.product[i]+odd*b.product[i], 0.0
		if p.data == compare.Reals {
			bound = 2.01 * float64(a.terms+int64(iterations)) * 0x1p-53 * (even*a.magnitude[i] + odd*b.magnitude[i])
		}
		off := math.Abs(v - want)
		if !(off <= bound) {
			return "", fmt.Errorf("row %d is %v, the reference %v, which may differ by %.1e", i, v, want, bound)
		}
		worst = max(worst, off)
	}
	return fmt.Sprintf("%d rows, at most %.1e from the reference", len(values), worst), nil
}

func newProgram() compare.Program {
	var s settings
	return compare.Program{Name: "spmv", PerMultiprocessor: 4, Flags: s.flags, Check: s.check, Scales: s.Scales, New: s.open}
}

func main() { compare.Main(newProgram()) }
