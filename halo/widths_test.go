package halo_test

import (
	"math"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
)

// d3q19 is the populations of a lattice Boltzmann method, each of which streams in one direction:
// what comes from there is all that is read of it.
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

// Components with widths of their own send what their ghosts need and no more.
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

// Fields lie as wide as their widest component, and one with widths is none without.
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
		t.Error("specs are compared otherwise than by what they mean")
	}
	if _, err := halo.NewExchanger(must(halo.NewPlan(p, set.Links, p2p.Auto, other))(t), set.Compiler, f); err == nil {
		t.Error("a field with widths was taken for one without")
	}
	one := must(f.Component(1))(t)
	if len(one.Spec.Widths) != 1 || one.Spec.Widths[0] != d3q19().Widths[1] {
		t.Errorf("component 1 has widths %v", one.Spec.Widths)
	}
	if wide := must(halo.NewWideHalo(p.Decomposition, domain.UniformRadius(3, 1), 2))(t).Spec(f.Spec); wide.Widths != nil {
		t.Errorf("several steps an exchange with widths %v", wide.Widths)
	}
}

// Sizes that do not fit into 64 bits, and widths that make no sense, are refused.
func TestSpecsThatCannotBe(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := place(t, set, []int{8, 8}, [3]bool{true, false}, domain.Vec{1, 2, 1})
	wide := domain.UniformRadius(2, 1)
	for name, c := range map[string]struct {
		says string
		spec halo.Spec
	}{
		"arrays without end":         {"at most 65536", halo.Spec{SoA: true, Components: 1<<58 + 1}},
		"components without end":     {"a point has up to", halo.Spec{Components: math.MaxInt / 4}},
		"large arrays":               {"up to 2^60", halo.Spec{Element: halo.Bytes(1 << 42), SoA: true, Components: 1 << 16}},
		"negative width":             {"width", halo.Spec{Width: domain.Radius{Minus: domain.Vec{-1}}}},
		"a negative width":           {"width", halo.Spec{SoA: true, Components: 2, Widths: []domain.Radius{wide, {Plus: domain.Vec{0, -1}}}}},
		"too few widths":             {"1 widths for 2", halo.Spec{SoA: true, Components: 2, Widths: []domain.Radius{wide}}},
		"widths of what lies closer": {"SoA", halo.Spec{Components: 2, Widths: []domain.Radius{wide, wide}}},
		"a width beyond":             {"needs 5", halo.Spec{SoA: true, Widths: []domain.Radius{domain.UniformRadius(2, 5)}}},
		"a width along z":            {"along z", halo.Spec{SoA: true, Widths: []domain.Radius{domain.UniformRadius(3, 1)}}},
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
