package sweep

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/streams"
)

// ErrDiffer means that the CUDA source and the Go counterpart of a point function gave different results.
var ErrDiffer = errors.New("the CUDA source and the Go counterpart differ")

// Check runs the CUDA source and the Go counterpart of a point function on random data, in boxes of many shapes,
// and compares the memory, norms and reductions afterwards. On a GPU the source runs there; for a CPU device it is
// compiled as C++ for the CPU, which needs g++, see ErrNoCompiler. If the source reads at an offset that is not a
// constant in the footprint, the error is ErrFootprint. Reals are random between 1/2 and 3/2, integers take all
// values.
//
// With ulps 0 all bits must be equal, except those of fast sums. Functions such as exp and pow differ in their
// last bits between backends: with ulps > 0 reals may differ by so many units in the last place, counted in
// floating-point numbers, norms and reductions by the corresponding amount per point, and integers not at all.
// docs/reference/steps.md lists the functions with equal bits.
func Check(c *kernels.Compiler, d *streams.Device, p Point, accesses []Access, ulps uint64) (err error) {
	if d == nil {
		return errNoDevice
	}
	n, err := newPlan(p, accesses)
	if err != nil {
		return err
	}
	if !p.runsOnCPU() {
		return fmt.Errorf("sweep: point function %q must have a Go counterpart", p.Name)
	}
	if !p.hasSource() {
		return fmt.Errorf("sweep: point function %q has no CUDA source to compare", p.Name)
	}
	k := &checker{
		compiler: c, device: d, plan: n, form: n.form(), random: rand.New(rand.NewPCG(1, 2)),
		onCPU: map[string]*onCPU{}, ulps: ulps,
	}
	defer func() { err = errors.Join(err, k.close()) }()
	hosts, err := streams.HostPlatform(1).Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, streams.CloseAll(hosts)) }()
	k.host = hosts[0]
	if d.GoKernels && p.linear == nil {
		if err := n.checkConstants(k.form); err != nil {
			return err
		}
	}
	for _, l := range k.layouts() {
		if err := k.layout(l); err != nil {
			return err
		}
	}
	return nil
}

// checker compares a source and its Go counterpart.
type checker struct {
	compiler     *kernels.Compiler
	device, host *streams.Device
	plan         *plan
	form         form
	random       *rand.Rand
	onCPU        map[string]*onCPU // by the classes of arrays
	onGPU        *onGPU
	ulps         uint64 // allowed difference of reals
}

// layoutCase is a set of arrays of one size with the same kind of layout.
type layoutCase struct {
	size  domain.Vec
	grow  func(array int) int // ghosts beyond those read
	same  bool                // all have the ghosts of the one with the most
	loose bool                // user-defined rows and planes
	all   bool                // many boxes; otherwise only the whole one
}

func (k *checker) layouts() []layoutCase {
	none := func(int) int { return 0 }
	other := func(array int) int { return array % 3 }
	all := []layoutCase{
		{size: domain.Vec{40, 3, 9}, grow: none, same: true, all: true},
		{size: domain.Vec{37, 12, 11}, grow: other},
		{size: domain.Vec{21, 9, 10}, grow: none, loose: true},
		{size: domain.Vec{300, 2, 18}, grow: none, same: true},
	}
	if k.plan.point.Dims == 2 {
		for i, l := range all {
			all[i].size = domain.Vec{l.size[0], l.size[1] * l.size[2], 1}
		}
	}
	return all
}

// boxes returns the boxes to sweep in an owned box, grouped by launch.
func (k *checker) boxes(owned domain.Box, many bool) (all [][]domain.Box) {
	radius := k.plan.radius()
	for a := range k.plan.point.Dims {
		radius.Minus[a], radius.Plus[a] = max(1, radius.Minus[a]), max(1, radius.Plus[a])
	}
	inner, slabs := domain.Split(owned, radius)
	all = [][]domain.Box{{owned}, slabs}
	if !inner.Empty() {
		all = append(all, []domain.Box{inner})
	}
	for width := 1; many && width < owned.Size()[0]; width += 3 {
		b := owned
		b.Lo[0] += width % 7
		b.Hi[0] = min(b.Hi[0], b.Lo[0]+width)
		all = append(all, []domain.Box{b})
	}
	return all
}

// layout checks all boxes and shapes with arrays of one layout.
func (k *checker) layout(c layoutCase) error {
	owned := domain.Box{Lo: domain.Vec{5, 3, 2}}
	if k.plan.point.Dims == 2 {
		owned.Lo[2] = 0
	}
	owned.Hi = owned.Lo.Add(c.size)
	arrays, err := k.arrays(owned, c)
	if err != nil {
		return err
	}
	defer func() {
		for _, a := range arrays {
			a.Data.Memory.Close()
		}
	}()
	for i, boxes := range k.boxes(owned, c.all) {
		shapes := k.form.shapes
		if i > 0 {
			shapes = shapes[:1]
		}
		for _, shape := range shapes {
			if err := k.compare(arrays, boxes, shape); err != nil {
				return fmt.Errorf("sweep: point function %q, boxes %v of %v, shape %+v: %w", k.plan.point.Name, boxes,
					owned, shape, err)
			}
		}
	}
	return nil
}

// arrays allocates the arrays of all accesses on the host.
func (k *checker) arrays(owned domain.Box, c layoutCase) (all []kernels.Array, err error) {
	for _, a := range k.plan.accesses {
		for q := range a.components() {
			width, size := a.footprint(q).Radius(), a.Element.Size()
			if c.same {
				width = k.plan.radius()
			}
			for axis := range k.plan.point.Dims {
				width.Minus[axis] += c.grow(len(all))
				width.Plus[axis] += c.grow(len(all) + 1)
			}
			l, err := domain.NewLayout(owned, width, size)
			if c.loose {
				full := owned.Grow(width).Size()
				pitch := int64(full[0] + 3 + len(all)%2)
				plane := pitch * int64(full[1]+1)
				first := int64(width.Minus[0]) + int64(width.Minus[1])*pitch + int64(width.Minus[2])*plane + 1
				l, err = domain.NewStridedLayout(owned, width, size, first, pitch, plane)
			}
			if err != nil {
				return nil, err
			}
			if a.Constant != [3]bool{} {
				l = l.Constant(a.Constant)
			}
			m, err := k.host.Alloc((l.Bytes() + 7) / 8 * 8)
			if err != nil {
				return nil, err
			}
			all = append(all, kernels.Array{Data: m.Span(0, l.Bytes()), Layout: l})
		}
	}
	return all, nil
}

// fill returns random contents for all arrays.
func (k *checker) fill(arrays []kernels.Array) (all [][]byte) {
	at := 0
	for _, a := range k.plan.accesses {
		for range a.components() {
			bytes := make([]byte, arrays[at].Layout.Bytes())
			switch a.Element {
			case domain.Float64:
				for i, v := 0, streams.View[float64](bytes); i < len(v); i++ {
					v[i] = 0.5 + k.random.Float64()
				}
			case domain.Float32:
				for i, v := 0, streams.View[float32](bytes); i < len(v); i++ {
					v[i] = 0.5 + k.random.Float32()
				}
			default:
				for i := range bytes {
					bytes[i] = byte(k.random.Uint32())
				}
			}
			all, at = append(all, bytes), at+1
		}
	}
	return all
}

// compare runs the Go counterpart and the source, with and without norms and reductions.
func (k *checker) compare(arrays []kernels.Array, boxes []domain.Box, shape Shape) error {
	contents, moment := k.fill(arrays), Moment{Step: 3, Start: 0.25, Length: 0.1}
	want, wantTotals, err := k.counterpart(arrays, boxes, contents, moment)
	if err != nil {
		return err
	}
	variants := []string{""}
	if k.plan.totals() > 0 {
		variants = append(variants, withMeasured)
	}
	for _, variant := range variants {
		got := make([][]byte, len(contents))
		for i := range got {
			got[i] = slices.Clone(contents[i])
		}
		s := shape
		if variant == withMeasured {
			s = k.form.measuredShape(shape)
		}
		totals, err := k.source(arrays, boxes, s, variant, got, moment)
		if err != nil {
			return err
		}
		if err := k.sameArrays(arrays, got, want); err != nil {
			return err
		}
		if variant == "" {
			continue
		}
		if err := k.sameTotals(k.plan.values(totals), k.plan.values(wantTotals), boxes); err != nil {
			return err
		}
	}
	return nil
}

// counterpart returns the contents after the Go counterpart, and its norms and reductions.
func (k *checker) counterpart(
	arrays []kernels.Array, boxes []domain.Box, contents [][]byte, m Moment,
) (after [][]byte, totals slot, err error) {
	defer streams.Caught(&err, "the Go counterpart of", k.plan.point.Name)
	view := func(a kernels.Array) []byte { return a.Data.Memory.Bytes()[:a.Layout.Bytes()] }
	for i, a := range arrays {
		copy(view(a), contents[i])
	}
	totals = make(slot, 8*k.plan.totals())
	spec := k.plan.hostSpec("check", k.plan.split(arrays), boxes, totals)
	_ = k.plan.set(spec.Argument, m, nil) // only a Give fails
	spec.RunWith(spec.Argument)
	for _, a := range arrays {
		after = append(after, slices.Clone(view(a)))
	}
	return after, totals, nil
}

// source runs the CUDA source on the contents, and returns its norms and reductions.
func (k *checker) source(
	arrays []kernels.Array, boxes []domain.Box, shape Shape, variant string, contents [][]byte, m Moment,
) (slot, error) {
	if !k.device.GoKernels {
		if k.onGPU == nil {
			var err error
			if k.onGPU, err = newOnGPU(k.compiler, k.device, k.plan); err != nil {
				return nil, err
			}
		}
		return k.onGPU.launch(arrays, boxes, variant, shape, contents, m)
	}
	p := k.plan.newLaunchPlan(k.form, arrays, boxes, shape)
	key := fmt.Sprint(p.classes)
	if k.onCPU[key] == nil {
		made, err := newOnCPU(k.plan, k.form, p.classes)
		if err != nil {
			return nil, err
		}
		k.onCPU[key] = made
	}
	found, err := k.onCPU[key].launch(&p, variant, contents, m)
	if err != nil {
		return nil, err
	}
	total := make(slot, 8*k.plan.totals())
	k.plan.join(total, found)
	return total, nil
}

// sameArrays returns an error that names the first point whose difference exceeds the limit.
func (k *checker) sameArrays(arrays []kernels.Array, got, want [][]byte) error {
	at := 0
	for _, a := range k.plan.accesses {
		for q := range a.components() {
			size := a.Element.Size()
			for i := 0; i < len(want[at]); i += size {
				g, w := got[at][i:i+size], want[at][i:i+size]
				if slices.Equal(g, w) || isNaN(a.Element, g) && isNaN(a.Element, w) {
					continue
				}
				apart, real := ulps(a.Element, g, w)
				if real && apart <= k.ulps {
					continue
				}
				err := fmt.Errorf("%w: %s[%d] at %v: source %v, Go %v", ErrDiffer, a.Name, q,
					pointAt(arrays[at].Layout, int64(i/size)), show(a.Element, g), show(a.Element, w))
				if real {
					err = fmt.Errorf("%w: differ by %d ulps", err, apart)
				}
				return err
			}
			at++
		}
	}
	return nil
}

// sameTotals compares norms and reductions.
func (k *checker) sameTotals(got, want []float64, boxes []domain.Box) error {
	points := 0.0
	for _, b := range boxes {
		points += float64(b.Points())
	}
	for i, part := range k.plan.slot {
		if i < 4*len(k.plan.norms) && part.op != Sum && math.IsNaN(got[i+1]) && math.IsNaN(want[i+1]) {
			continue // the maxima of norms may leave out NaNs, see rows.Norms
		}
		tolerance := 4 * float64(k.ulps) * k.epsilon() * (math.Abs(want[i]) + points)
		if part.op == Sum && k.plan.point.Sums == sums.Fast {
			tolerance += 1e-12 * (math.Abs(want[i]) + points)
		}
		if got[i] != want[i] && !(math.Abs(got[i]-want[i]) <= tolerance) && !math.IsNaN(want[i]) ||
			math.IsNaN(got[i]) != math.IsNaN(want[i]) {
			return fmt.Errorf("%w: total %d of norms and reductions: source %v, Go %v", ErrDiffer, i, got[i], want[i])
		}
	}
	return nil
}

// epsilon is the unit in the last place of 1 in the least precise written array.
func (k *checker) epsilon() float64 {
	for _, a := range k.plan.accesses {
		if a.Write && a.Element == domain.Float32 {
			return 0x1p-23
		}
	}
	return 0x1p-52
}

// ulps returns the number of steps between adjacent reals from one value to the other; ok is false for integers
// and NaN.
func ulps(e domain.Element, a, b []byte) (n uint64, ok bool) {
	if isNaN(e, a) || isNaN(e, b) {
		return 0, false
	}
	order := func(bits, sign uint64) int64 { // of reals; both zeros are 0
		if bits&sign != 0 {
			return -int64(bits &^ sign)
		}
		return int64(bits)
	}
	var x, y int64
	switch e {
	case domain.Float64:
		x, y = order(streams.View[uint64](a)[0], 1<<63), order(streams.View[uint64](b)[0], 1<<63)
	case domain.Float32:
		x, y = order(uint64(streams.View[uint32](a)[0]), 1<<31), order(uint64(streams.View[uint32](b)[0]), 1<<31)
	default:
		return 0, false
	}
	return uint64(max(x, y)) - uint64(min(x, y)), true
}

func isNaN(e domain.Element, bytes []byte) bool {
	switch e {
	case domain.Float64:
		return math.IsNaN(streams.View[float64](bytes)[0])
	case domain.Float32:
		return math.IsNaN(float64(streams.View[float32](bytes)[0]))
	}
	return false
}

// show returns a value for messages.
func show(e domain.Element, bytes []byte) any {
	switch e {
	case domain.Float64:
		return streams.View[float64](bytes)[0]
	case domain.Float32:
		return streams.View[float32](bytes)[0]
	}
	return bytes
}

// pointAt is the inverse of Layout.Offset.
func pointAt(l domain.Layout, o int64) domain.Vec {
	o -= l.Offset(l.Owned.Lo.Sub(l.Width.Minus))
	return domain.Vec{int(o % l.Pitch), int(o % l.Plane / l.Pitch), int(o / l.Plane)}.Add(l.Owned.Lo).Sub(l.Width.Minus)
}

// close ends the processes that run sources on the CPU.
func (k *checker) close() error {
	var all []error
	for _, r := range k.onCPU {
		all = append(all, r.close())
	}
	return errors.Join(all...)
}
