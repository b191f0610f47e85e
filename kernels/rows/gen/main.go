// Command gen writes the AVX2 assembly of package rows and its Go declarations, with avo. It is run by go generate
// in the package's folder.
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
	// The same condition is in select_amd64.go, and its opposite in select_go.go.
	ConstraintExpr("amd64,!race,!purego")

	for _, v := range []*vector{float64s, float32s} {
		for _, s := range stencils {
			s.write(v)
		}
		writeNorms(v)
	}
	Generate()
	if err := group(flag.Lookup("stubs").Value.String()); err != nil {
		log.Fatal(err)
	}
}

// group joins parameters of one type in the declarations of a file, and wraps lines that are too long.
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
	rows         []string // the inputs besides center
	coefficients []string
	formula      string // for the doc comment

	// apply writes the expression for the points p. The order of the calls to add and mul is the order of operations
	// documented in package rows.
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

// points are the inputs of a stencil: xm, c and xp, which are three views of center, and the rows by name.
type points map[string]Mem

// weights are the coefficients of a stencil, each in all elements of a vector.
type weights map[string]reg.VecVirtual

// isotropic writes alpha*c + beta*(the named neighbors, summed from left to right).
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

// ahead is the prefetch distance in bytes from the points done: one page, because the hardware prefetcher of the
// processor stops at page boundaries.
const ahead = 4096

// write writes the function for one type of vector: a loop over rows.
func (s stencil) write(v *vector) {
	name := s.name + v.tag
	pointers := append([]string{"dst", "center"}, s.rows...)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(%s *%s, points, count, pitch int, %s %s)",
		strings.Join(pointers, ", "), v.name, strings.Join(s.coefficients, ", "), v.name))
	Pragma("noescape")
	Doc(name + " sets the points of count rows to " + s.formula + ".")

	r := row{stencil: s, size: v.size, base: map[string]reg.Register{}}
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
	r.index = GP64()

	Label("row")
	r.write(v)
	for _, p := range pointers {
		LEAQ(Mem{Base: r.base[p], Index: pitch, Scale: uint8(v.size)}, r.base[p])
	}
	DECQ(count)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// row is the state of a stencil's function: the location of its row and the position in it.
type row struct {
	stencil
	size    int                     // of a point
	base    map[string]reg.Register // pointer arguments
	points  reg.Register            // in the row
	index   reg.GPVirtual           // number of points done
	weights weights
}

// write writes one row. Stores are aligned, which saves a fifth of the time if rows begin one point off, as those
// of an interior do: the first vector begins with the row, the second at the first aligned point, and the last
// ends with the row, so that some points are computed twice, with identical bits. Masks are slower, since loads
// wait for masked stores on some processors: rows of one point took ten times as long. A row shorter than a vector
// is computed point by point.
func (r row) write(v *vector) {
	step, last := GP64(), GP64()
	XORQ(r.index, r.index)
	MOVQ(r.points, last)
	SUBQ(I32(v.points()), last)
	JL(LabelRef("point"))

	// The points from the first to the first aligned one, or a whole vector if it is aligned.
	MOVQ(r.base["dst"], step)
	NEGQ(step)
	SHRQ(U8(bits.TrailingZeros(uint(r.size))), step)
	ANDQ(I32(v.points()-1), step)
	JNZ(LabelRef("vector"))
	MOVQ(U32(v.points()), step)
	Label("vector")
	// When a grid is swept in memory order, the only input not yet in the cache is the last row, followed in memory
	// by the next row to be swept. The target of a prefetch need not exist.
	PREFETCHT0(r.at(r.rows[len(r.rows)-1], ahead))
	v.store(r.at("dst", 0), r.apply(v.arithmetic))
	ADDQ(step, r.index)
	MOVQ(U32(v.points()), step)
	CMPQ(r.index, last)
	JLE(LabelRef("vector"))
	CMPQ(r.index, r.points)
	JGE(LabelRef("done"))
	MOVQ(last, r.index)
	JMP(LabelRef("vector"))

	Label("point")
	v.single.store(r.at("dst", 0), r.apply(v.single))
	INCQ(r.index)
	CMPQ(r.index, r.points)
	JL(LabelRef("point"))
	Label("done")
}

func (r row) at(name string, offset int) Mem {
	return Mem{Base: r.base[name], Index: r.index, Scale: uint8(r.size), Disp: offset}
}

// apply writes the stencil for the next points.
func (r row) apply(a arithmetic) reg.VecVirtual {
	p := points{"xm": r.at("center", 0), "c": r.at("center", r.size), "xp": r.at("center", 2*r.size)}
	for _, name := range r.rows {
		p[name] = r.at(name, 0)
	}
	return r.stencil.apply(a, p, r.weights)
}

// lanes is the number of lanes of package rows, all float64.
const lanes = 8

// part is the half of the lanes held by one register.
type part struct {
	maxChange, sumChange2, max, sum2 reg.VecVirtual
}

// writeNorms writes the function that adds points of a row to the lanes. It handles only whole groups of 8:
// package rows adds the remaining elements in Go.
func writeNorms(e *vector) {
	name := "add" + e.tag
	TEXT(name, NOSPLIT, fmt.Sprintf("func(lanes *float64, new, old *%s, n int)", e.name))
	Pragma("noescape")
	Doc(name + " adds n points to the lanes; n must be a positive multiple of 8.")

	v := float64s
	l := Load(Param("lanes"), GP64())
	next := Load(Param("new"), GP64())
	old := Load(Param("old"), GP64())
	n := Load(Param("n"), GP64())
	magnitude := v.magnitude()

	parts := make([]part, lanes/v.points())
	for i := range parts {
		at := func(field int) Mem { return Mem{Base: l, Disp: field*lanes*8 + i*bytes} }
		parts[i] = part{v.load(at(0)), v.load(at(1)), v.load(at(2)), v.load(at(3))}
	}

	Label("group")
	for i, p := range parts {
		offset := i * v.points() * e.size
		value := v.widen(Mem{Base: next, Disp: offset}, e)
		change := v.sub(value, v.widen(Mem{Base: old, Disp: offset}, e))
		v.accumulate(p.maxChange, p.sumChange2, change, magnitude)
		v.accumulate(p.max, p.sum2, value, magnitude)
	}
	ADDQ(I32(lanes*e.size), next)
	ADDQ(I32(lanes*e.size), old)
	SUBQ(I32(lanes), n)
	JNZ(LabelRef("group"))

	for i, p := range parts {
		for field, value := range []reg.VecVirtual{p.maxChange, p.sumChange2, p.max, p.sum2} {
			v.store(Mem{Base: l, Disp: field*lanes*8 + i*bytes}, value)
		}
	}
	VZEROUPPER()
	RET()
}

// accumulate writes maximum = max(maximum, |x|) and sum += x*x.
func (v *vector) accumulate(maximum, sum, x, magnitude reg.VecVirtual) {
	VADDPD(v.mul(x, x), sum, sum)
	size := YMM()
	VANDPD(magnitude, x, size)
	// If one is NaN the instruction returns its second source, which is the first operand here, like the comparison
	// in Go.
	VMAXPD(maximum, size, maximum)
}

// magnitude is a vector of all bits except the sign.
func (v *vector) magnitude() reg.VecVirtual {
	bits := GP64()
	MOVQ(U64(1<<63-1), bits)
	x := XMM()
	MOVQ(bits, x)
	out := YMM()
	VBROADCASTSD(x, out)
	return out
}

// widen loads a vector of float64 from elements that may be narrower.
func (v *vector) widen(from Mem, e *vector) reg.VecVirtual {
	if e == float64s {
		return v.load(from)
	}
	return v.write(VCVTPS2PD, from)
}

// sub returns a - b.
func (v *vector) sub(a, b reg.VecVirtual) reg.VecVirtual { return v.write(VSUBPD, b, a) }

// arithmetic holds the instructions on points of one type: on vectors, or on single points, which use the low
// element of the registers, so that a vector with equal elements also serves as a scalar coefficient. The
// expression of a stencil is written once for both. All except store return a fresh register with the result.
type arithmetic struct {
	register           func() reg.VecVirtual
	part               func(r reg.VecVirtual) Op // the used part of a register
	move, sum, product func(ops ...Op)
}

func (a arithmetic) load(from Op) reg.VecVirtual               { return a.write(a.move, from) }
func (a arithmetic) store(to Op, value reg.VecVirtual)         { a.move(value, to) }
func (a arithmetic) add(x reg.VecVirtual, y Op) reg.VecVirtual { return a.write(a.sum, y, a.part(x)) }
func (a arithmetic) mul(x reg.VecVirtual, y Op) reg.VecVirtual {
	return a.write(a.product, y, a.part(x))
}

func (a arithmetic) write(instruction func(ops ...Op), from ...Op) reg.VecVirtual {
	out := a.register()
	instruction(append(from, out)...)
	return out
}

func whole(r reg.VecVirtual) Op { return r }
func low(r reg.VecVirtual) Op   { return r.AsX() }

// bytes is the size of a vector.
const bytes = 32

// vector writes instructions on vectors of one type of points.
type vector struct {
	arithmetic
	name   string // of the type in Go
	tag    string // of the type in function names
	size   int    // of a point in bytes
	spread func(ops ...Op)
	single arithmetic // for single points
}

var (
	float64s = &vector{arithmetic{YMM, whole, VMOVUPD, VADDPD, VMULPD}, "float64", "F64", 8, VBROADCASTSD,
		arithmetic{XMM, low, VMOVSD, VADDSD, VMULSD}}
	float32s = &vector{arithmetic{YMM, whole, VMOVUPS, VADDPS, VMULPS}, "float32", "F32", 4, VBROADCASTSS,
		arithmetic{XMM, low, VMOVSS, VADDSS, VMULSS}}
)

// points is the number of points in a vector.
func (v *vector) points() int { return bytes / v.size }

// broadcast fills a vector with the scalar argument of the given name.
func (v *vector) broadcast(name string) reg.VecVirtual {
	address, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return v.write(v.spread, address.Addr)
}
