// Package sweep applies point functions to boxes of a subdomain: on a GPU by kernels that keep values shared by
// adjacent points in registers, on a CPU device row by row.
//
// A [Point] is the computation at one point of a stage, in CUDA C++ and in Go. An [Access] is a field that it
// reads or writes, under the name used in the source. A [Sweeper] combines them for a device; it prepares
// launches, optionally with norms and reductions. A constant linear stencil is also a point function, see
// [Linear].
package sweep

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Access is a field that a point function reads or writes, at one time level. A point has Components values, each
// in a separate array.
type Access struct {
	Name       string         // in the source: a C identifier
	Element    domain.Element // a real or an integer
	Components int            // values per point; default 1
	// Footprint is the set of offsets at which it is read. The default is the point itself, unless Write is set: then
	// it is not read. An access that is read and written is updated in place, and read only at the point itself.
	Footprint stencil.Footprint
	// Footprints are the footprints of each component, if they differ; Footprint is then empty.
	Footprints []stencil.Footprint
	Write      bool // whether it is written; default false
	// Constant has the axes along which all points share their memory, see halo.Spec.Constant; such an access is only
	// read. Default: none.
	Constant [3]bool
	// Sparse means that the function reads only few of the offsets at a point, as for reflections at boundaries:
	// values are then loaded individually instead of all in advance. Default false.
	Sparse bool
	// Before names the access that reads the same field at the previous level, for norms of the written values and of
	// their change. Both must be real and have the same components, and the footprints must contain the point. An
	// access that is updated in place may name itself. Default: no norms.
	Before string
}

// Arrays are the arrays of all accesses of a sweep, by access and component.
type Arrays [][]kernels.Array

func (a Access) components() int { return max(1, a.Components) }

// footprint returns the footprint of a component.
func (a Access) footprint(component int) stencil.Footprint {
	f := a.Footprint
	if len(a.Footprints) > 0 {
		f = a.Footprints[component]
	}
	if len(f) == 0 && !a.Write {
		return stencil.Point()
	}
	return f
}

// reads reports whether any component is read.
func (a Access) reads() bool {
	return !a.Write || len(a.Footprint) > 0 ||
		slices.ContainsFunc(a.Footprints, func(f stencil.Footprint) bool { return len(f) > 0 })
}

// check returns an error unless the access is valid for a point function of the given dimensions.
func (a Access) check(dims int) error {
	fail := func(format string, values ...any) error {
		return fmt.Errorf("access %q "+format, append([]any{a.Name}, values...)...)
	}
	if err := checkName(a.Name); err != nil {
		return fail("name: %w", err)
	}
	switch {
	case !a.Element.IsReal() && !a.Element.IsInteger():
		return fail("element type must be known, got %q", a.Element)
	case a.Components < 0 || a.components() > maxArrays:
		return fail("number of components must be at least 0, got %d", a.Components)
	case a.Write && a.Constant != [3]bool{}:
		return fail("must not be written where it is constant along an axis")
	case len(a.Footprints) > 0 && (len(a.Footprints) != a.components() || len(a.Footprint) > 0):
		return fail("must have one footprint or one per component, got %d components, %d footprints", a.components(),
			len(a.Footprints))
	}
	for q := range a.components() {
		f := a.footprint(q)
		if err := f.Check(dims); err != nil {
			return fail("%w", err)
		}
		if a.Write && a.reads() && !slices.Equal(stencil.Offsets(f...), stencil.Point()) {
			return fail(
				"is written and read, and may only be read at the point itself, got %v",
				f)
		}
	}
	return nil
}

// checkAccesses checks all accesses, and that their names and pairs are consistent.
func checkAccesses(all []Access, dims int, reduces bool) error {
	arrays := 0
	written := false
	for i, a := range all {
		if err := a.check(dims); err != nil {
			return err
		}
		if slices.ContainsFunc(all[:i], func(b Access) bool { return b.Name == a.Name }) {
			return fmt.Errorf("access names must be distinct, got %q twice", a.Name)
		}
		if err := checkBefore(all, a); err != nil {
			return err
		}
		arrays += a.components()
		written = written || a.Write
	}
	if arrays < 1 || arrays > maxArrays {
		return fmt.Errorf("number of arrays must be between 1 and %d, got %d", maxArrays, arrays)
	}
	if !written && !reduces {
		return errors.New("must write or reduce something")
	}
	return nil
}

// maxArrays bounds the arrays of a sweep: their addresses are in the argument of a launch, which has 4096 bytes.
const maxArrays = 128

// checkBefore returns an error unless the norms requested by an access can be computed.
func checkBefore(all []Access, a Access) error {
	if a.Before == "" {
		return nil
	}
	at := slices.IndexFunc(all, func(b Access) bool { return b.Name == a.Before })
	if at < 0 {
		return fmt.Errorf("access %q: Before must name an access, got %q", a.Name, a.Before)
	}
	b := all[at]
	if !a.Write || !a.Element.IsReal() || a.Element != b.Element || a.components() != b.components() {
		return fmt.Errorf(
			"access %q: norms need a written access of reals and the same number of components in %q",
			a.Name, b.Name)
	}
	if b.Constant[0] {
		return fmt.Errorf("access %q: norms need %q at each point, which is constant along x", a.Name, b.Name)
	}
	for q := range b.components() {
		if !b.footprint(q).Has([3]int{}) {
			return fmt.Errorf("access %q: norms need %q at the point itself, which must be in its footprint %v", a.Name,
				b.Name, b.footprint(q))
		}
	}
	return nil
}

// spansOf returns the memory of arrays.
func spansOf(arrays []kernels.Array) (all []streams.Span) {
	for _, a := range arrays {
		all = append(all, a.Data)
	}
	return all
}

// findAccess returns the index of an access, or -1 if the name is unknown.
func findAccess(all []Access, name string) int {
	for i := range all {
		if all[i].Name == name {
			return i
		}
	}
	return -1
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// keywords are the words of C++ and CUDA that a source cannot use as names.
var keywords = strings.Fields(
	`alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
	compl concept const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default
	delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
	mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
	reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template this
	thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
	xor_eq threadIdx blockIdx blockDim gridDim warpSize NULL NAN INFINITY assert errno`,
)

// taken are the macros of kernels/cu and of source.go, and the function call generated by source.go.
var taken = strings.Fields(
	`call ADD AFFINES ALL ALL_READ_ONLY ARGUMENTS ARRAY_OF BYTES_OF CLASS_OF DIMS EACH_PART FED FEW_ARRAYS FIELDS
	FILL FORWARD FRAME_BYTES FRAME_OF GHOSTS GHOSTS_DEPTH GHOSTS_X GHOSTS_Y GIVE HEIGHT IDENTITY INITIAL INNER_STORES
	KERNEL LAYERED LAYERS LAYERS_ LOAD MAKE MEASURED_KERNEL MEASURES MEMBER MOMENT NEVER_LINKED NEXT NORM NORMS NUMBER
	ONE_LAYER ONE_MORE OPERATIONS PACED PLANES POINTER PREFETCH RANK_BLOCKS RANK_CALLED RANK_COPY RANK_LAYERS
	RANK_STEPS_BYTES RANK_TAGS RANK_THREADS RANK_WORDS READS REAL REDUCED REDUCTIONS REFLECTS REG_LAYERS SCARCE SEVERAL_LAYERS
	SLOT_PLACES STAGE STAGES STAGE_BYTES STEP STEPS STEPS_BYTES STEPS_THREADS STOP STORE STREAMS SWEEP_BYTES TARGETS
	TOTAL TOTALS WIDTH WRITES WRITTEN`,
)

// checkName returns an error unless a source can use a name.
func checkName(name string) error {
	switch {
	case !identifier.MatchString(name):
		return fmt.Errorf("%q must be a C identifier", name)
	case slices.Contains(keywords, name) || strings.HasPrefix(name, "__"):
		return fmt.Errorf("%q must not be a keyword of C++ or CUDA", name)
	case slices.Contains(taken, name):
		return fmt.Errorf("%q must not be a name used by the kernels: use another one, or lower case", name)
	}
	return nil
}

// Coordinates give the positions of points: index i of an axis is at (i + Shift) * Spacing. The lower end of the
// axis is at 0 with shift 1 at a Dirichlet face, 0.5 at a Neumann face, and 0 if the axis is periodic.
type Coordinates struct {
	Shift   [3]float64 // position of index 0, in spacings; default 0
	Spacing [3]float64 // distance between points, per axis
}

// Moment is the time step of a sweep.
type Moment struct {
	Step          int64   // number of the step, counted from 1
	Start, Length float64 // time of the first step, and length of each; default 0
}

// Time returns the time after a part of the step, from 0, its beginning, to 1. That of 0 is the time() of kernels.
func (m Moment) Time(part float64) float64 {
	return m.Start + float64((float64(m.Step-1)+part)*m.Length)
}

// Give sets the parameters of a point function for a step: p points to a copy of those that all steps begin with, which
// is of the type of Point.Parameters.
type Give func(m Moment, p any) error

// frameNumbers are those of struct Frame of site.cuh before the parameters.
const frameNumbers = 3 + 6
