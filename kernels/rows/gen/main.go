// Command gen writes the assembly of package rows, and the Go declarations
// that go with it, with avo. Run it by go generate in the package's folder.
package main

import (
	"flag"
	"fmt"
	"log"
	"math/bits"
	"os"
	"regexp"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	// The same condition stands in select_amd64.go, and its opposite in
	// select_go.go.
	ConstraintExpr("amd64,!race,!purego")

	for _, set := range []instructions{avx512, avx2} {
		for _, e := range []element{float64s, float32s} {
			v := vector{set, e}
			for _, s := range stencils {
				s.write(v)
			}
			writeNorms(v)
		}
	}
	Generate()
	if err := group(flag.Lookup("stubs").Value.String()); err != nil {
		log.Fatal(err)
	}
}

// group joins parameters of one type in the declarations of a file, and wraps them where the line is too long.
func group(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	parameters := regexp.MustCompile(`(?m)^func \w+\(.*\)$`)
	text = parameters.ReplaceAllFunc(text, func(line []byte) []byte {
		function, list, _ := strings.Cut(strings.TrimSuffix(string(line), ")"), "(")
		var types []string // each with its names
		for _, p := range strings.Split(list, ", ") {
			name, of, _ := strings.Cut(p, " ")
			if last := len(types) - 1; last >= 0 && strings.HasSuffix(types[last], " "+of) {
				types[last] = strings.TrimSuffix(types[last], " "+of) + ", " + p
				continue
			}
			types = append(types, name+" "+of)
		}
		list = strings.Join(types, ", ")
		if len(function)+len(list) > 110 {
			list = "\n\t" + list + ",\n"
		}
		return []byte(function + "(" + list + ")")
	})
	return os.WriteFile(file, text, 0o644)
}

// stencil describes one of the functions of package rows.
type stencil struct {
	name         string
	rows         []string // the inputs besides centre
	coefficients []string
	formula      string // for the doc comment

	// apply writes the expression for the points p. The order of the calls to
	// add and mul is the order of the operations that package rows promises.
	apply func(a arithmetic, p points, w weights) reg.VecVirtual
}

var (
	plane = []string{"south", "north"}
	space = []string{"south", "north", "below", "above"}
)

var stencils = []stencil{
	{
		"star5", plane, []string{"alpha", "beta"},
		"alpha*c + beta*(((xp + yp) + xm) + ym)",
		func(a arithmetic, p points, w weights) reg.VecVirtual {
			return isotropic(a, p, w, "xp", "north", "xm", "south")
		},
	},
	{
		"star7", space, []string{"alpha", "beta"},
		"alpha*c + beta*(((((xp + yp) + zp) + xm) + ym) + zm)",
		func(a arithmetic, p points, w weights) reg.VecVirtual {
			return isotropic(a, p, w, "xp", "north", "above", "xm", "south", "below")
		},
	},
	{
		"star5Axes", plane, []string{"alpha", "bx", "by"},
		"(alpha*c + bx*(xp + xm)) + by*(yp + ym)",
		func(a arithmetic, p points, w weights) reg.VecVirtual {
			out := a.mul(w["alpha"], p["c"])
			out = axis(a, p, out, w["bx"], "xp", "xm")
			return axis(a, p, out, w["by"], "north", "south")
		},
	},
	{
		"star7Axes", space, []string{"alpha", "bx", "by", "bz"},
		"((alpha*c + bx*(xp + xm)) + by*(yp + ym)) + bz*(zp + zm)",
		func(a arithmetic, p points, w weights) reg.VecVirtual {
			out := a.mul(w["alpha"], p["c"])
			out = axis(a, p, out, w["bx"], "xp", "xm")
			out = axis(a, p, out, w["by"], "north", "south")
			return axis(a, p, out, w["bz"], "above", "below")
		},
	},
}

// points are where a stencil finds its inputs: xm, c and xp, which are three
// views of centre, and the rows by their own names.
type points map[string]Mem

// weights are the coefficients of a stencil, each in all elements of a vector.
type weights map[string]reg.VecVirtual

// isotropic writes alpha*c + beta*(the named neighbours, summed from the left).
func isotropic(a arithmetic, p points, w weights, first string, others ...string) reg.VecVirtual {
	sum := a.load(p[first])
	for _, name := range others {
		sum = a.add(sum, p[name])
	}
	return a.add(a.mul(w["alpha"], p["c"]), a.mul(w["beta"], sum))
}

// axis writes out + weight*(plus + minus).
func axis(a arithmetic, p points, out, weight reg.VecVirtual, plus, minus string) reg.VecVirtual {
	return a.add(out, a.mul(weight, a.add(a.load(p[plus]), p[minus])))
}

const (
	// unroll is the number of vectors in one turn of the main loop.
	unroll = 4

	// line is the size of a cache line in bytes.
	line = 64

	// ahead is how far ahead of the points done memory is asked for, in bytes.
	// It is a page, because that is where the processor's own prefetching
	// stops: it does not look into the next page until someone reads there.
	ahead = 4096
)

// write writes the function for one type of vector: a loop over rows.
func (s stencil) write(v vector) {
	name := s.name + v.elem.tag + string(v.set)
	pointers := append([]string{"dst", "centre"}, s.rows...)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(%s *%s, points, count, pitch int, %s %s)",
		strings.Join(pointers, ", "), v.elem.name, strings.Join(s.coefficients, ", "), v.elem.name))
	Pragma("noescape")
	Doc(name + " sets the points of count rows to " + s.formula + ".")

	r := row{stencil: s, elem: v.elem, base: map[string]reg.Register{}}
	for _, p := range pointers {
		r.base[p] = Load(Param(p), GP64())
	}
	r.points = Load(Param("points"), GP64())
	count := Load(Param("count"), GP64())
	pitch := Load(Param("pitch"), GP64())
	r.weights = weights{}
	for _, c := range s.coefficients {
		r.weights[c] = v.broadcast(c)
	}
	r.index, r.left = GP64(), GP64()

	Label("row")
	r.write(v)
	for _, p := range pointers {
		LEAQ(Mem{Base: r.base[p], Index: pitch, Scale: uint8(v.elem.size)}, r.base[p])
	}
	DECQ(count)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// row is the state of a stencil's function: where its row lies and how far it
// is along it.
type row struct {
	stencil
	elem    element
	base    map[string]reg.Register // the pointers of the arguments
	points  reg.Register            // in the row
	index   reg.GPVirtual           // the points done
	left    reg.GPVirtual           // the points to do
	weights weights
}

// write writes one row: what lies before the first aligned vector, a main loop
// over several vectors, one over single vectors, and what is left.
func (r row) write(v vector) {
	XORQ(r.index, r.index)
	MOVQ(r.points, r.left)
	r.first(v)
	r.loop("quad", unroll*v.points(), func() {
		r.prefetch(unroll * v.bytes())
		for u := range unroll {
			v.store(r.dst(u*v.bytes()), r.apply(v, u*v.bytes()))
		}
	})
	r.loop("single", v.points(), func() {
		v.store(r.dst(0), r.apply(v, 0))
	})
	r.last(v)
}

// first makes all that follows store to aligned memory, which saves a fifth of
// the time where rows begin one point off, as those of an interior do. It does
// a whole vector and goes on with the first aligned point, so that some points
// are done a second time: they come out the same.
func (r row) first(v vector) {
	CMPQ(r.points, I32(2*v.points()))
	JL(LabelRef("aligned"))
	skip := GP64()
	MOVQ(r.base["dst"], skip)
	NEGQ(skip)
	ANDQ(I32(v.bytes()-1), skip)
	JZ(LabelRef("aligned"))
	v.store(r.dst(0), r.apply(v, 0))
	SHRQ(U8(bits.TrailingZeros(uint(r.elem.size))), skip)
	ADDQ(skip, r.index)
	SUBQ(skip, r.left)
	Label("aligned")
}

// last writes what is left when there is less than a vector to do. Where the
// row has a whole vector, its last one is done, as in first. Masks would do
// too, but loads wait for masked stores on some processors: rows of one point
// took ten times as long.
func (r row) last(v vector) {
	TESTQ(r.left, r.left)
	JZ(LabelRef("rowDone"))
	CMPQ(r.points, I32(v.points()))
	JL(LabelRef("short"))
	LEAQ(Mem{Base: r.points, Disp: -v.points()}, r.index)
	v.store(r.dst(0), r.apply(v, 0))
	JMP(LabelRef("rowDone"))

	Label("short")
	s := scalar{v.elem}
	r.loop("scalar", 1, func() {
		s.store(r.dst(0), r.apply(s, 0))
	})
	Label("rowDone")
}

// dst is the memory of a result, so many bytes past the points done.
func (r row) dst(offset int) Mem { return r.at("dst", offset) }

func (r row) at(name string, offset int) Mem {
	return Mem{Base: r.base[name], Index: r.index, Scale: uint8(r.elem.size), Disp: offset}
}

// apply writes the stencil for the points so many bytes past those done.
func (r row) apply(a arithmetic, offset int) reg.VecVirtual {
	p := points{
		"xm": r.at("centre", offset),
		"c":  r.at("centre", offset+r.elem.size),
		"xp": r.at("centre", offset+2*r.elem.size),
	}
	for _, name := range r.rows {
		p[name] = r.at(name, offset)
	}
	return r.stencil.apply(a, p, r.weights)
}

// prefetch asks for so many bytes of the one input that is new to the cache
// when a grid is swept in the order of memory: the row furthest up, which is
// the last one. Past the end of the row that is the row to be swept next.
// Prefetching is a hint. It reads nothing, and what it points at need not exist.
func (r row) prefetch(bytes int) {
	leading := r.rows[len(r.rows)-1]
	for offset := 0; offset < bytes; offset += line {
		PREFETCHT0(r.at(leading, ahead+offset))
	}
}

// loop writes a loop whose body does so many points, as long as there are that
// many to do.
func (r row) loop(label string, points int, body func()) {
	CMPQ(r.left, I32(points))
	JL(LabelRef(label + "Done"))
	Label(label)
	body()
	ADDQ(I32(points), r.index)
	SUBQ(I32(points), r.left)
	CMPQ(r.left, I32(points))
	JGE(LabelRef(label))
	Label(label + "Done")
}

// lanes is the number of lanes of package rows, all of them float64.
const lanes = 8

// part is the part of the lanes that one register holds: all or half of them.
type part struct {
	maxChange, sumChange2, max, sum2 reg.VecVirtual
}

// writeNorms writes the function that puts a row's points into the lanes. It
// does whole groups of them only: package rows adds what is left in Go.
func writeNorms(e vector) {
	name := "add" + e.elem.tag + string(e.set)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(lanes *float64, new, old *%s, n int)", e.elem.name))
	Pragma("noescape")
	Doc(name + " puts n points into the lanes, n being a positive multiple of 8.")

	v := vector{e.set, float64s}
	l := Load(Param("lanes"), GP64())
	next := Load(Param("new"), GP64())
	old := Load(Param("old"), GP64())
	n := Load(Param("n"), GP64())
	magnitude := v.magnitude()

	parts := make([]part, lanes/v.points())
	for i := range parts {
		at := func(field int) Mem { return Mem{Base: l, Disp: field*lanes*8 + i*v.bytes()} }
		parts[i] = part{v.load(at(0)), v.load(at(1)), v.load(at(2)), v.load(at(3))}
	}

	Label("group")
	for i, p := range parts {
		offset := i * v.points() * e.elem.size
		value := v.widen(Mem{Base: next, Disp: offset}, e.elem)
		change := v.sub(value, v.widen(Mem{Base: old, Disp: offset}, e.elem))
		v.accumulate(p.maxChange, p.sumChange2, change, magnitude)
		v.accumulate(p.max, p.sum2, value, magnitude)
	}
	ADDQ(I32(lanes*e.elem.size), next)
	ADDQ(I32(lanes*e.elem.size), old)
	SUBQ(I32(lanes), n)
	JNZ(LabelRef("group"))

	for i, p := range parts {
		for field, value := range []reg.VecVirtual{p.maxChange, p.sumChange2, p.max, p.sum2} {
			v.store(Mem{Base: l, Disp: field*lanes*8 + i*v.bytes()}, value)
		}
	}
	VZEROUPPER()
	RET()
}

// accumulate writes maximum = max(maximum, |x|) and sum += x*x.
func (v vector) accumulate(maximum, sum, x, magnitude reg.VecVirtual) {
	VADDPD(v.mul(x, x), sum, sum)
	size := v.register()
	if v.set == avx512 {
		VPANDQ(magnitude, x, size) // VANDPD on 64 bytes would ask for AVX512DQ
	} else {
		VANDPD(magnitude, x, size)
	}
	// Where one is NaN the instruction gives its second source, which is the
	// first operand here: what the comparison in Go does.
	VMAXPD(maximum, size, maximum)
}

// magnitude is a vector of all bits but the sign.
func (v vector) magnitude() reg.VecVirtual {
	bits := GP64()
	MOVQ(U64(1<<63-1), bits)
	x := XMM()
	MOVQ(bits, x)
	out := v.register()
	VBROADCASTSD(x, out)
	return out
}

// widen loads a vector of float64 from elements that may be narrower.
func (v vector) widen(from Mem, e element) reg.VecVirtual {
	if e == float64s {
		return v.load(from)
	}
	out := v.register()
	VCVTPS2PD(from, out)
	return out
}

// sub returns a - b.
func (v vector) sub(a, b reg.VecVirtual) reg.VecVirtual {
	out := v.register()
	VSUBPD(b, a, out)
	return out
}

// arithmetic is what the expression of a stencil is written with, so that it is
// written once and serves vectors and single points.
type arithmetic interface {
	load(from Op) reg.VecVirtual
	add(a reg.VecVirtual, b Op) reg.VecVirtual
	mul(a reg.VecVirtual, b Op) reg.VecVirtual
}

// scalar is a single point. It uses the low element of the registers, so that
// a vector with one coefficient throughout serves as that coefficient.
type scalar struct{ elem element }

func (s scalar) load(from Op) reg.VecVirtual {
	out := XMM()
	if s.elem == float64s {
		VMOVSD(from, out)
	} else {
		VMOVSS(from, out)
	}
	return out
}

func (s scalar) store(to Op, value reg.VecVirtual) {
	if s.elem == float64s {
		VMOVSD(value, to)
	} else {
		VMOVSS(value, to)
	}
}

func (s scalar) add(a reg.VecVirtual, b Op) reg.VecVirtual {
	out := XMM()
	if s.elem == float64s {
		VADDSD(b, low(a), out)
	} else {
		VADDSS(b, low(a), out)
	}
	return out
}

func (s scalar) mul(a reg.VecVirtual, b Op) reg.VecVirtual {
	out := XMM()
	if s.elem == float64s {
		VMULSD(b, low(a), out)
	} else {
		VMULSS(b, low(a), out)
	}
	return out
}

func low(r reg.VecVirtual) Op { return r.AsX() }

// instructions is a vector instruction set, as the names of functions spell it.
type instructions string

const (
	avx512 instructions = "AVX512"
	avx2   instructions = "AVX2"
)

// element is the type of a grid's points.
type element struct {
	name string // as Go spells it
	tag  string // as the names of functions spell it
	size int    // bytes
}

var (
	float64s = element{"float64", "F64", 8}
	float32s = element{"float32", "F32", 4}
)

// vector writes instructions on vectors of one element type in one set. Its
// methods return a fresh register with the result.
type vector struct {
	set  instructions
	elem element
}

// bytes is the size of a vector.
func (v vector) bytes() int {
	if v.set == avx512 {
		return 64
	}
	return 32
}

// points is the number of elements in a vector.
func (v vector) points() int { return v.bytes() / v.elem.size }

func (v vector) register() reg.VecVirtual {
	if v.set == avx512 {
		return ZMM()
	}
	return YMM()
}

func (v vector) double() bool { return v.elem == float64s }

// broadcast fills a vector with the scalar argument of that name.
func (v vector) broadcast(name string) reg.VecVirtual {
	address, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	out := v.register()
	if v.double() {
		VBROADCASTSD(address.Addr, out)
	} else {
		VBROADCASTSS(address.Addr, out)
	}
	return out
}

func (v vector) load(from Op) reg.VecVirtual {
	out := v.register()
	if v.double() {
		VMOVUPD(from, out)
	} else {
		VMOVUPS(from, out)
	}
	return out
}

func (v vector) store(to Op, value reg.VecVirtual) {
	if v.double() {
		VMOVUPD(value, to)
	} else {
		VMOVUPS(value, to)
	}
}

// add returns a + b, where b may be in memory.
func (v vector) add(a reg.VecVirtual, b Op) reg.VecVirtual {
	out := v.register()
	if v.double() {
		VADDPD(b, a, out)
	} else {
		VADDPS(b, a, out)
	}
	return out
}

// mul returns a * b, where b may be in memory.
func (v vector) mul(a reg.VecVirtual, b Op) reg.VecVirtual {
	out := v.register()
	if v.double() {
		VMULPD(b, a, out)
	} else {
		VMULPS(b, a, out)
	}
	return out
}
