// Package boundary sets the ghosts outside the physical boundaries of a grid: beyond the first and the last
// point of every axis that is not periodic.
//
// In edges and corners, periodic axes and neighbors apply first. Dirichlet faces at the first layer of ghosts apply
// next, of several the one of the last axis, and then the others, along x, then y, then z. In an array with its own
// ghost width (see halo.Spec.Widths), ghosts are set as far as an exchange updates the points that they depend on;
// ghosts beyond are undefined.
package boundary

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// Kind is a kind of boundary condition.
type Kind string

// The kinds. Ghosts of a Given face keep what the caller put there, see docs/reference/boundaries.md. A Dirichlet face
// sets its ghosts to values: the face lies where the first layer does, one spacing from the nearest point, or with Half
// half a spacing. The other faces lie half a spacing from the nearest point. Along the outward normal n, a Neumann face
// has the derivative du/dn = g; a Flux face the flow D*du/dn = g into the grid, with the diffusivity D; and a Robin
// face D*du/dn = h*(g - u), with the transfer coefficient h and the ambient value g. A ghost and the owned point as far
// from the face, d apart, have the mean u and the derivative of their difference over d, so that the ghost is a*point +
// b*g:
//
//	Dirichlet with Half    a = -1                     b = 2
//	Neumann                a = 1                      b = d
//	Flux                   a = 1                      b = d/D
//	Robin                  a = (D/d-h/2)/(D/d+h/2)    b = h/(D/d+h/2)
//
// Without values, ghosts of a Neumann face are copies. An Outflow face gives all layers the value of the owned point
// next to the face. A Custom face has a user kernel.
const (
	Given     Kind = ""
	Dirichlet Kind = "dirichlet"
	Neumann   Kind = "neumann"
	Flux      Kind = "flux"
	Robin     Kind = "robin"
	Outflow   Kind = "outflow"
	Custom    Kind = "custom"
)

// A rule defines the ghosts of a kind by values of the face or by owned points. It is used for launches,
// stores of sweep kernels, initial fields and configs: a new kind is an entry in rules.
type rule struct {
	distance float64         // of the face from the nearest point, in spacings
	values   Need            // of Values or a Profile
	source   func(n int) int // the owned layer, from 0, that the n-th layer of ghosts is made from; nil: from none
	named    bool            // a config can name it

	// affine returns a and b of a ghost that lies d from its source, of faces with values; nil: ghosts have the values.
	affine func(c *Condition, d float64) (a, b float64)
}

// Need says whether faces of a kind have values.
type Need int

// A face that requires values may lack them only as ghosts that the caller sets.
const (
	None Need = iota
	Optional
	Required
)

func same(n int) int { return n }

var rules = map[Kind]rule{
	Given:     {distance: 1},
	Dirichlet: {distance: 1, values: Required, named: true},
	half: {distance: 0.5, values: Required, source: same, affine: func(*Condition, float64) (a, b float64) {
		return -1, 2
	}},
	Neumann: {distance: 0.5, values: Optional, source: same, named: true,
		affine: func(_ *Condition, d float64) (a, b float64) { return 1, d }},
	Flux: {distance: 0.5, values: Required, source: same, named: true,
		affine: func(c *Condition, d float64) (a, b float64) { return 1, d / c.diffusivity() }},
	Robin: {distance: 0.5, values: Required, source: same, named: true,
		affine: func(c *Condition, d float64) (a, b float64) {
			slope, mean := c.diffusivity()/d, c.Transfer/2
			return (slope - mean) / (slope + mean), c.Transfer / (slope + mean)
		}},
	Outflow: {distance: 0.5, source: func(int) int { return 0 }, named: true},
	Custom:  {distance: 1},
}

// half is the kind of a Dirichlet face with Half.
const half Kind = "dirichlet, half a spacing from the nearest point"

// Kinds returns the kinds that a config can name, sorted.
func Kinds() (all []Kind) {
	for k, r := range rules {
		if r.named {
			all = append(all, k)
		}
	}
	slices.Sort(all)
	return all
}

// Values says whether a face of the kind has values.
func (k Kind) Values() Need { return rules[k].values }

// rule returns that of the face's kind; ok is false of a kind that is not known.
func (c *Condition) rule() (r rule, ok bool) {
	r, ok = rules[c.Kind]
	if c.Half && c.Kind == Dirichlet {
		r = rules[half]
	}
	return r, ok && c.Kind != half
}

// Distance returns how many spacings the face lies from the nearest owned point. A kind that is not known is an error.
func (c *Condition) Distance() (float64, error) {
	r, ok := c.rule()
	if !ok {
		return 0, c.Kind.unknown()
	}
	return r.distance, nil
}

// Source returns the owned layer, counted from the face, that the n-th layer of ghosts is made from, from 0; ok is
// false of a face whose ghosts are not made from owned points.
func (c *Condition) Source(n int) (layer int, ok bool) {
	r, _ := c.rule()
	if r.source == nil {
		return 0, false
	}
	return r.source(n), true
}

// depth returns how many owned layers so many layers of ghosts are made from.
func (c *Condition) depth(layers int) (depth int) {
	for n := range layers {
		if from, ok := c.Source(n); ok {
			depth = max(depth, from+1)
		}
	}
	return depth
}

func (k Kind) unknown() error {
	all := slices.DeleteFunc(slices.Sorted(maps.Keys(rules)), func(k Kind) bool { return k == half })
	return fmt.Errorf("boundary: the kind must be one of %q, got %q", all, k)
}

// Condition is the boundary condition of one face.
type Condition struct {
	Kind Kind // kind of the condition; default Given

	// Values g of the face, one for all components or one for each, no NaN among them; complex
	// elements get them as real parts. Ghosts of a Dirichlet face without Values and Profile keep what the caller put
	// there.
	Values []float64

	// Profile, where set in place of Values, makes values that change along the face and with time,
	// for fields of float32 or float64. It is called for each subdomain at the face,
	// and again for each goroutine that shares a large one; what it returns is used by one goroutine at a time.
	Profile func() Profile

	// Transfers, where set in place of Transfer, makes h of a Robin face, as Profile makes g, which must be set too.
	Transfers func() Profile

	// Steady says that the values of Profile and Transfers, of a face half a spacing from the nearest point, do not
	// change with time. They are evaluated once, and must be finite.
	Steady bool

	// Half has a Dirichlet face lie half a spacing from the nearest point.
	Half bool

	// Spacing is the distance of points across a face that makes ghosts a*point + b*g, which has a field of reals.
	Spacing float64

	// Diffusivity is D of a Flux or Robin face, 0 for 1, and Transfer h of a Robin face.
	Diffusivity, Transfer float64

	// Uniform says that Profile and Transfers have one value all along the face, which changes with time alone. They
	// are called for one ghost only.
	Uniform bool

	// Odd sets the second layer behind a Dirichlet face to twice the first minus the owned point before it, as for a
	// field that is odd about the face. Stencils of radius 2 then keep their fourth order if the second derivative
	// across the face is 0 there, and otherwise have second order. Without it all layers have the value of the face,
	// and such stencils have first order. With Half it has no effect.
	Odd bool

	// Kernel prepares the launch of a Custom face for one array of one subdomain; nil means no launch, which
	// leaves the ghosts unchanged. The launch is queued after each sweep of the boundary region, before
	// messages are sent, possibly while others arrive.
	//
	// It may read as many layers of owned points at the face as the array has ghosts outside it: the interior
	// may be swept at the same time. It may read ghosts outside faces that are set earlier: faces of other
	// kinds, and Custom faces in the order x-, x+, y-, y+, z-, z+. It must neither read
	// nor set ghosts that a neighbor owns: if Slab.Ghosts extends beyond the subdomain's own points on a side
	// with a neighbor, it sets values there that depend on no other point, or skips them if stencils do not
	// read edges.
	Kernel func(at Slab) (*streams.Kernel, error)
}

// Profile sets values to those at the ghosts at, at+(1,0,0), ..., in global indices, at time t. They are ghosts of the
// first layer; the values of a face half a spacing from the nearest point lie half a spacing before these.
type Profile func(values []float64, at domain.Vec, t float64)

// Slab is the ghosts that a Custom face sets: those of one array outside one face, including its edges and
// corners.
type Slab struct {
	Rank      int              // rank of the subdomain
	Device    *streams.Device  // its device
	Side      domain.Direction // the face
	Component int              // index of the array in the field
	Array     kernels.Array    // the array, with its ghosts
	Ghosts    domain.Box       // the ghosts to set, in global indices
}

// Faces are the conditions at x-, x+, y-, y+, z- and z+. Those of periodic or missing axes are ignored.
type Faces [6]Condition

// All returns the same condition at all faces.
func All(c Condition) (f Faces) {
	for i := range f {
		f[i] = c
	}
	return f
}

// At returns the condition of a face.
func (f *Faces) At(side domain.Direction) *Condition {
	i := 2 * side.Axis()
	if side.Positive() {
		i++
	}
	return &f[i]
}

// mirrorAround reports whether ghosts behind a face, and behind those of other axes, are made from owned points.
func (f *Faces) mirrorAround(side domain.Direction, g domain.Grid) bool {
	for _, other := range domain.Faces(g.Dims) {
		beside := other.Axis() != side.Axis() && !g.Periodic[other.Axis()]
		if (beside || other == side) && !f.At(other).mirrors() {
			return false
		}
	}
	return true
}

// Steady reports whether no condition changes with time.
func (f *Faces) Steady() bool {
	for _, c := range f {
		if c.moves() {
			return false
		}
	}
	return true
}

// moves reports whether the values change with time.
func (c *Condition) moves() bool { return c.Profile != nil && !c.Steady }

// mirrors reports whether ghosts are made from owned points.
func (c *Condition) mirrors() bool {
	r, _ := c.rule()
	return r.source != nil
}

// sets reports whether the values are those of ghosts.
func (c *Condition) sets() bool { return c.Kind == Dirichlet && !c.Half }

// odd reports whether second layers are reflected about first ones.
func (c *Condition) odd() bool { return c.sets() && c.Odd }

// Affine reports whether ghosts are made from owned points and values.
func (c *Condition) Affine() bool {
	r, _ := c.rule()
	return r.affine != nil && (len(c.Values) > 0 || c.Profile != nil)
}

// diffusivity returns D.
func (c *Condition) diffusivity() float64 { return cmp.Or(c.Diffusivity, 1) }

// factors returns a and b of the n-th layer of ghosts.
func (c *Condition) factors(n int) (a, b float64) {
	r, _ := c.rule()
	return r.affine(c, float64(2*n+1)*c.Spacing)
}

// CheckAffine returns an error unless so many layers of ghosts can be made from owned points and values.
func (c *Condition) CheckAffine(layers int) error {
	if !(c.Spacing > 0) {
		return fmt.Errorf("spacing of a %s face must be positive, got %v", c.Kind, c.Spacing)
	}
	if c.Diffusivity < 0 {
		return fmt.Errorf("diffusivity of a %s face must be positive, or 0 for 1, got %v", c.Kind, c.Diffusivity)
	}
	for n := range layers {
		if a, b := c.factors(n); math.IsNaN(a-a) || math.IsNaN(b-b) {
			return c.noDenominator(n)
		}
	}
	return nil
}

// noDenominator is the error for the n-th layer of ghosts.
func (c *Condition) noDenominator(n int) error {
	return fmt.Errorf("the denominator of a %s face, %v/d + %v/2 with d = %v, must not be 0", c.Kind, c.diffusivity(),
		c.Transfer, float64(2*n+1)*c.Spacing)
}

// changes reports whether ghosts change from step to step.
func (c *Condition) changes() bool { return c.mirrors() || c.moves() || c.Kind == Custom || c.odd() }

// check returns an error unless the field supports the condition at a face, for steps with the given reach.
func (c *Condition) check(f *halo.Field, side domain.Direction, reach Reach) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("boundary: face %v of field %q: %w", side, f.Spec.Name, fmt.Errorf(format, args...))
	}
	real := f.Spec.Element.IsReal()
	components, layers := max(1, f.Spec.Components), layersAt(reach.Width, side)
	has := c.Profile != nil || len(c.Values) > 0
	r, known := c.rule()
	switch {
	case !known:
		return fail("%w", c.Kind.unknown())
	case r.values == None && has:
		return fail("Values and Profile must not be set for kind %q", c.Kind)
	case r.values == Required && r.affine != nil && !has:
		return fail("Values or Profile must be set for kind %q", c.Kind)
	case c.sets() && c.Steady:
		return fail("Steady must not be set for a face at the first layer of ghosts")
	case c.Transfers != nil && (c.Kind != Robin || c.Profile == nil):
		return fail("Transfers must be set only for kind %q with a Profile", Robin)
	case c.Profile != nil && len(c.Values) > 0:
		return fail("must have Values or a Profile, got both")
	case slices.ContainsFunc(c.Values, math.IsNaN):
		return fail("Values must not be NaN, got %v", c.Values)
	case len(c.Values) > 1 && len(c.Values) != components:
		return fail("must have one value or one per component (%d), got %d", components, len(c.Values))
	case (c.moves() || c.odd() && layers > 1 || c.Affine()) && (!real || components > 1 && !f.Spec.SoA):
		return fail("a Profile, Odd or values of a %s face need float32 or float64 elements, got %q", c.Kind,
			f.Spec.Element)
	case c.odd() && layers > 2:
		return fail("Odd: must have at most 2 layers of ghosts, got %d", layers)
	case c.sets() && c.moves() && layers > 1 && !c.Odd:
		return fail("Profile: must have at most 1 layer of ghosts unless Odd, got %d", layers)
	case c.Kind == Custom && c.Kernel == nil:
		return fail("Kernel must not be nil")
	case c.Kind == Custom && reach != reachOf(f):
		return fail("user kernels do not set ghosts next to those of neighbors: the exchange interval must be 1")
	}
	if c.Affine() {
		if err := c.CheckAffine(layers); err != nil {
			return fail("%w", err)
		}
	}
	if err := c.CheckMirror(f.Cut, side, layers); err != nil {
		return fail("%w", err)
	}
	return nil
}

// CheckMirror returns an error unless all subdomains at a side of the grid own the layers that so many layers of ghosts
// are made from.
func (c *Condition) CheckMirror(cut *domain.Decomposition, side domain.Direction, layers int) error {
	layers = c.depth(layers)
	a := side.Axis()
	for _, s := range cut.Subdomains {
		if have := s.Box.Size()[a]; !inside(cut, s.Rank, side) && have < layers {
			do := "use fewer parts or a smaller stencil"
			if cut.Parts[a] == 1 {
				do = "use a larger grid or a smaller stencil"
			}
			return fmt.Errorf("subdomain %d owns %d layers along %c, must own at least %d to mirror them: %s", s.Rank,
				have, "xyz"[a], layers, do)
		}
	}
	return nil
}

// inside reports whether a subdomain has a neighbor at a side.
func inside(cut *domain.Decomposition, rank int, side domain.Direction) bool {
	_, ok := cut.Neighbor(rank, side)
	return ok
}

// layersAt returns the width of the ghosts at a side.
func layersAt(w domain.Radius, side domain.Direction) int {
	if a := side.Axis(); side.Positive() {
		return w.Plus[a]
	} else {
		return w.Minus[a]
	}
}

// Reach is how many layers a step reads outside of faces, and whether in edges and corners. A field whose
// neighbor ghosts are swept (several steps between two exchanges) has wider ghosts than a step reads.
type Reach struct {
	Width        domain.Radius     // layers per side
	Connectivity halo.Connectivity // Faces: no ghosts in edges are read
}

// reachOf returns the reach that includes all ghosts of a field.
func reachOf(f *halo.Field) Reach { return Reach{f.Spec.Width, f.Spec.Connectivity} }

// movingFace is a face of one array whose values change with time. The host evaluates them for every step, into pinned
// memory; the device copies them to the first layer of ghosts, from which further layers follow by reflection, or to
// the values of an Affine.
type movingFace struct {
	what, field string // for errors

	condition  *Condition
	layers     int // layers of ghosts whose factors change along the face or with time; 0: the factors are numbers
	ghosts     domain.Box
	read       domain.Box // ghosts that steps read
	grid       domain.Grid
	single     bool           // float32
	evaluators []rowEvaluator // evaluate rows in parallel
	slots      [2]faceValues  // for even and for odd steps
}

// rowEvaluator evaluates some of the rows of a face.
type rowEvaluator struct {
	profile, transfers Profile // transfers is nil if h is a number
	row, h             []float64
}

// planes returns how many values there are for each ghost, one plane after another: g, or for each of layers b*g and a.
func (m *movingFace) planes() int { return max(1, 2*m.layers) }

// bytes returns the size of all values.
func (m *movingFace) bytes() int64 {
	if m.single {
		return 4 * m.ghosts.Points() * int64(m.planes())
	}
	return 8 * m.ghosts.Points() * int64(m.planes())
}

// pointsEach is the number of points of a face per goroutine.
const pointsEach = 1 << 13

// faceValues are the buffers for the values of a face.
type faceValues struct {
	host, device *streams.Memory
	unpack       *pack.Copies   // nil for the values of an Affine
	used         *streams.Event // the values have been copied: host may change
}

// ask gets the profiles of the condition for each goroutine that evaluates rows.
func (m *movingFace) ask() (err error) {
	defer streams.Caught(&err, m.what, m.field)
	n, length := 1, 1
	if !m.condition.Uniform {
		n = max(1, min(runtime.GOMAXPROCS(0), int(m.ghosts.Points()/pointsEach)))
		length = m.ghosts.Size()[0]
	}
	for range n {
		one := rowEvaluator{profile: m.condition.Profile(), row: make([]float64, length)}
		if m.layers > 0 {
			one.transfers, one.h = m.condition.Transfers(), make([]float64, length)
		}
		if one.profile == nil || m.layers > 0 && one.transfers == nil {
			return fmt.Errorf("%s %q returned a nil Profile", m.what, m.field)
		}
		m.evaluators = append(m.evaluators, one)
	}
	return nil
}

// queue sets the ghosts to the values at time t.
func (m *movingFace) queue(s *streams.Stream, step int64, t float64) error {
	v := &m.slots[step&1]
	if err := v.used.Sync(profileLimit); err != nil {
		return err
	}
	if err := m.evaluateInto(v.host.Bytes(), t); err != nil {
		return err
	}
	if err := s.CopyAs(streams.OtherWork, v.device.All(), v.host.All()); err != nil {
		return err
	}
	if err := s.Record(v.used); err != nil {
		return err
	}
	if v.unpack == nil {
		return nil
	}
	return s.Launch(v.unpack.Kernel)
}

// evaluateInto fills bytes with the values of the face at time t.
func (m *movingFace) evaluateInto(bytes []byte, t float64) error {
	rows := int(m.ghosts.Points()) / m.ghosts.Size()[0]
	if len(m.evaluators) == 1 {
		return m.evaluateRows(&m.evaluators[0], bytes, 0, rows, t)
	}
	var all sync.WaitGroup
	errs := make([]error, len(m.evaluators))
	for i := range m.evaluators {
		first, end := rows*i/len(m.evaluators), rows*(i+1)/len(m.evaluators)
		all.Go(func() { errs[i] = m.evaluateRows(&m.evaluators[i], bytes, first, end, t) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// ErrNotFinite means that a value of a face is not finite.
var ErrNotFinite = errors.New("not finite")

// checkFinite returns an error if a value is not finite of a ghost that steps read.
func (m *movingFace) checkFinite(values []byte) error {
	n := 0
	for z := m.ghosts.Lo[2]; z < m.ghosts.Hi[2]; z++ {
		for y := m.ghosts.Lo[1]; y < m.ghosts.Hi[1]; y++ {
			for x := m.ghosts.Lo[0]; x < m.ghosts.Hi[0]; x++ {
				var v float64
				if m.single {
					v = float64(streams.View[float32](values)[n])
				} else {
					v = streams.View[float64](values)[n]
				}
				if n++; math.IsNaN(v-v) && m.read.Contains(domain.Vec{x, y, z}) {
					return fmt.Errorf("%s %q gives %v for ghost %v, which is %w", m.what, m.field, v,
						domain.Vec{x, y, z}, ErrNotFinite)
				}
			}
		}
	}
	return nil
}

// evaluateRows evaluates the rows from the first to before the end.
func (m *movingFace) evaluateRows(s *rowEvaluator, bytes []byte, first, end int, t float64) (err error) {
	defer streams.Caught(&err, m.what, m.field)
	if m.single {
		return evaluate(m, s, streams.View[float32](bytes), first, end, t)
	}
	return evaluate(m, s, streams.View[float64](bytes), first, end, t)
}

// evaluate sets values to the values of rows first to end-1 of the face, x fastest.
func evaluate[T float32 | float64](m *movingFace, s *rowEvaluator, values []T, first, end int, t float64) error {
	size, points := m.ghosts.Size(), int(m.ghosts.Points())
	for row := first; row < end; row++ {
		at := m.ghosts.Lo.Add(domain.Vec{0, row % size[1], row / size[1]})
		if row == first || !m.condition.Uniform {
			m.setRow(s.profile, s.row, at, t)
			if m.layers > 0 {
				m.setRow(s.transfers, s.h, at, t)
			}
		}
		into := values[row*size[0]:]
		c := Condition{Kind: Robin, Diffusivity: m.condition.Diffusivity, Spacing: m.condition.Spacing}
		for i := range size[0] {
			k := min(i, len(s.row)-1) // a row of a uniform face has one value
			if m.layers == 0 {
				into[i] = T(s.row[k])
				continue
			}
			c.Transfer = s.h[k]
			for n := range m.layers {
				a, b := c.factors(n)
				if ghost := at.Add(domain.Vec{i}); math.IsInf(a, 0) && m.read.Contains(ghost) {
					return fmt.Errorf("%s %q: ghost %v: %w", m.what, m.field, ghost, c.noDenominator(n))
				}
				into[2*n*points+i], into[(2*n+1)*points+i] = T(b*s.row[k]), T(a)
			}
		}
	}
	return nil
}

// setRow sets a row to the values of a profile starting at a ghost. Ghosts beyond the ends of periodic axes have the
// values of the points that they are copies of.
func (m *movingFace) setRow(profile Profile, row []float64, from domain.Vec, t float64) {
	for done := 0; done < len(row); {
		at, n := from.Add(domain.Vec{done}), len(row)-done
		for a, size := range m.grid.Size {
			if m.grid.Periodic[a] {
				at[a] = ((at[a] % size) + size) % size
			}
		}
		if m.grid.Periodic[0] {
			n = min(n, m.grid.Size[0]-at[0])
		}
		profile(row[done:][:n], at, t)
		done += n
	}
}

// profileLimit is the limit of a device's copy of the values of a profile.
const profileLimit = 60 * time.Second
