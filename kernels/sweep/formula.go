package sweep

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/internal/scalar"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
)

// Formula returns formulas as a point function p. The accesses that it reads are in all: first those of Form.Fields
// that are read, then Form.Given. The accesses that it writes are in results; an in-place result has the name of the
// array that it replaces. The Go counterpart is in package kernels/rows.
func Formula(f *stencil.Form, dims int, real domain.Element) (p Point, all, results []Access) {
	for i, reads := range f.Fields {
		if len(reads) > 0 {
			all = append(all, Access{Name: readName(i), Element: real, Footprint: reads})
		}
	}
	for i, g := range f.Given {
		one := Access{Name: readName(len(f.Fields) + i), Element: real, Footprint: g.Reads}
		for axis := range dims {
			one.Constant[axis] = !g.VariesAlong(axis)
		}
		all = append(all, one)
	}
	for i := range f.Results {
		results = append(results, Access{Name: writtenName(f, i), Element: real, Write: true})
	}
	p = Point{Name: "formula", Dims: dims, CUDA: formulaSource(f, real), formula: f}
	if len(f.Values) > 0 {
		p.Parameters = reflect.New(valuesType(f, real)).Interface()
	}
	return p, all, results
}

// readName returns the name of the access that reads an array or a constant field.
func readName(i int) string { return fmt.Sprintf("r%d", i) }

// writtenName returns the name of the access that writes a result.
func writtenName(f *stencil.Form, i int) string {
	if isInPlace(f, i) {
		return readName(f.InPlace[i])
	}
	return fmt.Sprintf("w%d", i)
}

// isInPlace reports whether a result replaces an array that is read.
func isInPlace(f *stencil.Form, i int) bool { return f.InPlace != nil && f.InPlace[i] >= 0 }

// formulaSource generates one constant per node.
func formulaSource(f *stencil.Form, real domain.Element) string {
	var b strings.Builder
	if slices.ContainsFunc(f.Nodes, func(n stencil.Node) bool { return n.Noise }) {
		b.WriteString(noiseSource[real])
	}
	b.WriteString("template <typename P> __device__ __forceinline__ void formula(P &p) {\n")
	number := weight(real)
	for i, n := range f.Nodes {
		c, text := scalar.CName(real), ""
		switch {
		case n.Value > 0:
			text = fmt.Sprintf("p.parameters.Values[%d]", n.Value-1)
		case n.Noise:
			low, high := f.NoiseKey(n.Number)
			text = fmt.Sprintf("uniform(noise(p, %du, %du", low, high)
			for a, size := range f.Size {
				text += ", " + wrapped("ijk"[a], n.Offset[a], size)
			}
			text += "))"
		case n.Op == "" && n.Read < 0:
			text = number(n.Number)
		case n.Op == "":
			text = fmt.Sprintf("p.at(%s, %d, %d, %d)", readName(n.Read), n.Offset[0], n.Offset[1], n.Offset[2])
		default:
			args := make([]any, len(n.Args))
			for k, a := range n.Args {
				args[k] = fmt.Sprintf("v%d", a)
			}
			text = fmt.Sprintf(operationSource(n.Op, len(args), real), args...)
		}
		if n.Condition {
			c = "bool"
		}
		fmt.Fprintf(&b, "\tconst %s v%d = %s;\n", c, i, text)
	}
	for i, r := range f.Results {
		fmt.Fprintf(&b, "\tp.set(%s, v%d);\n", writtenName(f, i), r)
	}
	b.WriteString("}\n")
	return b.String()
}

// operationSource returns the format of an operation in CUDA.
func operationSource(op string, operands int, real domain.Element) string {
	switch op {
	case "-":
		if operands == 1 {
			return "-%s"
		}
	case "and":
		return "%s && %s"
	case "or":
		return "%s || %s"
	case "not":
		return "!%s"
	case "? :":
		return "%s ? %s : %s"
	case "min":
		return "%[1]s < %[2]s || %[1]s != %[1]s ? %[1]s : %[2]s"
	case "max":
		return "%[1]s > %[2]s || %[1]s != %[1]s ? %[1]s : %[2]s"
	case "sign":
		return fmt.Sprintf("%%[1]s > 0 ? (%[1]s)1 : %%[1]s < 0 ? (%[1]s)-1 : %%[1]s", scalar.CName(real))
	}
	if operands == 2 && slices.Contains([]string{"+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!="}, op) {
		return "%s " + op + " %s"
	}
	if name, ok := map[string]string{"abs": "fabs", "mod": "fmod"}[op]; ok {
		op = name
	}
	if real.Size() == 4 {
		op += "f"
	}
	return op + "(" + strings.TrimSuffix(strings.Repeat("%s, ", operands), ", ") + ")"
}

// noiseSource is the CUDA source of stencil.Form.Noise and of stencil.Uniform for each type.
var noiseSource = func() map[domain.Element]string {
	const source = `struct Words { unsigned v[4]; };
template <typename P>
__device__ __forceinline__ Words noise(const P &p, unsigned low, unsigned high, unsigned i, unsigned j, unsigned k) {
	Words c = {{i, j, k, (unsigned)p.step()}};
#pragma unroll
	for (int round = 0; round < 10; round++) {
		const unsigned long long a = 0xD2511F53ull * c.v[0], b = 0xCD9E8D57ull * c.v[2];
		c = {{(unsigned)(b >> 32) ^ c.v[1] ^ low, (unsigned)b, (unsigned)(a >> 32) ^ c.v[3] ^ high, (unsigned)a}};
		low += 0x9E3779B9u, high += 0xBB67AE85u;
	}
	return c;
}
__device__ __forceinline__ `
	return map[domain.Element]string{
		domain.Float32: source + `float uniform(Words w) { return (float)(w.v[0] >> 8) * 0x1p-24f; }
`,
		domain.Float64: source + `double uniform(Words w) {
	return (double)((unsigned long long)(w.v[0] >> 5) << 26 | w.v[1] >> 6) * 0x1p-53;
}
`,
	}
}()

// wrapped returns the source of the index of the point plus an offset, modulo the size. It uses 32 bits, which is
// faster, unless the size is large.
func wrapped(index byte, offset, size int) string {
	add := (offset%size+size)%size + size
	switch {
	case size == 1:
		return "0u"
	case size < 1<<29: // greater than any width of ghost regions
		add += 1 << 29 / size * size
		return fmt.Sprintf("(unsigned)(p.%c() + %d) %% %du", index, add, size)
	}
	return fmt.Sprintf("(unsigned)((p.%c() + %d) %% %d)", index, add, size)
}

// formulaRows returns the Go counterpart of formulas over the arrays of accesses. It must not be used by several
// goroutines at the same time.
func formulaRows(f *stencil.Form, accesses []Access, arrays Arrays) func(r *Row) {
	if accesses[0].Element == "float32" {
		return newFormulaSweep[float32](f, accesses, arrays).row
	}
	return newFormulaSweep[float64](f, accesses, arrays).row
}

// A formulaSweep computes formulas row by row.
type formulaSweep[T rows.Float] struct {
	program *rows.Program[T]
	arrays  []formulaArray[T]
	form    *stencil.Form
	values  map[int]T   // last value of each node that is one of Form.Values
	noise   map[int][]T // rows of nodes that are noise
}

// A formulaArray is an array, either with the nodes that read it or for a result.
type formulaArray[T rows.Float] struct {
	layout  domain.Layout
	values  []T
	nodes   []int
	offsets []int64 // offsets of nodes in the array
	result  int     // index of the result; -1 if nodes read the array
}

func newFormulaSweep[T rows.Float](f *stencil.Form, accesses []Access, arrays Arrays) *formulaSweep[T] {
	inPlace := make([]bool, len(f.Results))
	for i := range inPlace {
		inPlace[i] = isInPlace(f, i)
	}
	s := &formulaSweep[T]{program: rows.NewProgram[T](f.Nodes, f.Results, inPlace), form: f,
		values: map[int]T{}, noise: map[int][]T{}}
	for i, n := range f.Nodes {
		switch {
		case n.Value > 0:
			s.values[i] = 0
		case n.Noise:
			s.noise[i] = nil
		}
	}
	add := func(name string, result int) {
		if i := findAccess(accesses, name); i >= 0 {
			a := &arrays[i][0]
			s.arrays = append(s.arrays, formulaArray[T]{layout: a.Layout, values: values[T](a), result: result})
		}
	}
	for which := range len(f.Fields) + len(f.Given) {
		add(readName(which), -1)
		for i, n := range f.Nodes {
			if n.Op != "" || n.Read != which {
				continue
			}
			a := &s.arrays[len(s.arrays)-1]
			o := a.layout.Owned.Lo
			a.nodes = append(a.nodes, i)
			a.offsets = append(a.offsets, a.layout.Offset(o.Add(n.Offset))-a.layout.Offset(o))
		}
	}
	for i := range f.Results {
		add(writtenName(f, i), i)
	}
	return s
}

// rowValue returns one of Form.Values for a row.
func rowValue[T rows.Float](r *Row, i int) T {
	return unsafe.Slice((*T)(unsafe.Pointer(&r.frame[frameNumbers*8])), i+1)[i]
}

// row computes a row.
func (s *formulaSweep[T]) row(r *Row) {
	at := domain.Vec{r.I, r.J, r.K}
	for i := range s.arrays {
		a := &s.arrays[i]
		o := a.layout.Offset(at)
		if a.result >= 0 {
			s.program.SetResult(a.result, a.values[o:o+int64(r.N)])
		}
		for k, node := range a.nodes {
			from := o + a.offsets[k]
			if s.form.Nodes[node].Uniform {
				s.program.SetUniform(node, a.values[from], r.N)
				continue
			}
			s.program.SetRead(node, a.values[from:from+int64(r.N)])
		}
	}
	for i, last := range s.values {
		if v := rowValue[T](r, s.form.Nodes[i].Value-1); bits(v) != bits(last) {
			s.values[i] = v
			s.program.SetNumber(i, v)
		}
	}
	for i, row := range s.noise {
		row = slices.Grow(row[:0], r.N)[:r.N]
		n, q := &s.form.Nodes[i], at.Add(s.form.Nodes[i].Offset)
		for k := range row {
			row[k] = stencil.Uniform[T](s.form.Noise(n.Number, r.Step(), q.Add(domain.Vec{k})))
		}
		s.noise[i] = row
		s.program.SetRead(i, row)
	}
	s.program.Run(r.N)
}

// Operations returns the number of operations of each kind in the function of a formula or a stencil; nil for other
// functions.
func (p *Point) Operations() map[string]int {
	all := map[string]int{}
	switch {
	case p.formula != nil:
		for _, n := range p.formula.Nodes {
			if n.Op != "" {
				all[n.Op]++
			} else if n.Noise {
				all["noise"]++
			}
		}
	case p.linear != nil:
		all["*"], all["+"] = 1+len(p.linear.Groups), p.linear.Points()-1
	default:
		return nil
	}
	return all
}
