package halo

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/kernels/reduce"
)

// Vec is a vector of integers, such as the indices of a point.
type Vec = domain.Vec

// The numeric elements of fields, see domain.Element. Bytes(n) is an element of n bytes that is not a number.
const (
	Float32    = domain.Float32
	Float64    = domain.Float64
	Complex64  = domain.Complex64
	Complex128 = domain.Complex128
	Int8       = domain.Int8
	Int16      = domain.Int16
	Int32      = domain.Int32
	Int64      = domain.Int64
	Uint8      = domain.Uint8
	Uint16     = domain.Uint16
	Uint32     = domain.Uint32
	Uint64     = domain.Uint64
)

// Bytes is domain.Bytes.
func Bytes(n int) domain.Element { return domain.Bytes(n) }

// Connectivity selects the neighbors that a field needs points of.
type Connectivity int

// The connectivities. A star stencil needs faces, a box stencil also corners.
const (
	Faces   Connectivity = iota // neighbors at faces
	Edges                       // and at edges
	Corners                     // and at corners: all neighbors
)

// Spec describes a field. Only Name and Element (or Type) are required. By default a field has one value per
// point, no ghosts, and no staggering.
type Spec struct {
	Name    string         // required: name in errors and traces
	Element domain.Element // type of one value; required without Type
	// Type, as an alternative to Element, is the layout of one value. An exchange moves only the bytes that
	// it names and leaves gaps between them unchanged. Consecutive values are one extent apart, which must
	// contain all named bytes. Such fields can be exchanged, filled, read and copied; they are not numbers,
	// see IsTyped. Default: nil.
	Type       *datatype.Type
	Components int           // values per point; 0 counts as 1
	SoA        bool          // separate array per component; default: the components of a point are adjacent
	Width      domain.Radius // layers of ghosts per side; default 0
	// Widths has a ghost width for each array (each component of a struct of arrays, or all values together),
	// for arrays that are read on one side only; nil means Width for all. The arrays still have equal
	// layouts: Width is raised to the maximum of Widths.
	Widths       []domain.Radius
	Connectivity Connectivity // neighbors that the field needs; default Faces

	// Stagger has the axes along which the field is between points of the grid, see domain.Staggered: its
	// point i is between the grid's points i-1 and i. Stages of a scheme.Step sweep the indices of the grid,
	// 0 to n-1. They never write point n, the last one that such a field has between physical boundaries, so
	// it keeps its initial value. Choose the grid such that this point is on a boundary. Default: none.
	Stagger []bool // one entry per axis

	// Constant has the axes along which all points have one value, which is stored once. Such a field is filled with
	// its ghosts, and then only read. It is never exchanged, and no stage may write it. Default: none.
	Constant []bool // one entry per axis
}

// layout returns the layout of one array in a box.
func (s Spec) layout(box domain.Box) (domain.Layout, error) {
	_, bytes := s.Arrays()
	l, err := domain.NewLayout(box, s.Width, bytes)
	if err != nil || !s.IsConstant() {
		return l, err
	}
	var axes [3]bool
	copy(axes[:], s.Constant)
	return l.Constant(axes), nil
}

// IsConstant reports whether the field is constant along an axis.
func (s Spec) IsConstant() bool { return slices.Contains(s.Constant, true) }

// WidthOf returns the ghost width that an exchange updates in an array.
func (s Spec) WidthOf(array int) domain.Radius {
	if s.Widths == nil {
		return s.Width
	}
	return s.Widths[array]
}

// Covers reports whether the specs differ at most in their names and in wider Widths of s: then an exchange
// planned for s updates all ghosts that one for t does.
func (s Spec) Covers(t Spec) bool {
	s, t = s.filled(), t.filled()
	arrays, _ := s.Arrays()
	for i := range arrays {
		if !s.WidthOf(i).Contains(t.WidthOf(i)) {
			return false
		}
	}
	s.Widths = t.Widths
	return s.alike(t)
}

// IsTyped reports whether the values have a Type: only user kernels can interpret them, and they cannot be
// swept, reduced or accumulated.
func (s Spec) IsTyped() bool { return s.Type != nil }

// hasGaps reports whether values have bytes that an exchange does not move.
func (s Spec) hasGaps() bool { return s.Type != nil && s.Type.Size() != s.Type.Extent() }

// valueBytes returns the distance between consecutive values, and the bytes of one that an exchange moves.
func (s Spec) valueBytes() (extent, moved int) {
	if s.Type != nil {
		return int(s.Type.Extent()), int(s.Type.Size())
	}
	return s.Element.Size(), s.Element.Size()
}

// moved returns the bytes of a point of each array that an exchange moves.
func (s Spec) moved() int64 {
	_, n := s.valueBytes()
	if s.SoA {
		return int64(n)
	}
	return int64(n) * int64(max(1, s.Components))
}

// alike reports whether two specs differ at most in their names.
func (s Spec) alike(t Spec) bool {
	s, t = s.filled(), t.filled()
	s.Name = t.Name
	return reflect.DeepEqual(s, t)
}

// filled returns the spec with Width raised to the maximum of Widths, and without a Stagger or a Constant of no axis.
func (s Spec) filled() Spec {
	if !slices.Contains(s.Stagger, true) {
		s.Stagger = nil
	}
	if !s.IsConstant() {
		s.Constant = nil
	}
	for _, w := range s.Widths {
		s.Width = s.Width.Max(w)
	}
	return s
}

// Arrays returns the number of arrays of the field in a subdomain, and the bytes per point in each.
func (s Spec) Arrays() (count, bytes int) {
	components := max(1, s.Components)
	extent, _ := s.valueBytes()
	if s.SoA {
		return components, extent
	}
	return 1, components * extent
}

const (
	maxArrays     = 1 << 16 // per field and subdomain
	maxPointBytes = 1 << 31
	maxFieldBytes = 1 << 60 // per field and subdomain; more than any device has
)

// check returns an error unless the field can be placed on the decomposition. The spec must be filled.
func (s Spec) check(cut *domain.Decomposition) error {
	err := s.checkIn(cut.Grid)
	if err == nil {
		err = cut.Staggered(s.Stagger).CheckWidth(s.Width)
	}
	if err == nil {
		err = s.checkSize(cut)
	}
	if err != nil {
		return fmt.Errorf("halo: field %q: %w", s.Name, err)
	}
	return nil
}

// checkIn returns an error unless the field is valid for the grid with any decomposition.
func (s Spec) checkIn(g domain.Grid) error {
	if err := s.checkElements(); err != nil {
		return err
	}
	return s.checkWidths(g)
}

// checkElements checks the elements and components of a point.
func (s Spec) checkElements() error {
	if s.Type != nil {
		if err := s.checkType(); err != nil {
			return err
		}
	}
	size, _ := s.valueBytes()
	if size == 0 {
		return fmt.Errorf("element: must be float32, float64, int32 or another of package domain, got %q", s.Element)
	}
	if s.Components < 0 || s.Connectivity < Faces || s.Connectivity > Corners {
		return fmt.Errorf("components must not be negative (got %d), connectivity must be valid (got %d)", s.Components,
			s.Connectivity)
	}
	if s.SoA && s.Components > maxArrays {
		return fmt.Errorf("must have at most %d arrays, got %d", maxArrays, s.Components)
	}
	if !s.SoA && s.Components > maxPointBytes/size {
		return fmt.Errorf(
			"a point must have at most %d bytes, got %d components of %d", int64(maxPointBytes), s.Components, size)
	}
	return nil
}

// checkWidths checks the ghost widths.
func (s Spec) checkWidths(g domain.Grid) error {
	if arrays, _ := s.Arrays(); s.Widths != nil && len(s.Widths) != arrays {
		return fmt.Errorf("must have no Widths or one per array (%d; per component only if SoA), got %d", arrays,
			len(s.Widths))
	}
	if err := domain.CheckPerAxis("stagger", len(s.Stagger), g.Dims); err != nil {
		return err
	}
	if err := domain.CheckPerAxis("constant", len(s.Constant), g.Dims); err != nil {
		return err
	}
	if s.IsConstant() && s.Stagger != nil {
		return errors.New("must not be staggered where it is constant along an axis")
	}
	for _, w := range append(slices.Clone(s.Widths), s.Width) {
		if err := checkWidth(g, w); err != nil {
			return err
		}
	}
	return nil
}

// checkWidth checks one width.
func checkWidth(g domain.Grid, w domain.Radius) error {
	for a := range 3 {
		if w.Minus[a] < 0 || w.Plus[a] < 0 {
			return fmt.Errorf("the ghost width must be between 0 and 2^31-1, got %v", w)
		}
		if a >= g.Dims && (w.Minus[a] > 0 || w.Plus[a] > 0) {
			return fmt.Errorf("must have no ghosts along %c in a grid of %d dimensions", "xyz"[a], g.Dims)
		}
	}
	return nil
}

// checkSize checks the size of the field in each subdomain.
func (s Spec) checkSize(cut *domain.Decomposition) error {
	count, _ := s.Arrays()
	for _, sub := range cut.Staggered(s.Stagger).Subdomains {
		l, err := s.layout(sub.Box)
		if err != nil {
			return err
		}
		if l.Bytes() > maxFieldBytes/int64(count) {
			return fmt.Errorf("must have at most 2^60 bytes per subdomain, got %d arrays of %d bytes per point over %v",
				count, l.Bytes(), sub.Box)
		}
	}
	return nil
}

// checkType returns an error unless values of the Type can be consecutive in memory and be received.
func (s Spec) checkType() error {
	t := s.Type
	if s.Element != "" {
		return fmt.Errorf("must have an Element or a Type, got both (%s)", s.Element)
	}
	if t.Size() == 0 || t.Extent() < 1 || t.Extent() > maxPointBytes {
		return fmt.Errorf("values of type %v must have data and an extent between 1 and %d, got %d bytes and extent %d",
			t, int64(maxPointBytes), t.Size(), t.Extent())
	}
	if t.TrueLB() < t.LB() || t.TrueUB() > t.UB() {
		return fmt.Errorf("values of type %v: bytes %d to %d must be inside the extent, %d to %d", t, t.TrueLB(),
			t.TrueUB(), t.LB(), t.UB())
	}
	l, err := datatype.Commit(t, 1)
	if err == nil && l.Overlaps() {
		err = errors.New("must not name a byte twice")
	}
	if err != nil {
		return fmt.Errorf("values of type %v: %w", t, err)
	}
	return nil
}

// alignment returns the alignment in bytes of the arrays of a field.
func (s Spec) alignment() int {
	if s.Type != nil {
		return int(s.Type.Alignment())
	}
	if !s.Element.IsNumber() {
		return 1
	}
	return s.Element.Scalar().Size()
}

// Op is an operation that a Reduction computes over the values of a field.
type Op string

// The operations. A NaN makes the result of any of them NaN.
const (
	Sum Op = "sum"
	Min Op = "min" // not for complex numbers
	Max Op = "max" // not for complex numbers
	L2  Op = "l2"  // square root of the sum of squared magnitudes
)

// kernel returns the operation on the points of one subdomain.
func (op Op) kernel() (k reduce.Op, ok bool) {
	k, ok = map[Op]reduce.Op{Sum: reduce.Sum, Min: reduce.Min, Max: reduce.Max, L2: reduce.Squares}[op]
	return k, ok
}

// WideHalo describes ghosts wide enough for several steps between two exchanges. It saves exchanges, and
// their latency, at the cost of points computed by several subdomains. With ghosts of Steps times the radius,
// the first step after an exchange sweeps the owned points and all ghosts except the outermost Radius, each
// following step sweeps a region smaller by the radius, and the last one sweeps only the owned points. Points
// computed by two subdomains are bitwise identical in both.
type WideHalo struct {
	Cut    *domain.Decomposition // decomposition of the field
	Radius domain.Radius         // radius of one step
	Steps  int                   // steps between two exchanges, at least 1
}

// NewWideHalo returns the halo for the given number of steps between two exchanges. It is an error if a
// subdomain has fewer layers than its neighbors need. The decomposition is that of a placement, or of a
// staggered field.
func NewWideHalo(cut *domain.Decomposition, radius domain.Radius, steps int) (*WideHalo, error) {
	d := &WideHalo{cut, radius, steps}
	if cut == nil {
		return nil, errors.New("halo: the decomposition is nil")
	}
	if steps < 1 {
		return nil, fmt.Errorf("halo: steps between two exchanges: must be at least 1, got %d", steps)
	}
	for _, r := range append(radius.Minus[:], radius.Plus[:]...) {
		if r < 0 || r > math.MaxInt32/steps {
			return nil, fmt.Errorf("halo: radius must not be negative, and ghosts must have fewer than 2^31 layers, "+
				"got %d steps of radius %d between two exchanges", steps, r)
		}
	}
	if err := cut.CheckWidth(d.Width()); err != nil {
		return nil, fmt.Errorf("halo: %d steps between two exchanges: %w", steps, err)
	}
	return d, nil
}

// Width returns the width of the ghosts: Steps times the radius.
func (d *WideHalo) Width() domain.Radius { return times(d.Radius, d.Steps) }

func times(r domain.Radius, n int) domain.Radius {
	for a := range 3 {
		r.Minus[a] *= n
		r.Plus[a] *= n
	}
	return r
}

// Spec returns s with ghosts as wide as the halo needs. Steps that sweep ghosts also need edges and corners,
// for any stencil, and all components. With one step no ghosts are swept and the connectivity is unchanged:
// set it for stencils that read edges or corners.
func (d *WideHalo) Spec(s Spec) Spec {
	s.Width = d.Width()
	if d.Steps > 1 {
		s.Connectivity, s.Widths = Corners, nil
	}
	return s
}

// Region returns the box that the subdomain of a rank sweeps in a step after the exchange, 0 <= step < Steps:
// its owned box grown by Steps-1-step times the radius towards neighbors, but not beyond physical boundaries.
func (d *WideHalo) Region(rank, step int) domain.Box {
	return d.Cut.Grown(rank, times(d.Radius, d.Steps-1-step))
}

// Run queues steps 0 to steps-1. Before step 0 and after every Steps steps it calls exchange, which updates
// the ghosts of the field that the step reads; in every step it calls sweep for each rank with the region to
// sweep. If ghosts outside physical boundaries change with the field, sweep sets them before it sweeps. The
// first error ends the run.
func (d *WideHalo) Run(steps int, exchange func(step int) error, sweep func(step, rank int,
	region domain.Box) error) error {
	if exchange == nil || sweep == nil {
		return errors.New("halo: WideHalo.Run: exchange and sweep must not be nil")
	}
	for step := range steps {
		if step%d.Steps == 0 {
			if err := exchange(step); err != nil {
				return err
			}
		}
		for rank := range d.Cut.Subdomains {
			if err := sweep(step, rank, d.Region(rank, step%d.Steps)); err != nil {
				return err
			}
		}
	}
	return nil
}
