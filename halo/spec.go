package halo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/kernels/reduce"
)

// Element is the type of one value of a field, "float64" or "12 bytes". To an
// exchange only its size matters.
type Element string

// The numeric elements. Bytes makes others.
const (
	Float32    Element = "float32"
	Float64    Element = "float64"
	Int32      Element = "int32"
	Int64      Element = "int64"
	Complex64  Element = "complex64"
	Complex128 Element = "complex128"
)

// Bytes is an element of n bytes that halox knows nothing more of.
func Bytes(n int) Element { return Element(strconv.Itoa(n) + " bytes") }

// Size returns the size in bytes, 0 if e is no element.
func (e Element) Size() int {
	switch e {
	case Float32, Int32:
		return 4
	case Float64, Int64, Complex64:
		return 8
	case Complex128:
		return 16
	}
	digits, ok := strings.CutSuffix(string(e), " bytes")
	if n, err := strconv.Atoi(digits); ok && err == nil && n > 0 {
		return n
	}
	return 0
}

// Connectivity says which neighbours a field needs points of.
type Connectivity int

// The connectivities. A star stencil needs faces, a box stencil corners too.
const (
	Faces   Connectivity = iota // neighbours across a face
	Edges                       // and across an edge
	Corners                     // and across a corner: all of them
)

// Spec describes a field. The zero values of all but Name and Element, or Type, are good:
// one value a point, no ghosts, at the points of the grid.
type Spec struct {
	Name    string
	Element Element
	// Type, in place of an Element, is the layout of one value, of which an exchange moves the
	// bytes that it names and leaves what lies between them: its gaps may be each subdomain's
	// own. Values follow each other at its extent, which must hold all that it names. Such
	// fields are exchanged, filled, read and copied; they are no numbers, see IsTyped.
	Type       *datatype.Type
	Components int  // values a point; 0 counts as 1
	SoA        bool // every component is an array of its own; else those of a point lie together
	Width      domain.Radius
	// Widths are the ghosts of each array (each component of a struct of arrays, or all values together) that an
	// exchange brings, as where each is read on one side only; nil for those of Width. The arrays have equal layouts
	// nevertheless: Width is at least the widest of Widths, and fields and plans have that where it is less.
	Widths       []domain.Radius
	Connectivity Connectivity

	// Stagger has the axes along which the field lies between points of the grid, see domain.Staggered: its point i
	// between the grid's points i-1 and i. Stages of a scheme.Step sweep the indices of the grid, 0 to n-1. So they
	// never write point n, the last one that such a field has between physical faces, and it keeps what was filled. Lay
	// the grid out so that it is a wall.
	Stagger [3]bool
}

// WidthOf returns the width of the ghosts that an exchange brings of an array.
func (s Spec) WidthOf(array int) domain.Radius {
	if s.Widths == nil {
		return s.Width
	}
	return s.Widths[array]
}

// Covers reports whether the specs differ at most in their names, and in Widths of s that are wider than those of t: an
// exchange planned for s brings all ghosts that one for t brings.
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

// IsTyped reports whether the values are of a Type: only a caller's own kernels know what they
// are, and they cannot be swept, reduced or accumulated.
func (s Spec) IsTyped() bool { return s.Type != nil }

// hasGaps reports whether values have bytes that an exchange leaves alone.
func (s Spec) hasGaps() bool { return s.Type != nil && s.Type.Size() != s.Type.Extent() }

// valueBytes returns at which distance values follow each other, and how many bytes of one an
// exchange moves.
func (s Spec) valueBytes() (extent, moved int) {
	if s.Type != nil {
		return int(s.Type.Extent()), int(s.Type.Size())
	}
	return s.Element.Size(), s.Element.Size()
}

// moved returns how many bytes of a point of each array an exchange moves.
func (s Spec) moved() int64 {
	_, n := s.valueBytes()
	if s.SoA {
		return int64(n)
	}
	return int64(n) * int64(max(1, s.Components))
}

// alike reports whether two specs differ in their names at most.
func (s Spec) alike(t Spec) bool {
	s, t = s.filled(), t.filled()
	s.Name = t.Name
	return reflect.DeepEqual(s, t)
}

// filled returns the spec with a Width that is as wide as all of Widths.
func (s Spec) filled() Spec {
	for _, w := range s.Widths {
		s.Width = s.Width.Max(w)
	}
	return s
}

// Arrays returns how many arrays a subdomain has of the field, and the bytes of
// one point in each.
func (s Spec) Arrays() (count, bytes int) {
	components := max(1, s.Components)
	extent, _ := s.valueBytes()
	if s.SoA {
		return components, extent
	}
	return 1, components * extent
}

const (
	maxArrays     = 1 << 16 // of a field in a subdomain
	maxPointBytes = 1 << 31
	maxFieldBytes = 1 << 60 // of a field in a subdomain; no device has as many
)

// check returns an error unless the field can be placed on the cut. The spec is filled.
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

// checkIn returns an error unless there can be such a field in the grid, however that is cut.
func (s Spec) checkIn(g domain.Grid) error {
	if err := s.checkElements(); err != nil {
		return err
	}
	return s.checkWidths(g)
}

// checkElements checks what a point has.
func (s Spec) checkElements() error {
	if s.Type != nil {
		if err := s.checkType(); err != nil {
			return err
		}
	}
	size, _ := s.valueBytes()
	if size == 0 {
		return fmt.Errorf("%q is no element: float32, float64, int32, int64, complex64, complex128, or halo.Bytes(n)",
			s.Element)
	}
	if s.Components < 0 || s.Connectivity < Faces || s.Connectivity > Corners {
		return fmt.Errorf("%d components, connectivity %d", s.Components, s.Connectivity)
	}
	if s.SoA && s.Components > maxArrays {
		return fmt.Errorf("%d arrays; must be at most %d", s.Components, maxArrays)
	}
	if !s.SoA && s.Components > maxPointBytes/size {
		return fmt.Errorf("%d components of %d bytes; a point has up to %d bytes", s.Components, size,
			int64(maxPointBytes))
	}
	return nil
}

// checkWidths checks the ghosts.
func (s Spec) checkWidths(g domain.Grid) error {
	if arrays, _ := s.Arrays(); s.Widths != nil && len(s.Widths) != arrays {
		return fmt.Errorf("%d widths for %d arrays: a field has one, or one per component (SoA)", len(s.Widths),
			arrays)
	}
	for _, w := range append(slices.Clone(s.Widths), s.Width) {
		if err := checkWidth(g, w, s.Stagger); err != nil {
			return err
		}
	}
	return nil
}

// checkWidth checks one width by itself.
func checkWidth(g domain.Grid, w domain.Radius, stagger [3]bool) error {
	for a := range 3 {
		if w.Minus[a] < 0 || w.Plus[a] < 0 {
			return fmt.Errorf("a ghost width of %v", w)
		}
		if a >= g.Dims && (w.Minus[a] > 0 || w.Plus[a] > 0 || stagger[a]) {
			return fmt.Errorf("ghosts or staggering along %c, which a grid of %d dimensions has not", "xyz"[a], g.Dims)
		}
	}
	return nil
}

// checkSize checks what the field takes in each subdomain.
func (s Spec) checkSize(cut *domain.Decomposition) error {
	count, bytes := s.Arrays()
	for _, sub := range cut.Staggered(s.Stagger).Subdomains {
		l, err := domain.NewLayout(sub.Box, s.Width, bytes)
		if err != nil {
			return err
		}
		if l.Bytes() > maxFieldBytes/int64(count) {
			return fmt.Errorf("%d arrays of %d bytes over %v: a field has up to 2^60 bytes in a subdomain", count,
				l.Bytes(), sub.Box)
		}
	}
	return nil
}

// checkType returns an error unless values of the Type can follow each other in memory, and be
// received.
func (s Spec) checkType() error {
	t := s.Type
	if s.Element != "" {
		return fmt.Errorf("an Element %s and a Type: one of them describes a value", s.Element)
	}
	if t.Size() == 0 || t.Extent() < 1 || t.Extent() > maxPointBytes {
		return fmt.Errorf("values of type %v, of %d bytes over an extent of %d; the extent must be between 1 and %d", t,
			t.Size(), t.Extent(), int64(maxPointBytes))
	}
	if t.TrueLB() < t.LB() || t.TrueUB() > t.UB() {
		return fmt.Errorf("values of type %v: bytes from %d to %d reach out of the extent, %d to %d", t, t.TrueLB(),
			t.TrueUB(), t.LB(), t.UB())
	}
	l, err := datatype.Commit(t, 1)
	if err == nil && l.Overlaps() {
		err = errors.New("it touches bytes twice")
	}
	if err != nil {
		return fmt.Errorf("values of type %v: %w", t, err)
	}
	return nil
}

// complex reports whether an element has a real and an imaginary part.
func (e Element) complex() bool { return e == Complex64 || e == Complex128 }

// whole reports whether an element is a whole number.
func (e Element) whole() bool { return e == Int32 || e == Int64 }

// scalarSize returns the size in bytes of what a number is made of, two scalars if
// it is complex, and 1 if the element is no number.
func (e Element) scalarSize() int {
	switch e {
	case Float32, Float64, Int32, Int64:
		return e.Size()
	case Complex64, Complex128:
		return e.Size() / 2
	}
	return 1
}

// alignment returns what addresses of a field's arrays are multiples of, in bytes.
func (s Spec) alignment() int {
	if s.Type != nil {
		return int(s.Type.Alignment())
	}
	return s.Element.scalarSize()
}

// holds reports whether the element can be v, rounded if it is a real: a whole
// number of its range, or no finite number beyond the largest.
func (e Element) holds(v float64) bool {
	switch e {
	case Int32, Int64:
		limit := math.Exp2(float64(8*e.Size() - 1))
		return v == math.Trunc(v) && v >= -limit && v < limit
	case Float32, Complex64:
		return math.IsInf(v, 0) || !math.IsInf(float64(float32(v)), 0)
	}
	return true
}

// Encode returns the number as devices hold it, rounded to what the element can
// be; a complex element gets it as its real part. It is an error if the element
// is no number, or cannot hold v.
func (e Element) Encode(v float64) ([]byte, error) {
	order := binary.NativeEndian
	bytes := make([]byte, e.Size())
	if !e.holds(v) {
		return nil, fmt.Errorf("%v is no %s", v, e)
	}
	switch e {
	case Float32, Complex64:
		order.PutUint32(bytes, math.Float32bits(float32(v)))
	case Float64, Complex128:
		order.PutUint64(bytes, math.Float64bits(v))
	case Int32:
		order.PutUint32(bytes, uint32(int32(v)))
	case Int64:
		order.PutUint64(bytes, uint64(int64(v)))
	default:
		return nil, fmt.Errorf("elements of %s hold no numbers", e)
	}
	return bytes, nil
}

// Op is what a Reduction computes of the values of a field.
type Op string

// The operations. A NaN among reals makes the result NaN in all of them.
const (
	Sum Op = "sum"
	Min Op = "min" // not of complex numbers
	Max Op = "max" // not of complex numbers
	L2  Op = "l2"  // the root of the sum of the squared magnitudes
)

// kernel returns the operation on the points of one subdomain.
func (op Op) kernel() (k reduce.Op, ok bool) {
	k, ok = map[Op]reduce.Op{Sum: reduce.Sum, Min: reduce.Min, Max: reduce.Max, L2: reduce.Squares}[op]
	return k, ok
}

// WideHalo is a halo so wide that several steps go between two exchanges: it spares
// the latency of all exchanges but one and pays with points that several
// subdomains compute. With ghosts of Steps times the radius, the first step after
// an exchange sweeps the owned points and all ghosts but the outermost Radius of
// them, each step after it a region smaller by the radius, and the last one the
// owned points alone. Every point that two subdomains compute gets the same bits
// in both.
type WideHalo struct {
	Cut    *domain.Decomposition
	Radius domain.Radius // of one step
	Steps  int           // between two exchanges
}

// NewWideHalo returns the halo for so many steps between two exchanges. It is an error
// if a subdomain owns fewer layers than its neighbours then need of it. The cut is
// that of a placement, or of a staggered field.
func NewWideHalo(cut *domain.Decomposition, radius domain.Radius, steps int) (*WideHalo, error) {
	d := &WideHalo{cut, radius, steps}
	if cut == nil {
		return nil, errors.New("halo: a halo of no subdomains: the decomposition is nil")
	}
	if steps < 1 {
		return nil, fmt.Errorf("halo: %d steps between two exchanges; at least 1", steps)
	}
	for _, r := range append(radius.Minus[:], radius.Plus[:]...) {
		if r < 0 || r > math.MaxInt32/steps {
			return nil, fmt.Errorf("halo: %d steps of radius %d between two exchanges: "+
				"a radius is not negative, and ghosts have less than 2^31 layers", steps, r)
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

// Spec returns the field with ghosts as wide as the halo needs. Ghosts that are
// swept need edges and corners too, whatever the shape of the stencil, and of all components.
// With one step no ghosts are swept, and the connectivity stays as it is: set it for stencils
// that read edges or corners.
func (d *WideHalo) Spec(s Spec) Spec {
	s.Width = d.Width()
	if d.Steps > 1 {
		s.Connectivity, s.Widths = Corners, nil
	}
	return s
}

// Region returns what the subdomain of a rank sweeps in a step, 0 <= step < Steps
// since the exchange: its box, grown by Steps-1-step times the radius towards
// neighbours, but not beyond physical faces.
func (d *WideHalo) Region(rank, step int) domain.Box {
	return d.Cut.Grown(rank, times(d.Radius, d.Steps-1-step))
}

// Run queues steps 0 to steps-1. Before step 0 and every Steps steps after it,
// exchange brings the ghosts of the field that the step reads; in every step, sweep
// is called for each rank with the region to be swept. Ghosts behind physical faces
// that change with the field are set by sweep, before it sweeps. The first error
// ends the run.
func (d *WideHalo) Run(steps int, exchange func(step int) error, sweep func(step, rank int,
	region domain.Box) error) error {
	if exchange == nil || sweep == nil {
		return errors.New("halo: steps of a wide halo without an exchange or a sweep")
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
