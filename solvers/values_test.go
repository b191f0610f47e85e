package solvers

import (
	"context"
	"runtime"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
)

// valued returns a problem with an initial field, with value 0 at the boundaries.
func valued(t *testing.T, size []int, initial string) *Problem {
	t.Helper()
	grid := must(domain.NewGrid(size, nil))(t)
	p := &Problem{Grid: grid, Spacing: []float64{1, 1, 1}[:len(size)], Element: domain.Float64}
	p.Stencil = must(stencil.LaplaceOf(stencil.Kind{Points: 1 + 2*len(size), Shape: "star"}, p.Spacing))(t)
	p.Initial = parse(t, initial)
	for i := range p.Boundary {
		p.Boundary[i] = Condition{Kind: Dirichlet, Value: parse(t, "0")}
	}
	return p
}

// Bad values are found everywhere; on a grid with many points at the rows that are checked.
func TestCheckValues(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	testdevices.Once(t)
	for _, tc := range []struct {
		name, initial string
		size          []int
		says          string
	}{
		{"finite", "i+j+k", []int{9, 8, 7}, ""},
		{"one point", "1/(abs(i-3)+abs(j-5)+abs(k-2))", []int{9, 8, 7}, "initial is +Inf at point [3 5 2]"},
		{"the last point", "1/(abs(i-8)+abs(j-7))", []int{9, 8}, "initial is +Inf at point [8 7 0]"},
		{"a large plane", "1/(i-123)", []int{20000, 20000}, "initial is +Inf at point [123 "},
		{"a large cube", "1/(k-1999)", []int{2000, 2000, 2000}, "initial is +Inf at point [0 "},
		{"a row of many parts", "1/(i-199998)", []int{200000, 3}, "initial is +Inf at point [199998 0 0]"},
		{"few and long rows", "1/(2^39-1-i)", []int{1 << 39, 4}, "initial is +Inf at point [549755813887 0 0]"},
		{"long rows of a beam", "i", []int{1 << 40, 16, 16}, ""},
		{"a long beam", "1/(k-2^40+1)", []int{16, 16, 1 << 40}, "initial is +Inf at point [0 0 1099511627775]"},
		{"a long plate", "1/(j-2^36+1)", []int{16, 1 << 36, 16}, "initial is +Inf at point [0 68719476735 0]"},
		{"a grid too large for any memory", "i+k", []int{100, 1 << 20, 1 << 20}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := valued(t, tc.size, tc.initial).CheckValues(t.Context())
			wants(t, err, nil, tc.says)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	test.Is(t, valued(t, []int{9, 9}, "0").CheckValues(ctx), context.Canceled)
}

// Of several values that are not finite the first is named, however the goroutines divide the work.
func TestFirstOfSeveralValues(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	set := testdevices.Host(t, 2)
	for _, tc := range []struct {
		name, initial string
		wall          int
		says          string
	}{
		{"everywhere", "log(-1)", -1, "initial is NaN at point [0 0 0]"},
		{"from a row on", "1/max(0, 20-j-k)", -1, "initial is +Inf at point [0 18 2]"},
		{"a face of x", "0", 0, "the value at face x- is NaN at point [-1 0 0]"},
		{"a face of y", "0", 3, "the value at face y+ is NaN at point [0 19 0]"},
		{"a face of z", "log(10-k)", 4, "initial is -Inf at point [0 0 10]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := valued(t, []int{3, 19, 18}, tc.initial)
			if tc.wall >= 0 {
				p.Boundary[tc.wall].Value = parse(t, "log(-1)")
			}
			plan := planFor(t, set, p, how{path: p2p.Staged, parts: domain.Vec{1, 1, 2}})
			for range 10 {
				_, filled := New(t.Context(), p, plan, set.Compiler)
				for _, err := range []error{p.CheckValues(t.Context()), filled} {
					wants(t, err, nil, tc.says+",")
				}
			}
		})
	}
}

// An exact solution must be finite at all points after the last step, and only there.
func TestCheckExact(t *testing.T) {
	for _, tc := range []struct{ exact, says string }{
		{"1/(i+1) + 1/(9-i) + 1/(j+1) + 1/(8-j)", ""}, // the ghosts need no value
		{"1/t", ""},
		{"1/(abs(i-3)+abs(j-5)+abs(k-2))", "solvers: exact is +Inf at point [3 5 2] after 10 steps, which is not finite"},
		{"i<8 ? 1 : 0/0", "exact is NaN at point [8 0 0]"},
		{"1/(t-5)", "exact is +Inf at point [0 0 0] after 10 steps"},
	} {
		p := valued(t, []int{9, 8, 7}, "0")
		p.TimeStep = 0.5
		err := p.CheckExact(t.Context(), parse(t, tc.exact), 10)
		wants(t, err, nil, tc.says)
	}
}
