package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

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

// write writes the function for one type of vector: a main loop over several
// vectors, one over single vectors, and what is left.
func (s stencil) write(v vector) {
	name := s.name + v.elem.tag + string(v.set)
	pointers := append([]string{"dst", "centre"}, s.rows...)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(%s *%s, n int, %s %s)",
		strings.Join(pointers, ", "), v.elem.name, strings.Join(s.coefficients, ", "), v.elem.name))
	Pragma("noescape")
	Doc(name + " sets n points to " + s.formula + ".")

	r := row{stencil: s, elem: v.elem, base: map[string]reg.Register{}}
	for _, p := range pointers {
		r.base[p] = Load(Param(p), GP64())
	}
	r.left = Load(Param("n"), GP64())
	r.weights = weights{}
	for _, c := range s.coefficients {
		r.weights[c] = v.broadcast(c)
	}
	r.index = GP64()
	XORQ(r.index, r.index)

	r.loop("quad", unroll*v.points(), func() {
		r.prefetch(unroll * v.bytes())
		for u := range unroll {
			v.store(r.dst(u*v.bytes()), r.apply(v, u*v.bytes()))
		}
	})
	r.loop("single", v.points(), func() {
		v.store(r.dst(0), r.apply(v, 0))
	})
	if v.set == avx512 {
		r.tailMasked(v)
	} else {
		s := scalar{v.elem}
		r.loop("scalar", 1, func() {
			s.store(r.dst(0), r.apply(s, 0))
		})
	}
	VZEROUPPER()
	RET()
}

// row is the state of a stencil's function: how far it is along the row.
type row struct {
	stencil
	elem    element
	base    map[string]reg.Register // the pointers of the arguments
	index   reg.GPVirtual           // the points done
	left    reg.Register            // the points to do
	weights weights
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

// tailMasked writes what is left when there is less than a vector to do.
func (r row) tailMasked(v vector) {
	TESTQ(r.left, r.left)
	JZ(LabelRef("done"))
	mask := lowest(r.left)
	v.storeMasked(r.dst(0), r.apply(masked{v, mask}, 0), mask)
	Label("done")
}

// lowest writes the mask of the lowest count elements, count being below 64.
func lowest(count reg.Register) reg.OpmaskVirtual {
	bits := GP64()
	MOVQ(I32(-1), bits)
	BZHIQ(count, bits, bits)
	mask := K()
	KMOVW(bits.As32(), mask)
	return mask
}
