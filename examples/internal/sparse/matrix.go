// Package sparse is what the examples with sparse matrices share: a matrix in square blocks, its blocks on devices, and
// its product with a vector by ranks and by streams, as Kuster (2017) cuts it.
package sparse

import (
	"math"

	"github.com/halox/halox/examples/internal/compare"
)

// Matrix is a square matrix of Side x Side blocks of N x N elements, of which each row of a block has PerRow entries in
// the mean. Entries are made of hashes: those of any row can be made again.
type Matrix struct {
	N, PerRow int64
	Side      int
	Data      compare.Data // the values are integers of up to 4, or reals

	// Stochastic has each row of a block have PerRow entries of 1, 2 and 3 that add up to 2 PerRow. The largest
	// eigenvalue is then 2 PerRow Side, and its eigenvector has equal elements.
	Stochastic bool

	Rates Rates // for the model
}

// Rows returns how many rows the matrix has.
func (m *Matrix) Rows() int64 { return m.N * int64(m.Side) }

// Eigenvalue returns the largest eigenvalue of a stochastic matrix.
func (m *Matrix) Eigenvalue() float64 { return float64(2 * m.PerRow * int64(m.Side)) }

// entries returns how many a row of the matrix has in a column of blocks: PerRow, or that and up to about half more or
// less.
func (m *Matrix) entries(row int64, column int) int64 {
	n := m.PerRow
	if half := (n + 1) / 2; !m.Stochastic {
		n += int64(compare.Hash(uint64(row), uint64(column))%uint64(2*half+1)) - half
	}
	return min(n, m.N)
}

// row appends the entries of a row of the matrix in a column of blocks: columns within the block, in order, and values.
// One lies in each of as many equal parts of the row.
func (m *Matrix) row(columns []int32, values []float64, row int64, column int) ([]int32, []float64) {
	n := m.entries(row, column)
	last := 0.0
	for i := range n {
		h := compare.Hash(uint64(row), uint64(i)<<16|uint64(column)|1<<15)
		lo, hi := i*m.N/n, (i+1)*m.N/n
		columns = append(columns, int32(lo+int64(h>>33)%(hi-lo)))
		switch {
		case !m.Stochastic:
			last = m.Data.Number(compare.Hash(h, 1), 4)
		case i%2 == 1:
			last = 4 - last
		case i == n-1:
			last = 2
		default:
			last = float64(1 + h%3)
		}
		values = append(values, last)
	}
	return columns, values
}

// Apply returns the product with a vector, a row after the other, and the sums of the magnitudes of what is added up for
// each row. terms is the most that a row has.
func (m *Matrix) Apply(x []float64) (y, magnitude []float64, terms int64) {
	y, magnitude = make([]float64, m.Rows()), make([]float64, m.Rows())
	compare.Parallel(m.Rows(), func(lo, hi int64) {
		var columns []int32
		var values []float64
		for row := lo; row < hi; row++ {
			for j := range m.Side {
				columns, values = m.row(columns[:0], values[:0], row, j)
				for i, c := range columns {
					term := float64(values[i] * x[int64(j)*m.N+int64(c)])
					y[row] += term
					magnitude[row] += math.Abs(term)
				}
			}
		}
	})
	return y, magnitude, int64(m.Side) * (m.PerRow + (m.PerRow+1)/2)
}
