// Power finds the largest eigenvalue of a sparse matrix, and its eigenvector, by power iteration, as Kuster (2017)
// does: the matrix is cut in two dimensions, and in each iteration the vector goes down the columns of blocks, is
// multiplied, added up along the rows, normalised, and handed to the first row again; by ranks that send their own
// parts as soon as they have them, and by streams, which copy whole vectors.
package main

import (
	"context"
	"fmt"
	"math"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/examples/internal/sparse"
)

// maxReference is of how many products of elements a reference is made.
const maxReference = 1 << 31

// first is an element of the vector to begin with: between 1/2 and 3/2.
func first(element int64) float64 {
	return 1 + compare.Reals.Number(compare.Hash(uint64(element), 1<<33), 0)/2
}

// Ranks returns how many a device has.
func (p *iteration) Ranks() int { return p.World.Ranks() }

// work is what an iteration takes: beside the product the sums of squares of column 0, the parts of the vector that return
// to the first row of blocks, and a barrier of a device. The norm takes three hops, while the parts take one more than the
// tree that they go down then.
func (p *iteration) work() sparse.Work {
	depth := 0
	for step := 1; step < p.Side; step *= 2 {
		depth++
	}
	var moves [][2]*sparse.Block
	for row := 1; row < p.Side; row++ {
		moves = append(moves, [2]*sparse.Block{p.Block(row, 0), p.Block(0, row)})
	}
	return p.Work(1+max(1, 3-depth), 1, moves...)
}

// Model is what an iteration takes by that.
func (p *iteration) Model() float64 { return p.Takes(p.work()) }

// String says what is iterated, and what that takes.
func (p *iteration) String() string { return fmt.Sprintf("%v; %v", p.Blocks, p.work()) }

// Reset gives all blocks the first vector, and the factor 1.
func (p *iteration) Reset() error {
	err := p.Blocks.Reset(func(b *sparse.Block, i int) func(int64) float64 {
		if i > 0 {
			return nil
		}
		return func(element int64) float64 { return first(int64(b.Column)*p.N + element) }
	})
	for _, b := range p.All {
		if err == nil {
			err = compare.Fill(b.Extra(factorAt, 8), func(to []float64, _ int64) { to[0] = 1 })
		}
	}
	return err
}

// Values returns the eigenvalue, and the vector. All blocks of a column have the same part of it.
func (p *iteration) Values(iterations int) (all []float64, err error) {
	factor, err := compare.Read[float64](p.All[0].Extra(factorAt, 8))
	if err != nil {
		return nil, err
	}
	all = append(all, 1/factor[0])
	for _, b := range p.All {
		part, err := compare.Read[float64](b.Vector(iterations % 2))
		if err != nil {
			return nil, err
		}
		for i, v := range part {
			v *= factor[0]
			if b.Row == 0 {
				all = append(all, v)
			} else if want := all[1+int64(b.Column)*p.N+int64(i)]; v != want {
				return nil, fmt.Errorf("element %d is %v in row %d of blocks, %v in row 0", int64(b.Column)*p.N+int64(i), v, b.Row, want)
			}
		}
	}
	return all, nil
}

// reference makes the iterations with whole vectors, one element after the other.
func (p *iteration) reference(ctx context.Context, iterations int) ([]float64, error) {
	x := make([]float64, p.Rows())
	for i := range x {
		x[i] = first(int64(i))
	}
	norm := 0.0
	for range iterations {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		x, _, _ = p.Apply(x)
		norm = 0
		for _, v := range x {
			norm += v * v
		}
		norm = math.Sqrt(norm)
		for i := range x {
			x[i] /= norm
		}
	}
	return append([]float64{norm}, x...), nil
}

// Check compares with the reference, where that is not too much work. All terms are positive: what rounding does to
// an element is a share of it, which grows with the terms and the iterations, and norms add that of their sums. The
// eigenvalue is known; how far it is says how far the iteration has come.
func (p *iteration) Check(ctx context.Context, values []float64, iterations int) (string, error) {
	exact := p.Eigenvalue()
	text := fmt.Sprintf("eigenvalue %.17g, %.1e of %g from it", values[0], math.Abs(values[0]/exact-1), exact)
	terms := p.PerRow * int64(p.Side)
	if p.Rows()*terms*int64(iterations) > maxReference {
		return text + "; no reference was made", nil
	}
	if p.expected[iterations] == nil {
		want, err := p.reference(ctx, iterations)
		if err != nil {
			return "", err
		}
		p.expected[iterations] = want
	}
	bound := 4 * float64(int64(iterations)*(terms+5)+p.Rows()+5) * 0x1p-53 // Higham 2002, 3.1
	worst := 0.0
	for i, want := range p.expected[iterations] {
		off := math.Abs(values[i]/want - 1)
		if !(off <= bound) {
			return "", fmt.Errorf("value %d is %v, the reference %v, of which %.1e may differ", i, values[i], want, bound)
		}
		worst = max(worst, off)
	}
	return fmt.Sprintf("%s; %d elements, at most %.1e of one from the reference", text, len(values)-1, worst), nil
}

func newProgram() compare.Program {
	var s sparse.Settings
	return compare.Program{Name: "power", PerMultiprocessor: 4, Flags: s.Flags, Check: func(compare.Options) error { return s.Check() }, Scales: s.Scales, New: open(&s)}
}

func main() { compare.Main(newProgram()) }
