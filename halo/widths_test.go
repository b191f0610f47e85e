package halo_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// d3q19 is the populations of a lattice Boltzmann method; each moves in one direction and needs ghosts only
// there.
func d3q19() halo.Spec {
	s := halo.Spec{Name: "f", Element: halo.Float64, SoA: true, Connectivity: halo.Edges, Widths: make([]domain.Radius, 1)}
	for _, c := range domain.Directions(3)[:18] {
		var w domain.Radius
		for a := range 3 {
			w.Minus[a], w.Plus[a] = max(0, c[a]), max(0, -c[a])
		}
		s.Widths = append(s.Widths, w)
	}
	s.Components = len(s.Widths)
	return s
}

// Components with their own widths send only what their ghosts need.
func TestWidthsOfComponents(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		p := place(t, set, []int{32, 32, 16}, [3]bool{true, true, true}, domain.Vec{1, 1, 4})
		own, all := d3q19(), d3q19()
		all.Widths, all.Width = nil, domain.UniformRadius(3, 1)
		if len(set.Devices) == 4 {
			for bytes, s := range map[int64]halo.Spec{335872: own, 1400832: all} {
				if got := must(halo.NewPlan(p, set.Links, p2p.Auto, s))(t).Bytes(); got != bytes {
					t.Errorf("%d bytes, want %d", got, bytes)
				}
			}
		}
		exchangeCases(t, set, []exchangeCase{
			{"d3q19", []int{32, 32, 16}, [3]bool{true, true, true}, domain.Vec{1, 1, 4}, []halo.Spec{own, star(3)}},
		}, "exchange", "start")
	})
}

// All arrays of a field are as wide as its widest component, and Specs with and without Widths differ.
func TestSpecsWithWidths(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{8, 8, 8}, [3]bool{true, true, true}, domain.Vec{1, 1, 2})
	f := must(halo.NewField(p, d3q19()))(t)
	defer f.Close()
	if f.Spec.Width != domain.UniformRadius(3, 1) || f.Parts[0].Layout.Width != f.Spec.Width {
		t.Errorf("the field has width %v", f.Spec.Width)
	}
	other, filled := d3q19(), d3q19()
	other.Widths, filled.Width = nil, domain.UniformRadius(3, 1)
	other.Width = filled.Width
	if !f.Spec.Covers(d3q19()) || !d3q19().Covers(filled) || f.Spec.Covers(other) || !other.Covers(f.Spec) {
		t.Error("specs are not compared by meaning")
	}
	if _, err := halo.NewExchanger(must(halo.NewPlan(p, set.Links, p2p.Auto, other))(t), set.Compiler, f); err == nil {
		t.Error("a field with widths was accepted for one without")
	}
	one := must(f.Component(1))(t)
	if len(one.Spec.Widths) != 1 || one.Spec.Widths[0] != d3q19().Widths[1] {
		t.Errorf("component 1 has widths %v", one.Spec.Widths)
	}
	if wide := must(halo.NewWideHalo(p.Decomposition, domain.UniformRadius(3, 1), 2))(t).Spec(f.Spec); wide.Widths != nil {
		t.Errorf("several steps per exchange with widths %v", wide.Widths)
	}
}

// Sizes that do not fit in 64 bits, and invalid widths, are rejected.
func TestInvalidSpecs(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{8, 8}, [3]bool{true, false}, domain.Vec{1, 2, 1})
	wide := domain.UniformRadius(2, 1)
	for name, c := range map[string]struct {
		says string
		spec halo.Spec
	}{
		"arrays without end":        {"at most 65536", halo.Spec{SoA: true, Components: 1<<58 + 1}},
		"components without end":    {"a point must have at most", halo.Spec{Components: math.MaxInt / 4}},
		"large arrays":              {"at most 2^60", halo.Spec{Element: domain.Bytes(1 << 42), SoA: true, Components: 1 << 16}},
		"negative width":            {"width", halo.Spec{Width: domain.Radius{Minus: domain.Vec{-1}}}},
		"a negative width":          {"width", halo.Spec{SoA: true, Components: 2, Widths: []domain.Radius{wide, {Plus: domain.Vec{0, -1}}}}},
		"too few widths":            {"if SoA), got 1", halo.Spec{SoA: true, Components: 2, Widths: []domain.Radius{wide}}},
		"widths of adjacent values": {"if SoA), got 2", halo.Spec{Components: 2, Widths: []domain.Radius{wide, wide}}},
		"a width beyond":            {"needs 5", halo.Spec{SoA: true, Widths: []domain.Radius{domain.UniformRadius(2, 5)}}},
		"a width along z":           {"along z", halo.Spec{SoA: true, Widths: []domain.Radius{domain.UniformRadius(3, 1)}}},
	} {
		if c.spec.Name = "u"; c.spec.Element == "" {
			c.spec.Element = halo.Float64
		}
		_, err := halo.NewField(p, c.spec)
		_, planned := halo.NewPlan(p, set.Links, p2p.Auto, c.spec)
		for _, err := range []error{err, planned} {
			refuses(t, name, err, c.says)
		}
	}
}

// jacobi is a run of sweeps with wide ghosts and two alternating fields.
type jacobi struct {
	t      *testing.T
	set    *testdevices.Set
	deep   *halo.WideHalo
	at     []*streams.Stream
	fields [2]*halo.Field
	walls  [2]*boundary.Ghosts
	x      [2]*halo.Exchanger
}

func newJacobi(t *testing.T, set *testdevices.Set, p *halo.Placement, steps int) *jacobi {
	dims := p.Grid.Dims
	j := &jacobi{t: t, set: set, deep: must(halo.NewWideHalo(p.Decomposition, domain.UniformRadius(dims, 1), steps))(t)}
	spec := j.deep.Spec(halo.Spec{Name: "u", Element: halo.Float64})
	plan := must(halo.NewPlan(p, set.Links, p2p.Auto, spec))(t)
	walls := boundary.All(boundary.Condition{Kind: boundary.Outflow})
	for i := 1; i < len(walls); i += 3 {
		walls[i] = boundary.Condition{Kind: boundary.Dirichlet, Values: []float64{float64(i)}}
	}
	j.at = openStreams(t, p)
	for i := range j.fields {
		j.fields[i] = openField(t, p, spec)
		j.walls[i] = open(boundary.New(set.Compiler, j.fields[i], walls))(t)
		j.x[i] = open(halo.NewExchanger(plan, set.Compiler, j.fields[i]))(t)
	}
	all := p.Grid.Box()
	var values []float64
	eachPoint(all, func(at domain.Vec) { values = append(values, 1/(1+scatter(0, 0, 0, at))) })
	done(t, nil, halo.Write(j.fields[0], all, values))
	return j
}

// run sweeps and returns the field.
func (j *jacobi) run(steps int) []float64 {
	dims := j.deep.Cut.Grid.Dims
	star := must(stencil.Laplace([]float64{0.1, 0.2, 0.3}[:dims]))(j.t)
	point, accesses, err := sweep.Linear(star.Stencil(), domain.Float64)
	test.Check(j.t, err)
	exchange := func(step int) error { return j.x[step%2].Exchange(j.at) }
	done(j.t, j.at, j.deep.Run(steps, exchange, func(step, rank int, region domain.Box) error {
		from, to := j.fields[step%2].Parts[rank], j.fields[(step+1)%2].Parts[rank]
		if err := j.walls[step%2].SetOn(rank, j.at[rank], 0, 0); err != nil {
			return err
		}
		sweeper := must(sweep.New(j.set.Compiler, j.fields[0].Placement.Devices[rank], point, accesses))(j.t)
		l := open(sweeper.Sweep("sweep", sweep.Arrays{{from}, {to}}, region))(j.t)
		return j.at[rank].Launch(l.Kernel)
	}))
	all := j.deep.Cut.Grid.Box()
	got := make([]float64, all.Points())
	test.Check(j.t, halo.Read(got, j.fields[steps%2], all))
	return got
}

// Sweeps with 1, 2 or 3 steps between two exchanges, on one subdomain or several, are bitwise identical.
func TestWideHalosAreBitwiseIdentical(t *testing.T) {
	const steps = 8
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		for _, c := range []struct {
			name     string
			size     []int
			periodic [3]bool
			parts    []domain.Vec
		}{
			{"walls", []int{13, 11}, [3]bool{}, []domain.Vec{{1, 1, 1}, {1, 3, 1}, {3, 2, 1}}},
			{"periodic", []int{13, 11}, [3]bool{true, true, false}, []domain.Vec{{1, 1, 1}, {1, 3, 1}, {3, 2, 1}}},
			{"boundaries and a periodic axis", []int{7, 8, 9}, [3]bool{false, true, false}, []domain.Vec{{1, 1, 1}, {1, 1, 3}, {2, 2, 2}}},
			{"periodic in three", []int{7, 8, 9}, [3]bool{true, true, true}, []domain.Vec{{1, 1, 1}, {2, 2, 2}}},
		} {
			var want []float64
			for _, parts := range c.parts {
				for _, k := range []int{1, 2, 3} {
					t.Run(fmt.Sprintf("%s/parts=%v/steps=%d", c.name, parts, k), func(t *testing.T) {
						got := newJacobi(t, set, place(t, set, c.size, c.periodic, parts), k).run(steps)
						if want == nil {
							want = got
						}
						for i := range got {
							if got[i] != want[i] {
								t.Fatalf("point %d is %v, not %v", i, got[i], want[i])
							}
						}
					})
				}
			}
		}
	})
}

// Regions shrink towards the owned box, in each direction by its radius, and never extend beyond a physical
// boundary.
func TestWideHaloRegions(t *testing.T) {
	g := must(domain.NewGrid([]int{20, 20}, []bool{true, false}))(t)
	cut := must(domain.Decompose(g, domain.Vec{1, 2, 1}))(t)
	radius := domain.Radius{Minus: domain.Vec{1, 1, 0}, Plus: domain.Vec{2, 3, 0}}
	wide := must(halo.NewWideHalo(cut, radius, 3))(t)
	for _, c := range []struct {
		rank, step int
		want       domain.Box
	}{
		{0, 0, domain.Box{Lo: domain.Vec{-2, 0, 0}, Hi: domain.Vec{24, 16, 1}}},
		{0, 1, domain.Box{Lo: domain.Vec{-1, 0, 0}, Hi: domain.Vec{22, 13, 1}}},
		{0, 2, domain.Box{Lo: domain.Vec{0, 0, 0}, Hi: domain.Vec{20, 10, 1}}},
		{1, 0, domain.Box{Lo: domain.Vec{-2, 8, 0}, Hi: domain.Vec{24, 20, 1}}},
		{1, 2, domain.Box{Lo: domain.Vec{0, 10, 0}, Hi: domain.Vec{20, 20, 1}}},
	} {
		if got := wide.Region(c.rank, c.step); got != c.want {
			t.Errorf("rank %d, step %d: %v, not %v", c.rank, c.step, got, c.want)
		}
	}
	if w := wide.Width(); w.Minus != (domain.Vec{3, 3, 0}) || w.Plus != (domain.Vec{6, 9, 0}) {
		t.Errorf("width %v", w)
	}
	for says, err := range map[string]error{
		"at least 1":            errorOf(halo.NewWideHalo(cut, radius, 0)),
		"owns 10 layers":        errorOf(halo.NewWideHalo(cut, radius, 4)),
		"4 steps between two e": errorOf(halo.NewWideHalo(cut, radius, 4)),
		"radius must not be n":  errorOf(halo.NewWideHalo(cut, domain.Radius{Plus: domain.Vec{0, -1, 0}}, 1)),
		"fewer than 2^31 layer": errorOf(halo.NewWideHalo(cut, domain.UniformRadius(2, 2), 1<<62)),
	} {
		refuses(t, says, err, says)
	}
}
