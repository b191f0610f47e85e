// Package sweep applies point functions to boxes of a subdomain: on a GPU by kernels that keep
// what neighbouring points read in registers, on a host device row by row.
//
// A [Point] is what one point of a stage computes, as CUDA C++ and as Go. An [Access] is what
// it reads or writes, under the name that the source uses. A [Sweeper] joins the two for a
// device; it makes launches ready, with norms and reductions on the way where they are wanted.
// A constant linear stencil is such a point function, see [Linear].
package sweep

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Element is the type of an access' values: "float32", "float64", "int8", "uint8", "int16",
// "uint16", "int32", "uint32", "int64" or "uint64".
type Element string

// elements are the types.
var elements = map[Element]struct {
	size int
	c    string // the name in CUDA C++
}{
	"float32": {4, "float"}, "float64": {8, "double"},
	"int8": {1, "signed char"}, "uint8": {1, "unsigned char"}, "int16": {2, "short"}, "uint16": {2, "unsigned short"},
	"int32": {4, "int"}, "uint32": {4, "unsigned"}, "int64": {8, "long long"}, "uint64": {8, "unsigned long long"},
}

// size returns the bytes of a value, 0 if e is none of the types.
func (e Element) size() int { return elements[e].size }

// real reports whether norms can be taken of the values.
func (e Element) real() bool { return e == "float32" || e == "float64" }

// Access is what a point function reads or writes: a field at one time level, of which a point
// has Components values, each in an array of its own.
type Access struct {
	Name       string  // in the source: an identifier of C
	Element    Element //
	Components int     // 0 counts as 1
	// Footprint is the offsets at which it is read. An empty one is the point itself, unless Write is set: what is
	// written is not read then. An access that is read and written is updated in place, and read at the point alone.
	Footprint stencil.Footprint
	// Footprints are those of each component, where they differ; Footprint is then empty.
	Footprints []stencil.Footprint
	Write      bool
	// Sparse says that at a point the function reads few of the offsets, as where a wall turns round
	// what comes from behind it: values are then loaded where it asks for them, and not all before.
	Sparse bool
	// Before names the access that reads the same field one level before, for norms of what is
	// written and of its change: both are real, have as many components, and the footprints hold
	// the point. An access that is updated in place may name itself.
	Before string
}

// Arrays are those of all accesses of a sweep, by access and component.
type Arrays [][]kernels.Array

func (a Access) components() int { return max(1, a.Components) }

// footprint returns that of a component.
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

// check returns an error unless the access can be one of a point function in so many dimensions.
func (a Access) check(dims int) error {
	fail := func(format string, values ...any) error {
		return fmt.Errorf("access %q "+format, append([]any{a.Name}, values...)...)
	}
	if err := checkName(a.Name); err != nil {
		return fail("has no name that a source could use: %w", err)
	}
	switch {
	case a.Element.size() == 0:
		return fail("has elements of type %q", a.Element)
	case a.Components < 0 || a.components() > maxArrays:
		return fail("has %d components", a.Components)
	case len(a.Footprints) > 0 && (len(a.Footprints) != a.components() || len(a.Footprint) > 0):
		return fail("has %d components and %d footprints, or one for all beside them", a.components(),
			len(a.Footprints))
	}
	for q := range a.components() {
		f := a.footprint(q)
		if err := f.Check(dims); err != nil {
			return fail("%w", err)
		}
		if a.Write && a.reads() && !slices.Equal(stencil.Offsets(f...), stencil.Point()) {
			return fail(
				"is written, and read at %v: in place only the point itself can be read; others may be written before",
				f)
		}
	}
	return nil
}

// checkAccesses checks all, and that names and pairs fit.
func checkAccesses(all []Access, dims int, reduces bool) error {
	arrays := 0
	written := false
	for i, a := range all {
		if err := a.check(dims); err != nil {
			return err
		}
		if slices.ContainsFunc(all[:i], func(b Access) bool { return b.Name == a.Name }) {
			return fmt.Errorf("two accesses are called %q", a.Name)
		}
		if err := checkBefore(all, a); err != nil {
			return err
		}
		arrays += a.components()
		written = written || a.Write
	}
	if arrays < 1 || arrays > maxArrays {
		return fmt.Errorf("%d arrays; must be between 1 and %d", arrays, maxArrays)
	}
	if !written && !reduces {
		return errors.New("it writes and reduces nothing")
	}
	return nil
}

// maxArrays bounds the arrays of a sweep: the argument of a launch, which has 4096 bytes, holds
// their addresses.
const maxArrays = 128

// checkBefore returns an error unless norms can be taken of an access that wants them.
func checkBefore(all []Access, a Access) error {
	if a.Before == "" {
		return nil
	}
	at := slices.IndexFunc(all, func(b Access) bool { return b.Name == a.Before })
	if at < 0 {
		return fmt.Errorf("access %q: there is no access %q before", a.Name, a.Before)
	}
	b := all[at]
	if !a.Write || !a.Element.real() || a.Element != b.Element || a.components() != b.components() {
		return fmt.Errorf(
			"access %q: norms are of reals that are written, and of as many components before as after; not of %q",
			a.Name, b.Name)
	}
	for q := range b.components() {
		if !b.footprint(q).Has([3]int{}) {
			return fmt.Errorf("access %q: norms need %q at the point itself, which its footprint %v lacks", a.Name,
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

// findAccess returns the place of an access, -1 if there is none of the name.
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

// taken are the macros of kernels/cu and of source.go, and the function call that source.go writes.
var taken = strings.Fields(
	`call ADD ALL ALL_READ_ONLY ARGUMENTS ARRAY_OF BYTES_OF CLASS_OF DIMS EACH_PART FEW_ARRAYS FIELDS FILL FORWARD
	FRAME_BYTES GHOSTS GHOSTS_DEPTH GHOSTS_X GHOSTS_Y HEIGHT IDENTITY INITIAL INNER_STORES KERNEL LAYERED LAYERS LAYERS_
	LOAD MAKE MEASURED_KERNEL MEASURES MEMBER NEVER_LINKED NEXT NORM NORMS NUMBER ONE_LAYER ONE_MORE OPERATIONS PLANES
	POINTER PREFETCH RANK_BLOCKS RANK_CALLED RANK_COPY RANK_LAYERS RANK_STEPS_BYTES RANK_TAGS RANK_THREADS RANK_WORDS
	READS REAL REDUCED REDUCTIONS REFLECTS REG_LAYERS SCALES SCARCE SEVERAL_LAYERS SLOT_PLACES STAGE STAGES STAGE_BYTES
	STEP STEPS STEPS_BYTES STEPS_THREADS STOP STORE STREAMS SWEEP_BYTES TARGETS TOTAL TOTALS WIDTH WRITES WRITTEN`,
)

// checkName returns an error unless a source can use a name.
func checkName(name string) error {
	switch {
	case !identifier.MatchString(name):
		return fmt.Errorf("%q is no identifier of C", name)
	case slices.Contains(keywords, name) || strings.HasPrefix(name, "__"):
		return fmt.Errorf("%q is a word of C++ or CUDA, which no source can use as a name", name)
	case slices.Contains(taken, name):
		return fmt.Errorf("%q is a name that the kernels around the source have: take another, or write it small", name)
	}
	return nil
}

// Coordinates say where points lie: index i of an axis at (i + Shift) * Spacing. The end 0 of the axis is at 0 with
// shift 1 at a Dirichlet face, 0.5 at a Neumann face, and 0 where the axis is periodic.
type Coordinates struct{ Shift, Spacing [3]float64 }

// Moment says which time step a sweep is of. Steps are counted from 1, and Length is that of each;
// the first begins at the time Start.
type Moment struct {
	Step          int64
	Start, Length float64
}

// time returns the time at which the step begins, computed as kernels do.
func (m Moment) time() float64 { return m.Start + float64(float64(m.Step-1)*m.Length) }

// frameNumbers are those of struct Frame of site.cuh before the parameters.
const frameNumbers = 3 + 6
