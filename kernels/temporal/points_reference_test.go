package temporal

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/stencil"
)

// randomPoint is a point function made of random sums, with what computes it point by point.
type randomPoint struct {
	dims     int
	elements []sweep.Element // of the variables, then of the coefficient
	reads    []sweep.Access  // of the variables, then of the coefficient
	sums     [][][]term      // of each variable and component
}

// term is a number that is read, times a weight.
type term struct {
	access, component int
	at                domain.Vec
	weight            float64
}

// fieldsOf are the types of variables.
var fieldElements = []sweep.Element{"float64", "float32", "int32", "float64", "uint8"}

// newRandomPoint returns one that reads as far as the radius.
func newRandomPoint(dims int, radius domain.Radius, rng *rand.Rand) *randomPoint {
	p := &randomPoint{dims: dims}
	for i := range 1 + rng.IntN(3) {
		p.elements = append(p.elements, fieldElements[rng.IntN(len(fieldElements))])
		a := sweep.Access{Name: fmt.Sprintf("u%d", i), Element: p.elements[i], Components: 1 + rng.IntN(2)}
		for range a.Components {
			a.Footprints = append(a.Footprints, randomFootprint(dims, radius, rng))
		}
		p.reads = append(p.reads, a)
	}
	p.elements = append(p.elements, "float32")
	p.reads = append(p.reads, sweep.Access{Name: "coefficient", Element: "float32", Footprint: randomFootprint(dims, radius, rng)})
	for i := range p.reads[:len(p.reads)-1] {
		var all [][]term
		for range p.reads[i].Components {
			all = append(all, p.randomSum(rng))
		}
		p.sums = append(p.sums, all)
	}
	return p
}

func randomFootprint(dims int, radius domain.Radius, rng *rand.Rand) stencil.Footprint {
	all := []domain.Vec{{}}
	for range rng.IntN(6) {
		var o domain.Vec
		for a := range dims {
			o[a] = rng.IntN(radius.Minus[a]+radius.Plus[a]+1) - radius.Minus[a]
		}
		all = append(all, o)
	}
	return stencil.Offsets(all...)
}

// randomSum reads all offsets of all variables.
func (p *randomPoint) randomSum(rng *rand.Rand) (all []term) {
	for i, a := range p.reads {
		for q := range max(1, a.Components) {
			for _, o := range p.footprint(i, q) {
				all = append(all, term{i, q, o, float64(1+rng.IntN(7)) / 16})
			}
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (p *randomPoint) footprint(access, component int) stencil.Footprint {
	if a := p.reads[access]; len(a.Footprints) > 0 {
		return a.Footprints[component]
	}
	return p.reads[access].Footprint
}

// value is what a sum gives at a point and a step: get returns what is read. It is kept small.
func value(sum []term, e sweep.Element, at domain.Vec, step int64, get func(t term) float64) float64 {
	v := float64(0.125 * float64(int64(at[0]+3*at[1]+5*at[2])+step))
	for _, t := range sum {
		v += float64(t.weight * get(t))
	}
	v = math.Mod(v, 101)
	switch e {
	case "float32":
		return float64(float32(v))
	case "int32", "uint8":
		return math.Floor(math.Abs(v))
	}
	return v
}

type scale struct{ Eighth float64 }

// point returns the point function with its accesses, those that are read first, and their next levels.
func (p *randomPoint) point() (f sweep.Point, accesses []sweep.Access, next []int) {
	var text strings.Builder
	text.WriteString("template <typename P> __device__ __forceinline__ void mixed(P &p) {\n")
	accesses = slices.Clone(p.reads)
	for i := range p.reads {
		if i < len(p.sums) {
			next = append(next, len(p.reads)+i)
		} else {
			next = append(next, -1)
		}
	}
	for i, all := range p.sums {
		accesses = append(accesses, sweep.Access{Name: fmt.Sprintf("next%d", i), Element: p.elements[i], Components: len(all), Write: true})
		next = append(next, -1)
		for q, sum := range all {
			fmt.Fprintf(&text, "\t{\n\t\tdouble v = p.parameters.Eighth * (double)(p.i() + 3 * p.j() + 5 * p.k() + p.step());\n")
			for _, t := range sum {
				fmt.Fprintf(&text, "\t\tv += %v * (double)p.at(%s[%d], %d, %d, %d);\n", t.weight, p.reads[t.access].Name, t.component, t.at[0], t.at[1], t.at[2])
			}
			cast := map[sweep.Element]string{"float64": "v", "float32": "(float)v", "int32": "(int)fabs(v)", "uint8": "(unsigned char)fabs(v)"}[p.elements[i]]
			fmt.Fprintf(&text, "\t\tv = fmod(v, 101.0);\n\t\tp.set(next%d[%d], %s);\n\t\tp.reduce(total, v);\n\t}\n", i, q, cast)
		}
	}
	text.WriteString("}\n")
	f = sweep.Point{Name: "mixed", Dims: p.dims, CUDA: text.String(), Go: p.twin, Parameters: scale{0.125}, Reductions: []sweep.Reduction{{Name: "total", Op: sweep.Sum}}}
	return f, accesses, next
}

func (p *randomPoint) twin(r *sweep.Row) {
	total, eighth := r.Reduced("total"), sweep.Parameters[scale](r).Eighth
	for i, all := range p.sums {
		for q, sum := range all {
			v := make([]float64, r.N)
			for x := range v {
				v[x] = float64(eighth * float64(int64(r.I+x+3*r.J+5*r.K)+r.Step()))
			}
			for _, t := range sum {
				row := rowOf(r, p.reads[t.access].Name, p.elements[t.access], t)
				for x := range v {
					v[x] += float64(t.weight * row(x))
				}
			}
			name := fmt.Sprintf("next%d", i)
			for x := range v {
				v[x] = math.Mod(v[x], 101)
				switch p.elements[i] {
				case "float64":
					sweep.AtComponent[float64](r, name, q, 0, 0, 0)[x] = v[x]
				case "float32":
					sweep.AtComponent[float32](r, name, q, 0, 0, 0)[x] = float32(v[x])
				case "int32":
					sweep.AtComponent[int32](r, name, q, 0, 0, 0)[x] = int32(math.Abs(v[x]))
				case "uint8":
					sweep.AtComponent[uint8](r, name, q, 0, 0, 0)[x] = uint8(math.Abs(v[x]))
				}
				total[x] = v[x]
			}
		}
	}
}

func rowOf(r *sweep.Row, name string, e sweep.Element, t term) func(x int) float64 {
	switch e {
	case "float64":
		return numbers(sweep.AtComponent[float64](r, name, t.component, t.at[0], t.at[1], t.at[2]))
	case "float32":
		return numbers(sweep.AtComponent[float32](r, name, t.component, t.at[0], t.at[1], t.at[2]))
	case "int32":
		return numbers(sweep.AtComponent[int32](r, name, t.component, t.at[0], t.at[1], t.at[2]))
	}
	return numbers(sweep.AtComponent[uint8](r, name, t.component, t.at[0], t.at[1], t.at[2]))
}

func numbers[T sweep.Number](row []T) func(x int) float64 {
	return func(x int) float64 { return float64(row[x]) }
}

// pointsProblem is a pass of a point function to be checked.
type pointsProblem struct {
	*randomPoint
	point    sweep.Point
	accesses []sweep.Access
	next     []int
	radius   domain.Radius // of all variables
	sides    []Sides       // by access
	box      domain.Box
	depth    int
	step     int64
	arrays   []*testArray // of the accesses and their components
}

// testArray is an array with its values as numbers.
type testArray struct {
	access, component int
	element           sweep.Element
	layout            domain.Layout
	values            []float64
	stored            []float64
}

func newPointsProblem(t testing.TB, f *randomPoint, box domain.Box, sides []Sides, depth int, rng *rand.Rand) *pointsProblem {
	t.Helper()
	p := &pointsProblem{randomPoint: f, box: box, depth: depth, step: int64(rng.IntN(100))}
	p.point, p.accesses, p.next = f.point()
	for i := range f.sums {
		for q := range f.reads[i].Components {
			p.radius = farther(p.radius, f.footprint(i, q).Radius())
		}
	}
	p.sides = make([]Sides, len(p.accesses))
	for i := range f.sums {
		p.sides[len(f.reads)+i] = sides[i]
	}
	for i, a := range p.accesses {
		for q := range max(1, a.Components) {
			p.arrays = append(p.arrays, p.newArray(t, i, q, rng))
		}
	}
	return p
}

// newArray makes an array with as many ghosts as the pass reads; all else is no number that ever comes.
func (p *pointsProblem) newArray(t testing.TB, access, component int, rng *rand.Rand) *testArray {
	a := &testArray{access: access, component: component, element: p.accesses[access].Element}
	own := domain.Radius{}
	if access < len(p.reads) {
		own = p.footprint(access, component).Radius()
	}
	width, levels := own, p.depth
	all, more := p.radius, domain.Radius{}
	if access == len(p.reads)-1 {
		levels, more = p.depth-1, own
	}
	open := p.sides[len(p.reads)]
	for axis := range p.dims {
		if open.low(axis) == Open {
			width.Minus[axis] = levels*all.Minus[axis] + more.Minus[axis]
		}
		if open.high(axis) == Open {
			width.Plus[axis] = levels*all.Plus[axis] + more.Plus[axis]
		}
	}
	a.layout = kerneltest.Must(domain.NewLayout(p.box, width, a.element.Size()))(t)
	a.values = make([]float64, a.layout.Length)
	for i := range a.values {
		a.values[i] = unread[a.element]
	}
	if access >= len(p.reads) {
		return a
	}
	eachPoint(p.box.Grow(width), func(at domain.Vec) {
		v := float64(rng.IntN(90))
		if a.element == "float32" || a.element == "float64" {
			v = float64(float32(rng.Float64() - 0.5))
		}
		a.values[a.layout.Offset(at)] = v
	})
	if access == len(p.reads)-1 {
		return a // all its ghosts are as they are
	}
	eachPoint(p.box.Grow(width), func(at domain.Vec) {
		a.values[a.layout.Offset(at)] = p.at(a, a.of(a.values), at)
	})
	return a
}

var unread = map[sweep.Element]float64{"float64": math.NaN(), "float32": math.NaN(), "int32": -77777, "uint8": 255}

// of returns the numbers of an array by place.
func (a *testArray) of(values []float64) func(domain.Vec) float64 {
	return func(at domain.Vec) float64 { return values[a.layout.Offset(at)] }
}

// at is the value of a variable at a point of a level, or at a ghost, by what level gives at points. See Side.
func (p *pointsProblem) at(a *testArray, level func(domain.Vec) float64, at domain.Vec) float64 {
	sides, fixed, odd := p.sides[len(p.reads)+a.access], false, -1
	for axis := range p.dims {
		for end, side := range [2]Side{sides.low(axis), sides.high(axis)} {
			n, first, inward := p.box.Lo[axis]-1-at[axis], p.box.Lo[axis], 1
			if end == 1 {
				n, first, inward = at[axis]-p.box.Hi[axis], p.box.Hi[axis]-1, -1
			}
			switch {
			case n < 0 || side == Open:
			case side == Mirror:
				at[axis] = first + inward*n
			case side == Repeat:
				at[axis] = first
			case side == Odd && n > 0:
				odd = axis
			default:
				fixed = true
			}
		}
	}
	switch {
	case odd >= 0:
		inward := domain.Vec{}
		if inward[odd] = 1; at[odd] >= p.box.Hi[odd] {
			inward[odd] = -1
		}
		face := at.Add(inward)
		v := 2*p.at(a, level, face) - p.at(a, level, face.Add(inward))
		if a.element == "float32" {
			return float64(float32(v))
		}
		return v
	case fixed:
		return a.values[a.layout.Offset(at)]
	}
	return level(at)
}

// find returns the array of an access.
func (p *pointsProblem) find(access, component int) *testArray {
	for _, a := range p.arrays {
		if a.access == access && a.component == component {
			return a
		}
	}
	return nil
}

// want returns the last levels of all variables and components, by sweeps one after the other.
func (p *pointsProblem) want() (now map[*testArray]func(domain.Vec) float64) {
	now = map[*testArray]func(domain.Vec) float64{}
	for _, a := range p.arrays {
		if a.access < len(p.reads) {
			now[a] = a.of(a.values)
		}
	}
	for l := 1; l <= p.depth; l++ {
		region := p.box
		for axis := range p.dims {
			if p.sides[len(p.reads)].low(axis) == Open {
				region.Lo[axis] -= (p.depth - l) * p.radius.Minus[axis]
			}
			if p.sides[len(p.reads)].high(axis) == Open {
				region.Hi[axis] += (p.depth - l) * p.radius.Plus[axis]
			}
		}
		next := map[*testArray]func(domain.Vec) float64{p.find(len(p.reads)-1, 0): now[p.find(len(p.reads)-1, 0)]}
		for i, all := range p.sums {
			for q, sum := range all {
				size, level := region.Size(), make([]float64, region.Points())
				place := func(at domain.Vec) int {
					o := at.Sub(region.Lo)
					return o[0] + size[0]*(o[1]+size[1]*o[2])
				}
				eachPoint(region, func(at domain.Vec) {
					level[place(at)] = value(sum, p.elements[i], at, p.step+int64(l)-1, func(t term) float64 {
						a := p.find(t.access, t.component)
						if t.access == len(p.reads)-1 {
							return now[a](at.Add(t.at))
						}
						return p.at(a, now[a], at.Add(t.at))
					})
				})
				next[p.find(i, q)] = func(at domain.Vec) float64 {
					if !region.Contains(at) {
						panic(fmt.Sprintf("level %d has no point %v", l, at))
					}
					return level[place(at)]
				}
			}
		}
		now = next
	}
	return now
}

// check compares what a pass has stored, and sees that it has stored nothing else.
func (p *pointsProblem) check(t *testing.T) {
	t.Helper()
	wrong := 0
	for a, want := range p.want() {
		if a.access == len(p.reads)-1 {
			continue
		}
		to := p.find(len(p.reads)+a.access, a.component)
		eachPoint(p.box, func(at domain.Vec) {
			o := to.layout.Offset(at)
			if got, want := to.stored[o], want(at); got != want && wrong < 5 {
				wrong++
				t.Errorf("variable %d, component %d: point %v is %v, not %v", a.access, a.component, at, got, want)
			}
			to.stored[o] = unread[to.element]
		})
		for o, v := range to.stored {
			if u := unread[to.element]; v != u && u == u || v == v && u != u {
				t.Fatalf("element %d, which is no point of the box, was written", o)
			}
		}
	}
}

// run makes a pass and checks what it stored.
func (p *pointsProblem) run(t *testing.T, b *kerneltest.Bench, pass func(arrays sweep.Arrays) *sweep.Launch) {
	t.Helper()
	arrays := p.upload(b)
	l := pass(arrays)
	l.SetMoment(sweep.Moment{Step: p.step})
	b.Do(b.Stream.Launch(l.Kernel))
	for _, a := range p.arrays {
		a.stored = a.decode(kerneltest.Get[byte](b, arrays[a.access][a.component].Data))
	}
	p.check(t)
	b.Do(l.Close())
}

func (p *pointsProblem) upload(b *kerneltest.Bench) sweep.Arrays {
	all := make(sweep.Arrays, len(p.accesses))
	for _, a := range p.arrays {
		all[a.access] = append(all[a.access], kernels.Array{Data: kerneltest.Upload(b, a.encode()), Layout: a.layout})
	}
	return all
}

func (a *testArray) encode() (all []byte) {
	for _, v := range a.values {
		switch a.element {
		case "float64":
			all = binary.NativeEndian.AppendUint64(all, math.Float64bits(v))
		case "float32":
			all = binary.NativeEndian.AppendUint32(all, math.Float32bits(float32(v)))
		case "int32":
			all = binary.NativeEndian.AppendUint32(all, uint32(int32(v)))
		default:
			all = append(all, uint8(v))
		}
	}
	return all
}

func (a *testArray) decode(all []byte) (values []float64) {
	for i := 0; i < len(all); i += a.element.Size() {
		switch a.element {
		case "float64":
			values = append(values, math.Float64frombits(binary.NativeEndian.Uint64(all[i:])))
		case "float32":
			values = append(values, float64(math.Float32frombits(binary.NativeEndian.Uint32(all[i:]))))
		case "int32":
			values = append(values, float64(int32(binary.NativeEndian.Uint32(all[i:]))))
		default:
			values = append(values, float64(all[i]))
		}
	}
	return values
}

func (p *pointsProblem) String() string {
	return fmt.Sprintf("dims=%d/%v/radius=%v/size=%v/sides=%v/depth=%d", p.dims, p.elements[:len(p.sums)], p.radius, p.box.Size(), p.sides[len(p.reads):], p.depth)
}

// randomPointSides are some that the variables can have on a box: all are open on the same ones.
func (p *randomPoint) randomSides(radius domain.Radius, size domain.Vec, rng *rand.Rand) (all []Sides) {
	var open [6]bool
	for i := range open[:2*p.dims] {
		open[i] = rng.IntN(4) == 0
	}
	for i := range p.sums {
		var sides Sides
		for k := range sides[:2*p.dims] {
			if open[k] {
				continue
			}
			most := []domain.Vec{radius.Minus, radius.Plus}[k%2][k/2]
			sides[k] = Side(1 + rng.IntN(4))
			if real := p.elements[i] == "float64" || p.elements[i] == "float32"; sides[k] == Odd && (!real || most > 2) {
				sides[k] = Fixed
			}
			if sides[k] == Mirror && size[k/2] < most {
				sides[k] = Repeat
			}
		}
		all = append(all, sides)
	}
	return all
}
