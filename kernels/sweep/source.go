package sweep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
)

// programOf returns a program of kernels/cu that includes accesses.cuh, with the given text, and maybe
// other headers that were generated.
func (n *plan) programOf(file, accesses string, others ...kernels.Header) kernels.Program {
	return kernels.Program{
		File: file, Defines: n.point.Sums.Defines(),
		Headers: append([]kernels.Header{{Name: "accesses.cuh", Text: accesses}}, others...),
	}
}

// accessesBegin is how accesses.cuh begins.
const accessesBegin = `// The accesses of a point function and the function, as source.go of kernels/sweep writes them.
#include "names.cuh"

// clang-format off
`

// source returns accesses.cuh for a point function, see site.cuh, with more build options.
func (n *plan) source(c classes, f form, options ...string) string {
	var b strings.Builder
	b.WriteString(accessesBegin)
	b.WriteString(strings.Join(options, ""))
	fmt.Fprintf(&b, "#define DIMS %d\n#define TOTALS %d\n", n.point.Dims, n.totals())
	fmt.Fprintf(&b, "enum { GROUP = %d, ARRAYS = %d, CLASSES = %d };\n", n.group, n.arrays, c.count())
	fmt.Fprintf(&b, "#define SWEEP_BYTES %d\n#define FRAME_BYTES %d\n", n.sweepBytes(c.count()), n.frameBytes())
	if f.way == streaming && n.arrays <= fewArrays && n.registers(1) <= fewRegisters {
		b.WriteString("#define FEW_ARRAYS\n")
	}
	for _, list := range []struct {
		name  string
		count int
	}{
		{"READS", len(n.reads)}, {"WRITES", len(n.writes)}, {"NORMS", len(n.norms)},
		{"REDUCTIONS", len(n.point.Reductions)},
	} {
		fmt.Fprintf(&b, "#define %s(X)%s\n", list.name, repeat(list.count))
	}
	b.WriteString("\n" + f.source() + "\n" + parametersSource(n.point.Parameters) + "\n")
	for _, name := range []string{"Read", "Written", "Norm", "Reduced"} {
		fmt.Fprintf(&b, "template <int K> struct %s;\n", name)
	}
	b.WriteString("\n")
	for i, r := range n.reads {
		n.writeRead(&b, i, r, c)
	}
	for i, w := range n.writes {
		fmt.Fprintf(&b, "template <> struct Written<%d> {\n\ttypedef %s T;\n", i, elements[w.element].c)
		fmt.Fprintf(&b, "\tenum { ARRAY = %d, CLASS = %d, BEFORE = %d, NORM = %d, IN_PLACE = %t };\n};\n",
			w.array, c[w.array], w.before, w.norm, w.inPlace)
	}
	n.writeTotals(&b)
	n.writeFunction(&b)
	return b.String()
}

// A thread that streams keeps the addresses of few arrays, where its windows leave registers.
const (
	fewArrays    = 4
	fewRegisters = 80
)

// repeat is X(0) X(1) ...
func repeat(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf(" X(%d)", i)
	}
	return text
}

// writeRead describes an array that is read.
func (n *plan) writeRead(b *strings.Builder, i int, r readArray, c classes) {
	s, radius := n.span(r.footprint), r.footprint.Radius()
	high, low := n.parts(r.footprint)
	name := n.accesses[r.access].Name
	if r.component == 0 {
		fmt.Fprintf(b, "NEVER_LINKED(offset_beside_the_footprint_of_%s)\n", name)
	}
	fmt.Fprintf(b, "template <> struct Read<%d> {\n\ttypedef %s T;\n", i, elements[r.element].c)
	fmt.Fprintf(b,
		"\tenum { ARRAY = %d, CLASS = %d, LEFT = %d, RIGHT = %d, ROW_LOW = %d, ROW_HIGH = %d, LOW = %d, HIGH = %d };\n",
		r.array, c[r.array], radius.Minus[0], radius.Plus[0], s.rowLow, s.rowHigh, s.low, s.high)
	fmt.Fprintf(b, "\tstatic constexpr bool READ_ONLY = %s, SPARSE = %t, FLAT = %t;\n", readOnly(r), r.sparse,
		n.point.Dims == 2)
	for _, table := range []struct {
		name   string
		layers [][3]int
	}{{"high", high}, {"low", low}} {
		fmt.Fprintf(b, "\t__device__ static constexpr int %s(int row, int part) {\n", table.name)
		fmt.Fprintf(b, "\t\tconstexpr int layers[][3] = %s;\n", braces(table.layers))
		b.WriteString("\t\treturn layers[row][part];\n\t}\n")
	}
	fmt.Fprintf(b, "\t__device__ static constexpr bool reads(int dx, int dy, int dz) {\n\t\treturn %s;\n\t}\n",
		membership(r.footprint))
	fmt.Fprintf(b, "\t__device__ static void outside() { offset_beside_the_footprint_of_%s(); }\n};\n", name)
}

// readOnly is C++ that says whether nothing writes an array during the kernel.
func readOnly(r readArray) string {
	if !r.readOnly {
		return "false"
	}
	return "ALL_READ_ONLY"
}

// membership is a condition that holds for the offsets of a footprint: row by row of a box, which
// offsets along x it has.
func membership(f stencil.Footprint) string {
	var terms []string
	for _, o := range f {
		terms = append(terms, fmt.Sprintf("(dx == %d && dy == %d && dz == %d)", o[0], o[1], o[2]))
	}
	if box, ok := wholeBox(f); ok {
		return fmt.Sprintf("%d <= dx && dx < %d && %d <= dy && dy < %d && %d <= dz && dz < %d", box.Lo[0], box.Hi[0],
			box.Lo[1], box.Hi[1], box.Lo[2], box.Hi[2])
	}
	return strings.Join(terms, " ||\n\t\t       ")
}

// wholeBox returns the box that a footprint fills, if it does.
func wholeBox(f stencil.Footprint) (domain.Box, bool) {
	b := domain.Box{Lo: f[0], Hi: f[0]}
	for _, o := range f {
		for a := range o {
			b.Lo[a], b.Hi[a] = min(b.Lo[a], o[a]), max(b.Hi[a], o[a]+1)
		}
	}
	return b, b.Points() == int64(len(f))
}

// writeTotals describes norms and reductions.
func (n *plan) writeTotals(b *strings.Builder) {
	var all, places []string
	for i, access := range n.norms {
		fmt.Fprintf(b, "template <> struct Norm<%d> { typedef %s T; };\n", i, elements[n.accesses[access].Element].c)
	}
	for i, r := range n.point.Reductions {
		fmt.Fprintf(b, "template <> struct Reduced<%d> { static constexpr Operation OP = %s; };\n", i,
			strings.ToUpper(string(r.Op)))
	}
	for _, part := range n.slot {
		all, places = append(all, strings.ToUpper(string(part.op))), append(places, fmt.Sprint(part.place/8))
	}
	fmt.Fprintf(b, "#define OPERATIONS %s\n#define SLOT_PLACES %s\n\n", strings.Join(all, ", "),
		strings.Join(places, ", "))
}

// writeFunction writes the names and the source of the function.
func (n *plan) writeFunction(b *strings.Builder) {
	b.WriteString("namespace point_function {\n")
	n.writeElsewhere(b)
	for i, a := range n.accesses {
		read, write := -1, -1
		for k, r := range n.reads {
			if r.access == i && r.component == 0 {
				read = k
			}
		}
		for k, w := range n.writes {
			if w.access == i && w.component == 0 {
				write = k
			}
		}
		fmt.Fprintf(b, "constexpr Access<%d, %d, %d> %s{};\n", read, write, a.components(), a.Name)
	}
	for i, r := range n.point.Reductions {
		fmt.Fprintf(b, "constexpr Reduction<%d> %s{};\n", i, r.Name)
	}
	fmt.Fprintf(b, "#line 1 %q\n%s\n#line 1 \"accesses.cuh\"\n", n.point.file(), n.point.CUDA)
	fmt.Fprintf(b, "template <typename P> __device__ __forceinline__ void call(P &p) { %s(p); }\n}\n", n.point.Name)
	if s := n.point.linear; s != nil && layered(*s) {
		writeLayers(b, *s, n.writes[0].element)
	}
}

// writeElsewhere declares the names of other functions in the source, so that these can be read.
func (n *plan) writeElsewhere(b *strings.Builder) {
	var names []string
	for _, name := range n.point.Elsewhere {
		own := name == n.point.Name || n.find(name) >= 0 ||
			slices.ContainsFunc(n.point.Reductions, func(r Reduction) bool { return r.Name == name })
		if !own && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	b.WriteString("struct NameOfAnotherFunction {\n" +
		"\t__device__ constexpr NameOfAnotherFunction operator[](int) const { return {}; }\n};\n")
	for _, name := range names {
		fmt.Fprintf(b, "constexpr NameOfAnotherFunction %s{};\n", name)
	}
}

// braces writes a table as C does.
func braces(table [][3]int) string {
	return strings.NewReplacer("[", "{", "]", "}", " ", ", ").Replace(fmt.Sprint(table))
}
