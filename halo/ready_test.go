package halo_test

import (
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
)

// What was made ready allocates nothing when it is queued, and gives all memory
// back when it is closed.
func TestReadyWorkMakesNothing(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{8, 8, 8}, [3]bool{true, false, false}, domain.Vec{1, 2, 1})
	s := star(3)
	s.Element, s.Components = halo.Complex128, 2
	f := openField(t, p, s)
	at := openStreams(t, p)
	plan := must(halo.NewPlan(p, set.Links, p2p.Auto, s))(t)
	before := p.Devices[0].Held()
	walls := must(boundary.New(set.Compiler, f, boundary.Faces{
		2: {Kind: boundary.Dirichlet, Values: []float64{1}}, 3: {Kind: boundary.Neumann},
	}))(t)
	reverse := must(halo.NewAccumulator(plan, set.Compiler, f))(t)
	sum := must(halo.NewReduction(f, set.Compiler, halo.Sum))(t)
	for name, queue := range map[string]func() error{
		"walls":            func() error { return walls.Set(at) },
		"reverse exchange": func() error { return reverse.Exchange(at) },
		"reduction":        func() error { return sum.Queue(at) },
		"result":           func() error { sum.Result(); return nil },
	} {
		n := testing.AllocsPerRun(20, func() { done(t, at, queue()) })
		if base := testing.AllocsPerRun(20, func() { done(t, at, nil) }); n > base {
			t.Errorf("%s: %v allocations", name, n-base)
		}
	}
	for _, c := range []interface{ Close() error }{walls, reverse, sum} {
		done(t, at, c.Close(), c.Close())
	}
	if after := p.Devices[0].Held(); after != before {
		t.Errorf("%+v before, %+v after", before, after)
	}
}
