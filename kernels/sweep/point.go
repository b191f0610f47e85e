package sweep

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// Point is what one point of a stage computes from what it reads.
//
// In CUDA it is a function of its name, which is inlined:
//
//	template <typename P> __device__ __forceinline__ void wave(P &p) {
//		const double sum = p.at(u, 1, 0, 0) + p.at(u, -1, 0, 0) + ...;
//		p.set(next, 2 * p.at(u) - p.at(old) + p.parameters.C2 * (sum - 6 * p.at(u)));
//	}
//
// p has
//
//	at(access, dx, dy, dz)   what an access holds at an offset from the point; 0, 0, 0 if left out.
//	                         Offsets are constants of its footprint. at(f[2], ...) is component 2.
//	set(access, value)       the value of a written access, or of a component, at the point. All are
//	                         set; one that is not is 0, or, in place, what it was
//	reduce(name, value)      the value of a reduction at the point; without it the point adds nothing
//	i(), j(), k()            the indices of the point in the whole grid, from 0
//	x(), y(), z()            where it lies, see Coordinates
//	step(), time()           the time step, and the time at which it begins, see Moment
//	parameters               the numbers of Parameters, under their names in Go
//
// The compiler contracts no products and sums, so that a Go twin that does the same operations,
// each product rounded by a conversion, gives the same bits. A GPU may call the function for points
// beside the box, with any values, and drops what it gives there.
type Point struct {
	Name string // of the function: an identifier of C
	Dims int    // 2 or 3
	CUDA string // the source, which may hold other functions too
	File string // what the compiler's messages call the source; Name.cu if empty

	// Go computes a row of points. It may be left out: host devices then refuse the function.
	Go func(r *Row)

	// Parameters is a struct of numbers of fixed size, or a pointer to one, with the values that
	// launches begin with; nil for none.
	Parameters any

	// Coordinates say where points lie.
	Coordinates Coordinates

	Reductions []Reduction

	// Sums is how sums of norms and reductions are taken.
	Sums sums.Mode

	// Elsewhere names accesses and reductions of other functions in the source, which this one does not use: a source
	// is compiled for each of its functions, with the names of that one. A scheme.Step finds them by itself.
	Elsewhere []string

	linear *stencil.Stencil // what Linear was given
}

// ErrNoTwin says that a host device was given a point function without its Go twin.
var ErrNoTwin = errors.New("the point function has no Go twin, which host devices need")

func (p Point) file() string {
	if p.File != "" {
		return p.File
	}
	return p.Name + ".cu"
}

// momentCall finds what of a source depends on the moment.
var momentCall = regexp.MustCompile(`\b(step|time)\s*\(\s*\)`)

// Momentary reports whether the function may ask for the step or the time: launches of it that are
// replayed would be told those of the first.
func (p Point) Momentary() bool {
	return p.linear == nil && (p.CUDA == "" || momentCall.MatchString(p.CUDA))
}

// placeCalls find, for each axis, the calls in a source by which a function asks for an index or a coordinate.
var placeCalls = [3]*regexp.Regexp{
	regexp.MustCompile(`\.\s*[ix]\s*\(\s*\)`), regexp.MustCompile(`\.\s*[jy]\s*\(\s*\)`), regexp.MustCompile(`\.\s*[kz]\s*\(\s*\)`),
}

// Placed reports whether the function may ask where a point lies along an axis, by its index or by its coordinate.
func (p Point) Placed(axis int) bool {
	return p.linear == nil && (p.CUDA == "" || placeCalls[axis].MatchString(p.CUDA))
}

// Key names all of the function that the time of a sweep depends on: of a linear stencil its shape, of
// others the source.
func (p Point) Key() string {
	if p.linear != nil {
		return fmt.Sprintf("linear %v", p.linear.Shape())
	}
	return fmt.Sprintf("%s %x", p.Name, sha256.Sum256([]byte(p.CUDA)))
}

// checkSource returns an error unless the source has the function, and names of others that it can use. Host devices
// do not compile it, and refuse what a GPU would.
func (p Point) checkSource() error {
	if strings.TrimSpace(p.CUDA) == "" {
		return errors.New("it has no CUDA source (Point.CUDA): GPUs need it, and host devices refuse what GPUs would")
	}
	if !regexp.MustCompile(`\b` + p.Name + `\b`).MatchString(p.CUDA) {
		return fmt.Errorf("its source has no function of its name: template <typename P> __device__ __forceinline__ void %s(P &p)", p.Name)
	}
	for _, name := range p.Elsewhere {
		if err := checkName(name); err != nil {
			return fmt.Errorf("Point.Elsewhere: %w", err)
		}
	}
	return nil
}

// check returns an error unless the function can be swept with the accesses.
func (p Point) check(accesses []Access) error {
	fail := func(err error) error { return fmt.Errorf("sweep: point function %q: %w", p.Name, err) }
	if err := checkName(p.Name); err != nil {
		return fail(fmt.Errorf("its name %w", err))
	}
	if p.Dims != 2 && p.Dims != 3 {
		return fail(fmt.Errorf("%d dimensions; 2 or 3 are possible", p.Dims))
	}
	if p.linear == nil {
		if err := p.checkSource(); err != nil {
			return fail(err)
		}
	}
	if err := checkAccesses(accesses, p.Dims); err != nil {
		return fail(err)
	}
	names := map[string]bool{p.Name: true}
	for _, a := range accesses {
		if a.Name == p.Name {
			return fail(fmt.Errorf("an access has its name"))
		}
		names[a.Name] = true
	}
	for _, r := range p.Reductions {
		if err := checkName(r.Name); err != nil {
			return fail(fmt.Errorf("reduction %w", err))
		}
		if names[r.Name] || !slices.Contains([]Operation{Sum, Max, Min}, r.Op) {
			return fail(fmt.Errorf("reduction %q by %q: names differ from each other, and operations are sum, max and min", r.Name, r.Op))
		}
		names[r.Name] = true
	}
	if p.Parameters != nil {
		if err := checkParameters(parametersType(p.Parameters)); err != nil {
			return fail(err)
		}
		if v := reflect.ValueOf(p.Parameters); v.Kind() == reflect.Pointer && v.IsNil() {
			return fail(fmt.Errorf("the pointer to its parameters, a %T, is nil", p.Parameters))
		}
	}
	return nil
}
