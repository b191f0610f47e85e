package halo_test

import (
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
)

// Objects that are closed or nil are rejected before any use of a device, and the device keeps working.
func TestClosedThingsAreRefused(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := place(t, set, []int{4, 4}, [3]bool{}, domain.Vec{1, 2, 1})
		plan := must(halo.NewPlan(p, set.Links, p2p.Auto, star(2)))(t)
		at := openStreams(t, p)
		live, gone := openField(t, p, star(2)), openField(t, p, star(2))
		one := func(domain.Vec) float64 { return 1 }
		if err := halo.FillPoints(gone, one); err != nil { // makes its stage, which Close frees
			t.Fatal(err)
		}
		wall := boundary.Faces{{Kind: boundary.Dirichlet, Values: []float64{1}}}
		walls := must(boundary.New(set.Compiler, live, wall))(t)
		sum := must(halo.NewReduction(live, set.Compiler, halo.Sum))(t)
		reverse := must(halo.NewAccumulator(plan, set.Compiler, live))(t)
		lost := openField(t, p, star(2)) // closed before the objects that use it
		lostWalls := must(boundary.New(set.Compiler, lost, wall))(t)
		lostSum := must(halo.NewReduction(lost, set.Compiler, halo.Sum))(t)
		lostExchange := must(halo.NewExchanger(plan, set.Compiler, lost))(t)
		lostReverse := must(halo.NewAccumulator(plan, set.Compiler, lost))(t)
		done(t, at, lost.Close(), gone.Close(), gone.Close(), walls.Close(), sum.Close(), reverse.Close())
		if r := sum.Result(); len(r.Floats)+len(r.Ints)+len(r.Complexes) > 0 {
			t.Errorf("a closed reduction returns %v", r)
		}
		const closed = `field "u" is closed`
		for _, c := range []struct {
			name, says string
			err        error
		}{
			{"fill a closed field", closed, halo.FillPoints(gone, one)},
			{"read a closed field", closed, errorOf(halo.ReadAll[float64](gone))},
			{"copy to a closed field", closed, halo.CopyTo(gone, live)},
			{"copy from a closed field", closed, halo.CopyTo(live, gone)},
			{"reduce a closed field", closed, errorOf(halo.Reduce(gone, set.Compiler, halo.Sum))},
			{"boundary of a closed field", closed, errorOf(boundary.New(set.Compiler, gone, wall))},
			{"exchange a closed field", closed, errorOf(halo.NewExchanger(plan, set.Compiler, gone))},
			{"return ghosts of a closed field", closed, errorOf(halo.NewAccumulator(plan, set.Compiler, gone))},
			{"no field", "the field is nil", errorOf(halo.NewAccumulator(plan, set.Compiler, nil))},
			{"queue closed walls", "ghosts of field \"u\" are closed", walls.Set(at)},
			{"queue one of closed walls", "ghosts of field \"u\" are closed", walls.SetOn(0, at[0], 0, 0)},
			{"queue a closed reduction", "sum of field \"u\" is closed", sum.Queue(at)},
			{"reduce a field closed before", closed, lostSum.Queue(at)},
			{"set ghosts of a field closed before", closed, lostWalls.Set(at)},
			{"set fixed ghosts of a field closed before", closed, lostWalls.SetFixed(0, at[0])},
			{"refresh ghosts of a field closed before", closed, lostWalls.Refresh(0, at[0], 0, 0)},
			{"complete ghosts of a field closed before", closed, lostWalls.Complete(0, at[0])},
			{"exchange a field closed before", closed, lostExchange.Exchange(at)},
			{"return ghosts of a field closed before", closed, lostReverse.Exchange(at)},
			{"gather a closed field", closed, halo.Gather(t.Context(), []float64{}, gone, domain.Box{}, 0)},
			{"scatter a closed field", closed, halo.Scatter(t.Context(), gone, domain.Box{}, []float64{}, 0)},
			{"write a closed field", closed, halo.Write(gone, domain.Box{}, []float64{})},
			{"a component of a closed field", closed, errorOf(gone.Component(0))},
			{"a closed reverse exchange", "is closed", reverse.Exchange(at)},
		} {
			refuses(t, c.name, c.err, c.says)
		}
		done(t, at, halo.FillPoints(live, one), set.Devices[0].Err())
		done(t, at, lostWalls.Close(), lostSum.Close(), lostExchange.Close(), lostReverse.Close())
	})
}

// Prepared work allocates nothing when it is queued, and closing it frees all memory.
func TestReadyWorkMakesNothing(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{8, 8, 8}, [3]bool{true, false, false}, domain.Vec{1, 2, 1})
	s := star(3)
	s.Element, s.Components = domain.Complex128, 2
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
