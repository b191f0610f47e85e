// Package boundary keeps the ghosts behind the physical faces of a grid right: what lies
// beyond the first and the last point of an axis that is not periodic.
//
// In edges and corners periodic axes and neighbours are followed first, then Neumann and
// repeating faces; of several Dirichlet faces that of the last axis counts. Of a component with
// ghosts of its own, see halo.Spec.Widths, they are set as far as an exchange brings those that
// they are made from; what lies beyond is undefined.
package boundary

import (
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
// gives its ghosts values: the face lies where the first layer does, one spacing from the nearest point. A Neumann face
// gives them the values of the owned points as far from the face as they are: the first ghost that of the first point,
// the second that of the second, so that nothing flows through the face, which lies half a spacing from the nearest
// point. A Repeat face gives all layers the value of the owned point next to the face. A Custom face has a user kernel.
const (
	Given     Kind = ""
	Dirichlet Kind = "dirichlet"
	Neumann   Kind = "neumann"
	Repeat    Kind = "repeat"
	Custom    Kind = "custom"
)

// A rule is how ghosts of a kind follow from values of the face or from owned points. It serves launches, stores of
// kernels that sweep, initial fields and configs: a new kind is an entry in rules. A kind without an entry is an error.
type rule struct {
	distance float64         // of the face from the nearest point, in spacings
	values   bool            // the face has values: Values or a Profile, or ghosts that the caller sets
	source   func(n int) int // the owned layer, from 0, that the n-th layer of ghosts is made from; nil: from none
	named    bool            // a config can name it

	// scale returns what a ghost of the n-th layer is of its source, in fields of reals; nil: a copy.
	scale func(c *Condition, n int) kernels.Scale
}

var rules = map[Kind]rule{
	Given:     {distance: 1},
	Dirichlet: {distance: 1, values: true, named: true},
	Neumann:   {distance: 0.5, source: func(n int) int { return n }, named: true},
	Repeat:    {distance: 0.5, source: func(int) int { return 0 }, named: true},
	Custom:    {distance: 1},
}

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

// HasValues reports whether a face of the kind has values.
func (k Kind) HasValues() bool { return rules[k].values }

// Distance returns how many spacings the face lies from the nearest owned point. A kind that is not known is an error.
func (k Kind) Distance() (float64, error) {
	r, ok := rules[k]
	if !ok {
		return 0, k.unknown()
	}
	return r.distance, nil
}

// Source returns the owned layer, counted from the face, that the n-th layer of ghosts is made from, from 0; ok is
// false of a kind whose ghosts are not made from owned points.
func (k Kind) Source(n int) (layer int, ok bool) {
	r := rules[k]
	if r.source == nil {
		return 0, false
	}
	return r.source(n), true
}

// depth returns how many owned layers so many layers of ghosts are made from.
func (k Kind) depth(layers int) (depth int) {
	for n := range layers {
		if from, ok := k.Source(n); ok {
			depth = max(depth, from+1)
		}
	}
	return depth
}

func (k Kind) unknown() error {
	all := slices.Sorted(maps.Keys(rules))
	return fmt.Errorf("boundary: the kind must be one of %q, got %q", all, k)
}

// Condition is the boundary condition of one face.
type Condition struct {
	Kind Kind

	// Values of a Dirichlet face, one for all components or one for each, no NaN among them; complex
	// elements get them as real parts. Where there are none, the ghosts keep what the caller put
	// there, or what Profile gives. Faces of other kinds have none.
	Values []float64

	// Profile, where set in place of Values, makes the values of a Dirichlet face that change along it and with time,
	// for fields of float32 or float64. Faces of other kinds have none. It is called for each subdomain at the face,
	// and again for each goroutine that shares a large one; what it returns is used by one goroutine at a time.
	Profile func() Profile

	// Uniform says that Profile has one value all along the face, which changes with time alone. It is asked for that
	// of one ghost then.
	Uniform bool

	// Odd gives the second layer behind a Dirichlet face twice the first less the owned
	// point before it, as of a field that is odd about the face: which keeps the fourth order
	// of stencils of two points where the second derivative across the face vanishes there, and
	// else the second. Without it all layers have the value of the face, and such stencils the
	// first order.
	Odd bool

	// Kernel makes the launch of a Custom face ready for one array of one subdomain; nil is nothing to launch,
	// which leaves the ghosts as they are. It is queued after each sweep of the boundary region, before messages
	// leave and while others may come.
	//
	// It reads owned points as far from the face as the array has ghosts behind it: the interior may be swept
	// meanwhile. Of ghosts it reads those behind faces that were set before: Dirichlet, Neumann and Repeat, and Custom
	// faces in the order x-, x+, y-, y+, z-, z+. It reads no ghosts that a neighbour owns, and sets none:
	// where Slab.Ghosts reaches beyond the subdomain's own points on a side that has a neighbour, it takes values that
	// need no other point, or leaves them where stencils read no edges.
	Kernel func(at Slab) (*streams.Kernel, error)
}

// Profile sets values to those at the ghosts at, at+(1,0,0), ..., in global indices, at time t.
type Profile func(values []float64, at domain.Vec, t float64)

// Slab is what a Custom face is to set: the ghosts of one array behind one face, with those of
// the other axes beyond them.
type Slab struct {
	Rank      int
	Device    *streams.Device
	Side      domain.Direction
	Component int
	Array     kernels.Array
	Ghosts    domain.Box
}

// Faces are the conditions at x-, x+, y-, y+, z- and z+. Those of periodic axes, and of axes
// that the grid has not, are not used.
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
func (c *Condition) moves() bool { return c.Kind == Dirichlet && c.Profile != nil }

// mirrors reports whether ghosts are made from owned points.
func (c *Condition) mirrors() bool { return rules[c.Kind].source != nil }

// scales returns what the n-th layer of ghosts is of its source, nothing of copies.
func (c *Condition) scales(n int) []kernels.Scale {
	if scale := rules[c.Kind].scale; scale != nil {
		return []kernels.Scale{scale(c, n)}
	}
	return nil
}

// changes reports whether ghosts change from step to step.
func (c *Condition) changes() bool {
	return c.mirrors() || c.moves() || c.Kind == Custom || c.Kind == Dirichlet && c.Odd
}

// check returns an error unless the field can have the condition at a face, behind which steps reach so far.
func (c *Condition) check(f *halo.Field, side domain.Direction, reach Reach) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("boundary: face %v of field %q: %w", side, f.Spec.Name, fmt.Errorf(format, args...))
	}
	real := f.Spec.Element == halo.Float32 || f.Spec.Element == halo.Float64
	components, layers := max(1, f.Spec.Components), layersAt(reach.Width, side)
	_, known := rules[c.Kind]
	switch {
	case !known:
		return fail("%w", c.Kind.unknown())
	case c.Kind != Dirichlet && (c.Profile != nil || len(c.Values) > 0):
		return fail("kind %q with Values or a Profile, which dirichlet faces have", c.Kind)
	case c.Profile != nil && len(c.Values) > 0:
		return fail("both Values and a Profile")
	case slices.ContainsFunc(c.Values, math.IsNaN):
		return fail("Values %v, not all of which are numbers", c.Values)
	case c.Kind == Dirichlet && len(c.Values) > 1 && len(c.Values) != components:
		return fail("%d values for %d components", len(c.Values), components)
	case (c.moves() || c.Kind == Dirichlet && c.Odd && layers > 1 || c.scales(0) != nil) &&
		(!real || components > 1 && !f.Spec.SoA):
		return fail("a profile, an odd reflection or a scale, of elements %q", f.Spec.Element)
	case c.Kind == Dirichlet && c.Odd && layers > 2:
		return fail("an odd reflection of %d layers; must be at most 2", layers)
	case c.moves() && layers > 1 && !c.Odd:
		return fail("a profile of %d layers that is not odd; must be at most 1", layers)
	case c.moves() && reach.Connectivity > halo.Faces:
		return fail(
			"values that change with time: stencils must lie along the axes, and this one reads ghosts in edges")
	case c.Kind == Custom && c.Kernel == nil:
		return fail("no kernel")
	case c.Kind == Custom && reach != reachOf(f):
		return fail("its own kernel sets no ghosts beyond those of neighbours: steps between exchanges must be 1")
	}
	if err := CheckMirror(f.Cut, side, c.Kind, layers); err != nil {
		return fail("%w", err)
	}
	return nil
}

// CheckMirror returns an error unless all subdomains at a side of the grid own the layers that so many layers of ghosts
// of a kind are made from.
func CheckMirror(cut *domain.Decomposition, side domain.Direction, k Kind, layers int) error {
	layers = k.depth(layers)
	a := side.Axis()
	for _, s := range cut.Subdomains {
		if have := s.Box.Size()[a]; !inside(cut, s.Rank, side) && have < layers {
			do := "use fewer parts or a smaller stencil"
			if cut.Parts[a] == 1 {
				do = "use a larger grid or a smaller stencil"
			}
			return fmt.Errorf("subdomain %d owns %d layers along %c and would mirror %d: %s", s.Rank, have, "xyz"[a],
				layers, do)
		}
	}
	return nil
}

// inside reports whether a subdomain has a neighbour at a side.
func inside(cut *domain.Decomposition, rank int, side domain.Direction) bool {
	_, ok := cut.Neighbour(rank, side)
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

// Reach is how far a step reads a field behind faces, and beyond how many of them at once. A field whose ghosts of
// neighbours are swept, as where several steps go between two exchanges, has more of these than a step reads.
type Reach struct {
	Width        domain.Radius
	Connectivity halo.Connectivity
}

// reachOf returns the reach that uses all ghosts of a field.
func reachOf(f *halo.Field) Reach { return Reach{f.Spec.Width, f.Spec.Connectivity} }

// movingFace is a Dirichlet face of one array whose values change with time. The host
// evaluates them anew for every step, into pinned memory; the device copies and unpacks them
// into the first layer of ghosts. Further layers follow by reflection.
type movingFace struct {
	what, field string // for errors

	ghosts     domain.Box
	grid       domain.Grid
	single     bool // float32
	uniform    bool
	evaluators []rowEvaluator // of rows, side by side
	slots      [2]faceValues  // for even and for odd steps
}

// rowEvaluator evaluates some of the rows of a face.
type rowEvaluator struct {
	profile Profile
	row     []float64
}

// pointsEach is how many points of a face are worth a goroutine.
const pointsEach = 1 << 13

// faceValues is the way of a face's values into the ghosts.
type faceValues struct {
	host, device *streams.Memory
	unpack       *pack.Copies
	used         *streams.Event // the values have been copied: host may change
}

// ask gets the profile of a condition, for each goroutine that evaluates rows.
func (m *movingFace) ask(c *Condition) (err error) {
	defer streams.Caught(&err, m.what, m.field)
	n := 1
	if m.uniform = c.Uniform; !m.uniform {
		n = max(1, min(runtime.GOMAXPROCS(0), int(m.ghosts.Points()/pointsEach)))
	}
	for range n {
		profile := c.Profile()
		if profile == nil {
			return fmt.Errorf("%s %q returned no profile (nil)", m.what, m.field)
		}
		m.evaluators = append(m.evaluators, rowEvaluator{profile, make([]float64, m.ghosts.Size()[0])})
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
	return s.Launch(v.unpack.Kernel)
}

// evaluateInto fills bytes with the values of the face at time t.
func (m *movingFace) evaluateInto(bytes []byte, t float64) error {
	rows := int(m.ghosts.Points()) / len(m.evaluators[0].row)
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

// evaluateRows evaluates the rows from the first to before the end.
func (m *movingFace) evaluateRows(s *rowEvaluator, bytes []byte, first, end int, t float64) (err error) {
	defer streams.Caught(&err, m.what, m.field)
	if m.single {
		evaluate(m, s, streams.View[float32](bytes), first, end, t)
	} else {
		evaluate(m, s, streams.View[float64](bytes), first, end, t)
	}
	return nil
}

// evaluate sets values to some rows of the face, x fastest.
func evaluate[T float32 | float64](m *movingFace, s *rowEvaluator, values []T, first, end int, t float64) {
	size := m.ghosts.Size()
	if m.uniform {
		m.setRow(rowEvaluator{s.profile, s.row[:1]}, m.ghosts.Lo, t)
		v := T(s.row[0])
		for i := range values {
			values[i] = v
		}
		return
	}
	for row := first; row < end; row++ {
		m.setRow(*s, m.ghosts.Lo.Add(domain.Vec{0, row % size[1], row / size[1]}), t)
		into := values[row*len(s.row):][:len(s.row)]
		for i, v := range s.row {
			into[i] = T(v)
		}
	}
}

// setRow sets the row of an evaluator to the values from a ghost on. Ghosts beyond the ends of periodic axes have those
// of the points that they stand for.
func (m *movingFace) setRow(s rowEvaluator, from domain.Vec, t float64) {
	for done := 0; done < len(s.row); {
		at, n := from.Add(domain.Vec{done}), len(s.row)-done
		for a, size := range m.grid.Size {
			if m.grid.Periodic[a] {
				at[a] = ((at[a] % size) + size) % size
			}
		}
		if m.grid.Periodic[0] {
			n = min(n, m.grid.Size[0]-at[0])
		}
		s.profile(s.row[done:][:n], at, t)
		done += n
	}
}

// profileLimit is how long a device may take to take the values of a profile.
const profileLimit = 60 * time.Second
