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
	values  []formulaValue[T]
	noise   map[int][]T // rows of nodes that are noise; nil if there are none
	last    domain.Vec  // first point of the last row
	length  int         // of the last row
}

// A formulaValue is the last value of a node that is one of Form.Values.
type formulaValue[T rows.Float] struct {
	node int
	last T
}

// A formulaArray is an array, either with the nodes that read it or for a result.
type formulaArray[T rows.Float] struct {
	origin    int64    // offset of the point 0, 0, 0 in values, which may be outside
	strides   [3]int64 // between points, per axis
	values    []T
	nodes     []int
	rows      []*rows.Row[T] // of the nodes
	mover     rows.Mover[T]  // of the rows or the result
	offsets   []int64        // offsets of nodes in the array
	low, high int64          // least and largest offset of a node
	uniform   bool           // the points of a row share one value
	result    *rows.Row[T]   // row of the result; nil if nodes read the array
}

func newFormulaSweep[T rows.Float](f *stencil.Form, accesses []Access, arrays Arrays) *formulaSweep[T] {
	inPlace := make([]bool, len(f.Results))
	for i := range inPlace {
		inPlace[i] = isInPlace(f, i)
	}
	s := &formulaSweep[T]{program: rows.NewProgram[T](f.Nodes, f.Results, inPlace), form: f}
	for i, n := range f.Nodes {
		switch {
		case n.Value > 0:
			s.values = append(s.values, formulaValue[T]{node: i})
		case n.Noise && s.noise == nil:
			s.noise = map[int][]T{i: nil}
		case n.Noise:
			s.noise[i] = nil
		}
	}
	add := func(name string) *formulaArray[T] {
		i := findAccess(accesses, name)
		if i < 0 {
			return nil
		}
		a := &arrays[i][0]
		one := formulaArray[T]{origin: a.Layout.Offset(domain.Vec{}), values: values[T](a), uniform: a.Layout.Uniform()}
		for axis := range one.strides {
			var next domain.Vec
			next[axis] = 1
			one.strides[axis] = a.Layout.Offset(next) - one.origin
		}
		s.arrays = append(s.arrays, one)
		return &s.arrays[len(s.arrays)-1]
	}
	for which := range len(f.Fields) + len(f.Given) {
		a := add(readName(which))
		for i, n := range f.Nodes {
			if n.Op == "" && n.Read == which {
				a.nodes, a.rows = append(a.nodes, i), append(a.rows, s.program.Row(i))
				a.offsets = append(a.offsets, a.offset(n.Offset)-a.origin)
				a.mover.Add(a.rows[len(a.rows)-1])
				a.low, a.high = slices.Min(a.offsets), slices.Max(a.offsets)
			}
		}
	}
	for i := range f.Results {
		if a := add(writtenName(f, i)); a != nil {
			a.result = s.program.Result(i)
			a.mover.Add(a.result)
		}
	}
	return s
}

// offset returns the offset of a point.
func (a *formulaArray[T]) offset(p domain.Vec) int64 {
	return a.origin + int64(p[0])*a.strides[0] + int64(p[1])*a.strides[1] + int64(p[2])*a.strides[2]
}

// rowValue returns one of Form.Values for a row.
func rowValue[T rows.Float](r *Row, i int) T {
	return unsafe.Slice((*T)(unsafe.Pointer(&r.frame[frameNumbers*8])), i+1)[i]
}

// row computes a row.
func (s *formulaSweep[T]) row(r *Row) {
	at, n := domain.Vec{r.I, r.J, r.K}, int64(r.N)
	moves := at == s.last.Add(domain.Vec{0, 1}) && r.N == s.length && s.program.Moves(r.N)
	s.last, s.length = at, r.N
	for i := range s.arrays {
		a := &s.arrays[i]
		o := a.offset(at)
		switch {
		case moves && !a.uniform && o+a.low >= 0 && o+a.high+n <= int64(len(a.values)):
			a.mover.Move(a.strides[1])
		case a.result != nil:
			a.result.Set(a.values[o : o+n])
		case a.uniform:
			for k, node := range a.nodes {
				s.program.SetUniform(node, a.values[o+a.offsets[k]], r.N)
			}
		default:
			for k, row := range a.rows {
				from := o + a.offsets[k]
				row.Set(a.values[from : from+n])
			}
		}
	}
	for i := range s.values {
		one := &s.values[i]
		if v := rowValue[T](r, s.form.Nodes[one.node].Value-1); bits(v) != bits(one.last) {
			one.last = v
			s.program.SetNumber(one.node, v)
		}
	}
	for i, row := range s.noise {
		row = slices.Grow(row[:0], r.N)[:r.N]
		n, q := &s.form.Nodes[i], at.Add(s.form.Nodes[i].Offset)
		for k := range row {
			row[k] = stencil.Uniform[T](s.form.Noise(n.Number, r.Step(), q.Add(domain.Vec{k})))
		}
		s.noise[i] = row
		s.program.Row(i).Set(row)
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
