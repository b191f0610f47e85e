package kernels

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/stencil"
)

// tapsSource returns CUDA C++ for a stencil, which goes before a kernel that applies
// it, with the weights as constants:
//
//	DIMS                     2 or 3
//	POINTS                   how many there are, the centre among them
//	REACH_X, REACH_Y, ..._Z  how far it reaches, to both sides
//	apply(at)                the sum at one point, in the order that stencil.Stencil gives;
//	                         at(dx, dy, dz) is the value at an offset
//	taps_high, taps_low      which layers window.cuh needs of what, see there
//	Sums, add_layer, sum_of  the sum layer by layer, if it is ascending
//
// The file needs the option REAL.
func tapsSource(s stencil.Stencil, r Real) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#define DIMS %d\n#define POINTS %d\n", s.Dims, s.Points())
	fmt.Fprintf(&b, "enum { REACH_X = %d, REACH_Y = %d, REACH_Z = %d };\n\n", s.Reach(0), s.Reach(1), s.Reach(2))
	b.WriteString("template <typename At> __device__ __forceinline__ REAL apply(const At &at) {\n")
	writeSum(&b, s, r, "at(0, 0, 0)", func(i int) string { return tapsSum(s.Groups[i].Offsets) })
	if ascending(s) {
		writeLayers(&b, s)
		b.WriteString("__device__ __forceinline__ REAL sum_of(const Sums &s, REAL centre) {\n")
		writeSum(&b, s, r, "centre", func(i int) string { return fmt.Sprintf("s.of[%d]", i) })
	}
	high, low := tapsLayers(s)
	fmt.Fprintf(&b, "__device__ constexpr int taps_high[][3] = %s;\n", braces(high))
	fmt.Fprintf(&b, "__device__ constexpr int taps_low[][3] = %s;\n\n", braces(low))
	return b.String()
}

// writeSum ends a function with the weighted sum of a centre and of sums of groups.
func writeSum(b *strings.Builder, s stencil.Stencil, r Real, centre string, group func(i int) string) {
	fmt.Fprintf(b, "\treturn %s * %s", literal(s.Centre, r), centre)
	for i, g := range s.Groups {
		fmt.Fprintf(b, "\n\t    + %s * (%s)", literal(g.Weight, r), group(i))
	}
	b.WriteString(";\n}\n\n")
}

// ascending reports whether the offsets of each group go upwards through the planes below,
// in and above, and some of them lie beside the centre's column: a thread that sums layer by
// layer then keeps the order of the sums, and holds less than the planes.
func ascending(s stencil.Stencil) bool {
	if s.Dims != 3 || s.Reach(0) != 1 || s.Reach(1) != 1 || s.Reach(2) != 1 {
		return false
	}
	beside := false
	for _, g := range s.Groups {
		for i, o := range g.Offsets {
			if i > 0 && o[2] < g.Offsets[i-1][2] {
				return false
			}
			beside = beside || (o[2] != 0 && (o[0] != 0 || o[1] != 0))
		}
	}
	return beside
}

// writeLayers writes the sums of the groups of an ascending stencil, and what adds to them
// the points of one layer; at(dx, dy) is the value at an offset there.
func writeLayers(b *strings.Builder, s stencil.Stencil) {
	fmt.Fprintf(b, "#define ASCENDING\nstruct Sums { REAL of[%d]; };\n\n", len(s.Groups))
	b.WriteString("template <int LAYER, typename At> __device__ __forceinline__ void add_layer(Sums &s, const At &at) {\n")
	for layer := -1; layer <= 1; layer++ {
		fmt.Fprintf(b, "\tif (LAYER == %d) {\n", layer)
		for i, g := range s.Groups {
			var terms []string
			for k, o := range g.Offsets {
				if o[2] != layer {
					continue
				}
				if k > 0 && len(terms) == 0 {
					terms = append(terms, fmt.Sprintf("s.of[%d]", i))
				}
				terms = append(terms, fmt.Sprintf("at(%d, %d)", o[0], o[1]))
			}
			if len(terms) > 0 {
				fmt.Fprintf(b, "\t\ts.of[%d] = %s;\n", i, strings.Join(terms, " + "))
			}
		}
		b.WriteString("\t}\n")
	}
	b.WriteString("}\n\n")
}

// literal writes a weight exactly, as it is in the type of the field.
func literal(w float64, r Real) string {
	if r == Float32 {
		return "(REAL)" + strconv.FormatFloat(float64(float32(w)), 'x', -1, 64)
	}
	return "(REAL)" + strconv.FormatFloat(w, 'x', -1, 64)
}

func tapsSum(offsets []domain.Vec) string {
	terms := make([]string, len(offsets))
	for i, o := range offsets {
		terms[i] = fmt.Sprintf("at(%d, %d, %d)", o[0], o[1], o[2])
	}
	return strings.Join(terms, " + ")
}

// noLayer is the highest layer of what a stencil does not read; the lowest is its
// negative.
const noLayer = -99

// tapsLayers returns the highest and the lowest layer, along the slowest axis, in which
// the stencil reads points left of the centre, at its x and right of it. There is an
// entry for each row of a layer: those from -REACH_Y to REACH_Y in three dimensions,
// where layers are planes, and one in two, where they are rows. The layers between are
// counted in.
func tapsLayers(s stencil.Stencil) (high, low [][3]int) {
	side := 0
	if s.Dims == 3 {
		side = s.Reach(1)
	}
	for range 2*side + 1 {
		high, low = append(high, [3]int{noLayer, noLayer, noLayer}), append(low, [3]int{-noLayer, -noLayer, -noLayer})
	}
	note := func(row, part, layer int) {
		high[row][part], low[row][part] = max(high[row][part], layer), min(low[row][part], layer)
	}
	each := func(o domain.Vec) {
		row, layer := side, o[s.Dims-1]
		if s.Dims == 3 {
			row += o[1]
		}
		note(row, 1, layer) // a group of points along x is its own neighbour
		switch {
		case o[0] < 0:
			note(row, 0, layer)
		case o[0] > 0:
			note(row, 2, layer)
		}
	}
	each(domain.Vec{})
	for _, g := range s.Groups {
		for _, o := range g.Offsets {
			each(o)
		}
	}
	return high, low
}

// braces writes a table as C does.
func braces(table [][3]int) string {
	return strings.NewReplacer("[", "{", "]", "}", " ", ", ").Replace(fmt.Sprint(table))
}
