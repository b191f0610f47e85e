package sweep

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/streams"
)

// ErrDiffer means that the CUDA source and the Go counterpart of a point function gave different results.
var ErrDiffer = errors.New("the CUDA source and the Go counterpart differ")

// CheckOptions are the options of Check.
type CheckOptions struct {
	// ULPs is by how many units in the last place reals may differ; norms and reductions may differ by the
	// corresponding amount per point, and integers not at all. Functions such as exp and pow differ in their last bits
	// between backends, see docs/reference/steps.md. Default 0: all bits must be equal, except those of fast sums.
	ULPs uint64

	// Ranges are the smallest and the largest value of accesses, by name. Default: of reals, 1/2 and 3/2 in half of the
	// comparisons and -2 and 2 in the others; of integers, 0 and 1 in half of them, and -3 and 3 in the others, without
	// a sign 0 and 3. A quarter of the reals are multiples of 1/2 or an end of the range.
	Ranges map[string][2]float64

	// Parameters sets the parameters for a step, as Stage.Parameters of a scheme.Step does. Default: those of the point
	// function. In half of the comparisons, reals that are 0 after that are replaced by random numbers.
	Parameters Give
}

// Check runs the CUDA source and the Go counterpart of a point function on random data, in boxes of many shapes, in
// random steps, and compares the memory, norms and reductions afterwards. On a GPU the source runs there; for a CPU
// device it is compiled as C++ for the CPU, which needs g++, see ErrNoCompiler. If the source reads at an offset that
// is not a constant in the footprint, the error is ErrFootprint. If the results differ it is ErrDiffer, with the values
// that the function read. NaN equals NaN, and 0 equals -0.
//
// With ULPs above 0, values of terms that cancel may differ by units in the last place of the median of all values,
// where the terms have both signs.
func Check(c *kernels.Compiler, d *streams.Device, p Point, accesses []Access, o CheckOptions) (err error) {
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
		onCPU: map[string]*onCPU{}, options: o,
	}
	if err := k.checkRanges(); err != nil {
		return fmt.Errorf("sweep: point function %q: %w", p.Name, err)
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
	options      CheckOptions
	compared     int // number of comparisons so far
}

// wide reports whether a comparison is one with data of both signs.
func (k *checker) wide() bool { return k.compared%2 == 1 }

// checkRanges returns an error unless the accesses can have the values of the ranges.
func (k *checker) checkRanges() error {
	for name, r := range k.options.Ranges {
		at := findAccess(k.plan.accesses, name)
		if at < 0 {
			return fmt.Errorf("range of %q: access must exist", name)
		}
		for _, v := range r {
			if _, err := k.plan.accesses[at].Element.Encode(v); err != nil {
				return fmt.Errorf("range of %q: %w", name, err)
			}
		}
		if !(r[0] <= r[1]) || math.IsInf(r[1]-r[0], 0) {
			return fmt.Errorf("range of %q: must be finite and in order, got %v", name, r)
		}
	}
	return nil
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
				return fmt.Errorf("sweep: point function %q: %w, boxes %v of %v, shape %+v", k.plan.point.Name, err,
					boxes, owned, shape)
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
				width = width.Max(k.plan.radius())
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
		var values []byte
		for range 1024 {
			v, _ := a.Element.Encode(k.draw(a)) // in the range of the type
			values = append(values, v...)
		}
		for range a.components() {
			bytes, size := make([]byte, arrays[at].Layout.Bytes()), a.Element.Size()
			for i := 0; i < len(bytes); i += size {
				copy(bytes[i:], values[k.random.IntN(len(values)/size)*size:][:size])
			}
			all, at = append(all, bytes), at+1
		}
	}
	return all
}

// draw returns a random value of an access.
func (k *checker) draw(a Access) float64 {
	r, given := k.options.Ranges[a.Name]
	real := a.Element.IsReal()
	switch {
	case given:
	case real && k.wide():
		r = [2]float64{-2, 2}
	case real:
		r = [2]float64{0.5, 1.5}
	case !k.wide():
		r = [2]float64{0, 1}
	case a.Element[0] == 'u':
		r = [2]float64{0, 3}
	default:
		r = [2]float64{-3, 3}
	}
	if !real {
		return min(r[0]+math.Floor(k.random.Float64()*(r[1]-r[0]+1)), r[1])
	}
	v := r[0] + k.random.Float64()*(r[1]-r[0])
	if k.random.IntN(4) == 0 {
		v = math.Round(2*v)/2 + 0 // not -0
	}
	return max(r[0], min(v, r[1]))
}

// begin draws the moment and the parameters of a comparison.
func (k *checker) begin() (m Moment, err error) {
	defer streams.Caught(&err, "CheckOptions.Parameters of", k.plan.point.Name)
	m = Moment{Step: 1 + k.random.Int64N(50), Start: 0.25, Length: 0.1}
	frame := make([]byte, k.plan.frameBytes())
	copy(frame, k.plan.point.frame())
	if t := parametersType(k.plan.point.Parameters); t != nil {
		p := reflect.NewAt(t, unsafe.Pointer(&frame[frameNumbers*8]))
		if give := k.options.Parameters; give != nil {
			if err := give(m, p.Interface()); err != nil {
				return m, err
			}
		}
		if k.compared%4 >= 2 {
			k.replaceZeros(p.Elem())
		}
	}
	copy(k.plan.still, frame)
	return m, nil
}

// replaceZeros replaces the zeros among reals by random numbers.
func (k *checker) replaceZeros(v reflect.Value) {
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		if v.Float() == 0 {
			reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem().SetFloat(4*k.random.Float64() - 2)
		}
	case reflect.Array:
		for i := range v.Len() {
			k.replaceZeros(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			k.replaceZeros(v.Field(i))
		}
	}
}

// compare runs the Go counterpart and the source, with and without norms and reductions.
func (k *checker) compare(arrays []kernels.Array, boxes []domain.Box, shape Shape) error {
	defer func() { k.compared++ }()
	moment, err := k.begin()
	if err != nil {
		return err
	}
	contents := k.fill(arrays)
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
		if err := k.sameArrays(arrays, contents, got, want, moment); err != nil {
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
		copy(k.onGPU.sweeper.plan.still, k.plan.still)
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
func (k *checker) sameArrays(arrays []kernels.Array, before, got, want [][]byte, m Moment) error {
	at := 0
	for _, a := range k.plan.accesses {
		for q := range a.components() {
			size, typical := a.Element.Size(), math.NaN()
			for i := 0; i < len(want[at]); i += size {
				g, w := got[at][i:i+size], want[at][i:i+size]
				if slices.Equal(g, w) || isNaN(a.Element, g) && isNaN(a.Element, w) {
					continue
				}
				apart, real := ulps(a.Element, g, w)
				if real && apart <= k.options.ULPs {
					continue
				}
				if real && k.options.ULPs > 0 && k.wide() {
					if math.IsNaN(typical) {
						typical = median(a.Element, before[at], want[at])
					}
					unit := epsilon(a.Element) * typical
					if math.Abs(number64(a.Element, g)-number64(a.Element, w)) <= float64(k.options.ULPs)*unit {
						continue
					}
				}
				p := pointAt(arrays[at].Layout, int64(i/size))
				err := fmt.Errorf("%w: %s[%d] at %v: source %v, Go %v", ErrDiffer, a.Name, q, p, show(a.Element, g),
					show(a.Element, w))
				if real {
					err = fmt.Errorf("%w: differ by %d ulps", err, apart)
				}
				return fmt.Errorf("%w; %s; if such values never occur, set CheckOptions.Ranges", err,
					k.inputs(arrays, before, p, m))
			}
			at++
		}
	}
	return nil
}

// inputs describes what the function read at a point, as its source does.
func (k *checker) inputs(arrays []kernels.Array, before [][]byte, p domain.Vec, m Moment) string {
	var all []string
	at := 0
	for _, a := range k.plan.accesses {
		for q := range a.components() {
			name := a.Name
			if a.components() > 1 {
				name += fmt.Sprintf("[%d]", q)
			}
			for _, o := range a.footprint(q) {
				l, size := arrays[at].Layout, int64(a.Element.Size())
				if i := l.Offset(p.Add(o)) * size; i >= 0 && i+size <= int64(len(before[at])) {
					all = append(all, fmt.Sprintf("at(%s, %d, %d, %d) = %v", name, o[0], o[1], o[2],
						show(a.Element, before[at][i:i+size])))
				}
			}
			at++
		}
	}
	if len(all) > 40 {
		all = append(all[:40], "...")
	}
	all = append(all, fmt.Sprintf("step() = %d", m.Step))
	if t := parametersType(k.plan.point.Parameters); t != nil {
		p := reflect.NewAt(t, unsafe.Pointer(&k.plan.still[frameNumbers*8])).Elem()
		all = append(all, fmt.Sprintf("parameters = %+v", p))
	}
	return "inputs " + strings.Join(all, ", ")
}

// median returns the median of the sizes of the values that a function changed.
func median(e domain.Element, before, after []byte) float64 {
	var all []float64
	for i := 0; i < len(after); i += e.Size() {
		w := after[i : i+e.Size()]
		if v := math.Abs(number64(e, w)); !slices.Equal(before[i:i+e.Size()], w) && v <= math.MaxFloat64 {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
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
		tolerance := 4 * float64(k.options.ULPs) * k.epsilon() * (math.Abs(want[i]) + points)
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
func (k *checker) epsilon() (largest float64) {
	largest = epsilon(domain.Float64)
	for _, a := range k.plan.accesses {
		if a.Write {
			largest = max(largest, epsilon(a.Element))
		}
	}
	return largest
}

// epsilon is the unit in the last place of 1.
func epsilon(e domain.Element) float64 {
	if e == domain.Float32 {
		return 0x1p-23
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

func isNaN(e domain.Element, bytes []byte) bool { return e.IsReal() && math.IsNaN(number64(e, bytes)) }

// number64 returns a real.
func number64(e domain.Element, bytes []byte) float64 {
	if e == domain.Float32 {
		return float64(streams.View[float32](bytes)[0])
	}
	return streams.View[float64](bytes)[0]
}

// show returns a value for messages.
func show(e domain.Element, bytes []byte) any {
	if e == domain.Float32 {
		return streams.View[float32](bytes)[0]
	} else if e.IsReal() {
		return number64(e, bytes)
	}
	var wide [8]byte
	copy(wide[:], bytes) // GPUs and their hosts are little-endian
	bits, unused := binary.NativeEndian.Uint64(wide[:]), 64-8*len(bytes)
	if e[0] == 'u' {
		return bits
	}
	return int64(bits<<unused) >> unused
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
