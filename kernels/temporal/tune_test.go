package temporal

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/stencil"
)

// Passes that would read more ghosts than arrays have are not tried, and not made afterwards.
func TestTuneKeepsToTheGhosts(t *testing.T) {
	eachGPU(t, 1, func(t *testing.T, set *testdevices.Set) {
		b := kerneltest.NewBench(t, set)
		s := test.Must(stencil.HeatOf(stencil.Kinds(2)[0], []float64{0.1, 0.1}, 1, 1e-3))(t)
		for ghosts := 1; ghosts <= 3; ghosts++ {
			t.Run(fmt.Sprintf("ghosts=%d", ghosts), func(t *testing.T) {
				box := domain.Box{Hi: domain.Vec{37, 41, 1}}
				width := domain.Radius{Minus: domain.Vec{ghosts, ghosts}, Plus: domain.Vec{ghosts, ghosts}}
				l := test.Must(domain.NewLayout(box, width, 8))(t)
				from, to := array(b, l, make([]float64, l.Length)), array(b, l, make([]float64, l.Length))
				fixed := Sides{Fixed, Fixed, Fixed, Fixed}
				slow, _, err := test.Must(New(b.Compiler, b.Device, s, kernels.Float64, l, Options{}))(t).Pass("slow", from, to, box, fixed, 2, More{})
				test.Check(t, err)
				defer func() { b.Do(slow.Close()) }()
				passes := test.Must(New(b.Compiler, b.Device, s, kernels.Float64, l, Options{}))(t)
				test.Check(t, passes.Tune(slow, from, to, box, Sides{}, More{}, time.Millisecond))
				for depth, cost := range passes.Costs() {
					if depth > ghosts && depth > 1 && !math.IsInf(cost, 1) {
						t.Errorf("there are passes of %d steps, which read %d ghosts of %d", depth, depth, ghosts)
					}
				}
				if _, _, err := passes.Pass("deep", from, to, box, Sides{}, ghosts+1, More{}); err == nil {
					t.Errorf("a pass of %d steps reads %d ghosts", ghosts+1, ghosts)
				}
			})
		}
	})
}

// A box that a kernel has no launch for is one that it cannot do, not a failure: Tune and scheme auto go on to others.
func TestBoxesTooLongForPasses(t *testing.T) {
	for _, s := range stencils(t) {
		one, ok := generalShape(s, kernels.Float64, 2, 227<<10, Options{})
		if s.Dims != 3 || !ok {
			continue
		}
		if _, _, err := one.grid(domain.Vec{8, 4300000, 8}, 0, 132); !errors.Is(err, ErrImpossible) {
			t.Errorf("%v: %v", s, err)
		}
	}
	test.Is(t, checkLength(domain.Vec{maxAxis + 1, 4, 1}), ErrImpossible)
	test.Report(t, checkLength(domain.Vec{maxAxis, 4, 1}))
}
