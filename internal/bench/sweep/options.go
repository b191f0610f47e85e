package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// Options say which sweeps are measured: every stencil over the grids of its dimensions, in every
// precision.
type Options struct {
	Stencils           []string // see Stencils
	Precision          []string // see Precisions
	Norms              []string // see Norms
	Sums               []string // how the norms are summed: see sums.Mode
	Points2D, Points3D []int    // along each axis, for stencils of so many dimensions; nil for Points
	Budget             time.Duration
}

// Whether norms are taken.
const (
	withoutNorms = "no"
	withNorms    = "every-step"
)

// Norms returns what Options.Norms may hold: whether norms are taken.
func Norms() []string { return []string{withoutNorms, withNorms} }

// Precisions returns what Options.Precision may hold.
func Precisions() []string { return option.Texts([]kernels.Real{kernels.Float32, kernels.Float64}) }

// Points returns the numbers of points along each axis where the options leave them open.
func Points(dims int) []int {
	if dims == 2 {
		return []int{1024, 2048, 4096, 8192, 16384}
	}
	return []int{64, 128, 256, 512, 768}
}

// Check rejects impossible options. What is named twice is measured once.
func (o *Options) Check() error {
	o.Precision, o.Norms, o.Sums = option.Distinct(o.Precision), option.Distinct(o.Norms), option.Distinct(o.Sums)
	return cmp.Or(
		option.EachOf("stencils", o.Stencils, Stencils()...),
		option.EachOf("precision", o.Precision, Precisions()...),
		option.EachOf("norms", o.Norms, Norms()...),
		option.EachOf("sums", o.Sums, option.Texts(sums.Modes())...),
		o.points("points-2d", 2, &o.Points2D), o.points("points-3d", 3, &o.Points3D),
		option.Time("budget", o.Budget),
	)
}

// points checks the points of stencils of so many dimensions, and fills them in. It rejects them
// where there is no such stencil.
func (o *Options) points(name string, dims int, points *[]int) error {
	used := slices.ContainsFunc(shapes(), func(s shape) bool {
		return s.dims() == dims &&
			slices.Contains(o.Stencils, s.name)
	})
	if *points == nil {
		*points = Points(dims)
	} else if !used {
		return fmt.Errorf("--%s: none of the stencils %s has %d dimensions", name, strings.Join(o.Stencils, ", "), dims)
	}
	*points = option.Distinct(*points)
	return option.Points(name, *points)
}

// shape is a stencil that can be swept.
type shape struct {
	name    string
	kind    stencil.Kind
	spacing []float64 // one number an axis: axes that are alike have one weight
}

func (s shape) dims() int { return len(s.spacing) }

// stencil returns heat's of the shape; Laplace's has as many operations.
func (s shape) stencil() (stencil.Stencil, error) { return stencil.HeatOf(s.kind, s.spacing, 0.1, 0.1) }

// flops returns the operations a point: a product for the centre and for each group of
// points that have one weight, and a sum for each point but one.
func flops(s stencil.Stencil) int { return 1 + len(s.Groups) + s.Points() - 1 }

// shapes are the stencils of package stencil, stars of one step along each axis also with
// a weight for each axis.
func shapes() (all []shape) {
	for _, spacing := range [][]float64{{1, 1}, {1, 1, 1}} {
		points := map[int]bool{}
		for _, kind := range stencil.Kinds(len(spacing)) {
			name := fmt.Sprintf("%d-point", kind.Points)
			if points[kind.Points] {
				name += "-" + string(kind.Shape)
			}
			points[kind.Points] = true
			all = append(all, shape{name, kind, spacing})
		}
	}
	return append(all,
		shape{"5-point-axes", stencil.Kinds(2)[0], []float64{1, 2}},
		shape{"7-point-axes", stencil.Kinds(3)[0], []float64{1, 2, 3}})
}

// Stencils returns the names of the stencils that can be swept.
func Stencils() (names []string) {
	for _, s := range shapes() {
		names = append(names, s.name)
	}
	return names
}
