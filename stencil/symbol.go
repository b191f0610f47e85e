package stencil

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/halox/halox/domain"
)

// A coupling is a field at an offset.
type coupling struct {
	field  int
	offset domain.Vec
}

// StableSystem returns the largest step of a Runge-Kutta method, whose order is the number of its stages, for which no
// wave of the linear part of a system grows faster than the system lets it grow, by von Neumann analysis: the
// amplification of each eigenvalue of the symbol of the rates of the fields, at sampled wave numbers. With order 0, the
// formulas are second derivatives and the method is leapfrog. The linear part is the sums of fields at offsets times
// numbers or expressions of coordinates, of which the value with the largest magnitude is taken. Other terms that read
// only the point are ignored, others are an error, of the formula at the returned index. If no wave bounds the step,
// the result is +Inf.
func (s *Sheet) StableSystem(rates []int, order int) (stable float64, failed int, err error) {
	part := linearPart{Sheet: s, known: map[int]map[coupling]float64{}}
	s.Ignored = nil
	for i, rate := range rates {
		if part.of(rate) == nil {
			return 0, i, ErrNoBound
		}
	}
	stable, err = part.stableStep(rates, order)
	return stable, 0, err
}

// stableStep returns the bound of StableSystem.
func (part *linearPart) stableStep(rates []int, order int) (float64, error) {
	values, largest, growth := []complex128(nil), 0.0, 0.0
	n := len(rates)
	symbol := mat.NewDense(2*n, 2*n, nil) // of complex numbers as real matrices of size 2: each eigenvalue also conjugate
	couplings := make([][]coupling, n)    // in one order, so that all processes get the same bits
	for i, rate := range rates {
		couplings[i] = slices.SortedFunc(maps.Keys(part.known[rate]), func(a, b coupling) int {
			return cmp.Or(cmp.Compare(a.field, b.field), slices.Compare(a.offset[:], b.offset[:]))
		})
	}
	for _, wave := range part.waves() {
		for i, rate := range rates {
			sum := make([]complex128, n)
			for _, c := range couplings[i] {
				phase := 0.0
				for a, d := range c.offset {
					phase += wave[a] * float64(d)
				}
				sum[c.field] += cmplx.Rect(part.known[rate][c], phase)
			}
			for k, v := range sum {
				symbol.Set(i, k, real(v))
				symbol.Set(n+i, n+k, real(v))
				symbol.Set(i, n+k, -imag(v))
				symbol.Set(n+i, k, imag(v))
			}
		}
		of := eigenvalues(symbol)
		if of == nil {
			return 0, ErrNoBound
		}
		for _, v := range of {
			values, largest, growth = append(values, v), max(largest, cmplx.Abs(v)), max(growth, real(v))
		}
	}
	stable := math.Inf(1)
	for _, v := range values {
		if size := cmplx.Abs(v); size > 1e-9*largest { // others are rounding errors of 0
			stable = min(stable, reachOf(v/complex(size, 0), size, order))
		}
	}
	switch {
	case growth > 0.99*largest && growth > 0: // and more with a smaller spacing
		return 0, errBackward
	case stable == 0 && order == 0:
		return 0, errors.New("is unstable with leapfrog: waves of the linear part must oscillate")
	case stable == 0:
		return 0, errUnstable
	}
	return stable, nil
}

// eigenvalues returns the eigenvalues of a matrix, nil if they are not found. Gonum 0.17 sometimes panics for a matrix
// with equal eigenvalues (Dhseqr, after Dlahqr did not converge). Those of the matrix plus a multiple of the identity
// are then found.
func eigenvalues(m *mat.Dense) []complex128 {
	n, _ := m.Dims()
	for _, share := range []float64{0, 0.37, -0.59} {
		shift, shifted := share*mat.Norm(m, 1), mat.DenseCopyOf(m)
		for i := range n {
			shifted.Set(i, i, m.At(i, i)+shift)
		}
		if all := factorized(shifted); all != nil {
			for i := range all {
				all[i] -= complex(shift, 0)
			}
			return all
		}
	}
	return nil
}

// factorized returns the eigenvalues of a matrix, nil if gonum fails.
func factorized(m *mat.Dense) (all []complex128) {
	defer func() {
		if recover() != nil {
			all = nil
		}
	}()
	var eigen mat.Eigen
	if !eigen.Factorize(m, mat.EigenNone) {
		return nil
	}
	return eigen.Values(nil)
}

// waves returns wave numbers in radians per point: 12 per axis, or half of them along the last axis, since the symbol
// of the opposite wave is the conjugate.
func (s *Sheet) waves() (all [][3]float64) {
	const samples = 12
	var count [3]int
	for a := range count {
		count[a] = 1
		if a < s.axes {
			count[a] = samples
		}
	}
	count[s.axes-1] = samples/2 + 1
	for i := range count[0] {
		for j := range count[1] {
			for k := range count[2] {
				const unit = 2 * math.Pi / samples
				all = append(all, [3]float64{unit * float64(i), unit * float64(j), unit * float64(k)})
			}
		}
	}
	return all
}

// reachOf returns the largest stable step for u' = size*direction*u or, with order 0, its second derivative.
func reachOf(direction complex128, size float64, order int) float64 {
	const tolerance = 1e-13
	if order == 0 { // u(n+1) - 2u(n) + u(n-1) = dt^2*value*u(n)
		switch {
		case math.Abs(imag(direction)) > 1e-6: // one of the roots is larger than 1
			return 0
		case real(direction) > 0:
			return math.Inf(1)
		}
		return 2 / math.Sqrt(size)
	}
	stable := func(z complex128) bool {
		growth, term := complex(1, 0), complex(1, 0)
		for i := range order {
			term *= z / complex(float64(i+1), 0)
			growth += term
		}
		return cmplx.Abs(growth) <= max(1, math.Exp(real(z)))+tolerance
	}
	const first, least, most = 1.0 / 32, 1e-3, 4 // all stability regions end before the last
	low, high := 0.0, first
	for stable(complex(high, 0) * direction) {
		if low, high = high, high+first; high > most {
			return math.Inf(1)
		}
	}
	for range 40 {
		if middle := (low + high) / 2; stable(complex(middle, 0) * direction) {
			low = middle
		} else {
			high = middle
		}
	}
	if low < least { // rounding errors hide the growth of smaller steps
		return 0
	}
	return low / size
}

// A linearPart finds the linear part of formulas.
type linearPart struct {
	*Sheet
	known map[int]map[coupling]float64 // nil for a step with differences that are not linear
}

// of returns the factors of the fields in a step, without terms that read only the point and are not linear.
func (p *linearPart) of(at int) map[coupling]float64 {
	all, ok := p.known[at]
	if !ok {
		if all = p.find(at); all == nil && p.atPoint(at) {
			all = map[coupling]float64{}
			p.ignore(1, at)
		}
		p.known[at] = all
	}
	return all
}

func (p *linearPart) find(at int) map[coupling]float64 {
	st, all := p.b.steps[at], map[coupling]float64{}
	if !st.fields {
		return all
	}
	if st.leaf == readLeaf && st.field >= len(p.fields) {
		return nil
	}
	if st.leaf == readLeaf {
		return map[coupling]float64{{st.field, st.offset}: 1}
	}
	add := func(term int, factor float64) bool {
		terms := p.of(term)
		for c, f := range terms {
			all[c] += factor * f
		}
		return terms != nil
	}
	ok := false
	switch a, b := st.args[0], st.args[1]; {
	case st.op == sum:
		ok = add(a, 1) && add(b, 1)
	case st.op == difference:
		ok = add(a, 1) && add(b, -1)
	case st.op == negation:
		ok = add(a, -1)
	case st.op == product && !p.b.steps[a].fields:
		factor, _, known := p.largest(a)
		ok = known && add(b, factor)
	case st.op == product && !p.b.steps[b].fields:
		factor, _, known := p.largest(b)
		ok = known && add(a, factor)
	case st.op == quotient && p.isNumber(b):
		ok = add(a, 1/p.b.steps[b].value)
	}
	if !ok {
		return nil
	}
	return all
}
