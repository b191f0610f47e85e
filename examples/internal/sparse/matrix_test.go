package sparse

import (
	"math"
	"testing"

	"github.com/halox/halox/examples/internal/compare"
)

// A row has different columns in order, as many as its hash says, about PerRow in the mean, and the values of its kind.
func TestRows(t *testing.T) {
	for _, m := range []Matrix{
		{N: 1, PerRow: 1, Side: 2, Data: compare.Integers},
		{N: 50, PerRow: 1, Side: 2, Data: compare.Integers},
		{N: 1000, PerRow: 32, Side: 3, Data: compare.Reals},
		{N: 77, PerRow: 77, Side: 1, Data: compare.Integers},
		{N: 500, PerRow: 7, Side: 3, Stochastic: true},
		{N: 500, PerRow: 8, Side: 1, Stochastic: true},
	} {
		entries, distinct := int64(0), map[float64]bool{}
		for row := range m.Rows() {
			for j := range m.Side {
				columns, values := m.row(nil, nil, row, j)
				if n := m.entries(row, j); n != int64(len(columns)) || n != int64(len(values)) {
					t.Fatalf("%+v: row %d has %d columns and %d values, want %d", m, row, len(columns), len(values), n)
				}
				entries += int64(len(columns))
				sum := 0.0
				for i, c := range columns {
					if c < 0 || int64(c) >= m.N || i > 0 && c <= columns[i-1] {
						t.Fatalf("%+v: row %d has columns %v", m, row, columns)
					}
					v := values[i]
					sum += v
					distinct[v] = true
					switch {
					case m.Stochastic && (v < 1 || v > 3), !m.Stochastic && math.Abs(v) > 4, m.Data != compare.Reals && v != math.Trunc(v):
						t.Fatalf("%+v: row %d has value %v", m, row, v)
					}
				}
				if m.Stochastic && sum != float64(2*m.PerRow) {
					t.Fatalf("%+v: row %d adds up to %v", m, row, sum)
				}
			}
		}
		mean := float64(entries) / float64(m.Rows()*int64(m.Side))
		if m.N > 1 && m.PerRow < m.N && math.Abs(mean/float64(m.PerRow)-1) > 0.15 {
			t.Errorf("%+v: %v entries a row", m, mean)
		}
		if m.N > 1 && len(distinct) < 3 {
			t.Errorf("%+v: values %v", m, distinct)
		}
	}
}

// Apply is the product of a dense matrix.
func TestApply(t *testing.T) {
	m := Matrix{N: 13, PerRow: 4, Side: 3, Data: compare.Integers}
	x, want, size := make([]float64, m.Rows()), make([]float64, m.Rows()), make([]float64, m.Rows())
	for i := range x {
		x[i] = float64(i%5 - 2)
	}
	for row := range m.Rows() {
		dense := make([]float64, m.Rows())
		for j := range m.Side {
			columns, values := m.row(nil, nil, row, j)
			for i, c := range columns {
				dense[int64(j)*m.N+int64(c)] = values[i]
			}
		}
		for i, v := range dense {
			want[row] += v * x[i]
			size[row] += math.Abs(v * x[i])
		}
	}
	y, magnitude, terms := m.Apply(x)
	for i := range y {
		if y[i] != want[i] || magnitude[i] != size[i] {
			t.Errorf("row %d is %v of %v, want %v of %v", i, y[i], magnitude[i], want[i], size[i])
		}
	}
	if terms != 3*6 {
		t.Errorf("%d terms", terms)
	}
}
