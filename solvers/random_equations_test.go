package solvers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/solvers/scheme"
)

// A tree is a formula: an operation on trees or, without operands, a name or a number.
type tree struct {
	op     string
	args   []*tree
	number float64
}

// precedence is that of what binds as tightly to its left as to its right.
var precedence = map[string]int{"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}

// String writes no more parentheses than are needed around sums and products of numbers.
func (t *tree) String() string {
	operand := func(i, tighter int) string {
		a := t.args[i]
		if len(a.args) == 0 || isCall(a) || len(a.args) == 2 && tighter > 0 && precedence[a.op] >= tighter {
			return a.String()
		}
		return "(" + a.String() + ")"
	}
	switch p := precedence[t.op]; {
	case len(t.args) == 0 && t.op == "":
		return strconv.FormatFloat(t.number, 'g', -1, 64)
	case len(t.args) == 0:
		return t.op
	case isCall(t):
		var all []string
		for _, a := range t.args {
			all = append(all, a.String())
		}
		return t.op + "(" + strings.Join(all, ", ") + ")"
	case t.op == "? :":
		return operand(0, 0) + " ? " + operand(1, 0) + " : " + operand(2, 0)
	case t.op == "a < b < c":
		return operand(0, 1) + " < " + operand(1, 1) + " < " + operand(2, 1)
	case len(t.args) == 1:
		return t.op + " " + operand(0, 0)
	case p > 0:
		return operand(0, p) + " " + t.op + " " + operand(1, p+1)
	default:
		return operand(0, 0) + " " + t.op + " " + operand(1, 0)
	}
}

// isCall reports whether a tree is a call with arguments in parentheses.
func isCall(t *tree) bool {
	return len(t.args) > 0 && 'a' <= t.op[0] && t.op[0] <= 'z' && !slices.Contains([]string{"and", "or", "not", "a < b < c"}, t.op)
}

func leaf(name string) *tree                 { return &tree{op: name} }
func literal(v float64) *tree                { return &tree{number: v} }
func of2(op string, args ...*tree) *tree     { return &tree{op: op, args: args} }
func (g *grammar) pick(all ...string) string { return all[g.IntN(len(all))] }

// A grammar makes random formulas.
type grammar struct {
	*rand.Rand
	axes                int
	fields, coordinates bool           // formulas have them
	time, steps         bool           // formulas have t, and what changes from step to step
	previous            bool           // formulas have previous(u)
	quiet               bool           // formulas have no noise
	names               map[string]int // constants, parameters and let, with how far they reach
	all                 []string       // fields by number
}

// condition makes one of a depth.
func (g *grammar) condition(depth, reach int) *tree {
	sub := func() *tree { return g.formula(depth-1, reach) }
	switch n := g.IntN(8); {
	case n == 0 && depth > 1:
		return of2("not", g.condition(depth-1, reach))
	case n <= 2 && depth > 1:
		return of2(g.pick("and", "or", "&&", "||"), g.condition(depth-1, reach), g.condition(depth-1, reach))
	case n == 3:
		return of2("a < b < c", sub(), sub(), sub())
	}
	return of2(g.pick("<", "<=", ">", ">=", "==", "!="), sub(), sub())
}

// formula makes a formula of at most a depth, which reads no point farther away.
func (g *grammar) formula(depth, reach int) *tree {
	sub := func() *tree { return g.formula(depth-1, reach) }
	if depth <= 0 || g.IntN(9) == 0 {
		return g.leaf(reach)
	}
	switch n := g.IntN(24); {
	case n < 9:
		return g.finite(of2(g.pick("+", "+", "-", "-", "*", "*", "/", "%"), sub(), sub()))
	case n < 10:
		return of2("-", sub())
	case n < 12:
		exponents := []*tree{literal(float64(g.IntN(6))), literal(0.5), of2("-", literal(2)), literal(1.5), g.leaf(reach)}
		return g.finite(of2("^", sub(), exponents[g.IntN(len(exponents))]))
	case n < 14:
		return of2("? :", g.condition(depth-1, reach), sub(), sub())
	case n < 17:
		return g.finite(of2(g.pick("abs", "sqrt", "exp", "sin", "cos", "tanh", "floor", "round", "ceil", "sign", "log", "atan", "cbrt"), sub()))
	case n < 18:
		return g.finite(of2(g.pick("atan2", "hypot", "mod", "pow"), sub(), sub()))
	case n < 19:
		return of2(g.pick("min", "max"), []*tree{sub(), sub(), sub()}[g.IntN(2):]...)
	case reach == 0 || !g.coordinates:
		return sub()
	}
	return g.operator(depth, reach)
}

// finite returns an operation that is finite where it does not depend on fields: numbers and constants have to be.
func (g *grammar) finite(t *tree) *tree {
	if g.dependsOnFields(t) {
		return t
	}
	above := func(a *tree) *tree { return of2("+", literal(1), of2("abs", a)) }
	last := &t.args[len(t.args)-1]
	switch t.op {
	case "/", "%", "mod", "log":
		*last = above(*last)
	case "sqrt":
		*last = of2("abs", *last)
	case "exp":
		*last = of2("sin", *last)
	case "^", "pow":
		t.args[0] = above(of2("sin", t.args[0]))
		if len((*last).args) > 0 || (*last).op != "" {
			*last = of2("sin", *last)
		}
	}
	return t
}

func (g *grammar) dependsOnFields(t *tree) bool {
	return slices.Contains(g.all, t.op) || len(t.op) == 2 && t.op[0] == 'd' && t.op < "d:" || strings.HasPrefix(t.op, "l") && g.names[t.op] > 0 || slices.ContainsFunc(t.args, g.dependsOnFields)
}

// operator makes one that reaches a point or more.
func (g *grammar) operator(depth, reach int) *tree {
	near := func() *tree { return g.formula(depth-1, reach-1) }
	a := g.IntN(g.axes)
	b := (a + 1 + g.IntN(max(1, g.axes-1))) % g.axes
	one, other := "xyz"[min(a, b):][:1], "xyz"[max(a, b):][:1]
	args := []*tree{near()}
	switch n := g.IntN(8); {
	case n == 0:
		return of2("grad2", args...)
	case n == 1:
		return of2("d"+one, args...)
	case n == 2:
		return of2("d"+one+one, args...)
	case n == 3 && g.axes > 1:
		return of2("d"+one+other, args...)
	case n == 4:
		if args = append([]*tree{near()}, args...); g.IntN(2) == 0 {
			args = append(args, leaf("harmonic"))
		}
		return of2("div", args...)
	case n == 5:
		for range g.axes {
			args = append([]*tree{g.formula(depth-1, reach)}, args...)
		}
		return of2("upwind", args...)
	case n == 6:
		far := 1 + g.IntN(reach)
		args[0] = g.formula(depth-1, reach-far)
		for range g.axes {
			if offset := literal(float64(g.IntN(far + 1))); g.IntN(2) == 0 {
				args = append(args, offset)
			} else {
				args = append(args, of2("-", offset))
			}
		}
		return of2("at", args...)
	}
	return of2("lap", args...)
}

func (g *grammar) leaf(reach int) *tree {
	names := []string{"pi", "nx"}
	if g.coordinates {
		for a := range g.axes {
			names = append(names, "xyz"[a:a+1], "xyz"[a:a+1], "ijk"[a:a+1])
		}
	}
	if g.time {
		names = append(names, "t", "t")
	}
	if g.steps {
		names = append(names, "t", "dt", "step")
		if g.IntN(8) == 0 && !g.quiet {
			return of2("noise", literal(float64(g.IntN(3))*(1<<40)+7))
		}
	}
	known := 0
	for name, reaches := range g.names {
		if reaches <= reach {
			known++
			names = append(names, name, name)
		}
	}
	slices.Sort(names) // the order of maps is random
	switch n := g.IntN(6); {
	case g.fields && n < 3 && g.previous && g.IntN(4) == 0:
		return of2("previous", leaf(g.pick(g.all...)))
	case g.fields && n < 3:
		return leaf(g.pick(g.all...))
	case n < 5:
		return leaf(g.pick(names...))
	}
	return literal([]float64{0, 1, 2, 0.5, 3, 0.1, float64(g.IntN(1000)) / 64, g.Float64()}[g.IntN(8)])
}

// A value is a number of an interpreter, known but for an error. It is in float64 until it depends on fields, or on
// coordinates at more than one point.
type value struct {
	v, err float64
	fields bool
	timed  bool    // depends on the time or the step
	known  [3]bool // depends on an axis
	offset domain.Vec
}

// An interpreter computes an equation point by point, after the reference page of the language, from trees.
type interpreter struct {
	grid           domain.Grid
	axes           int
	h, shift       [3]float64 // spacing, and the coordinate of the first point in spacings
	single, bounds bool       // float32; errors are bounded
	names          map[string]*tree
	numbers        map[string]float64
	all, stored    []string // fields, and formulas of Equation.Define
	walls          [][6]ConditionText
	values         [][6]*tree // of walls
	transfers      [][6]*tree // of Robin walls

	levels      [2]level // now and one step before
	t, dt, step float64
	stage       int
	ghosts      map[ghost]value
	known       map[place]value
}

func (o *interpreter) round(v float64) float64 {
	if o.single {
		return float64(float32(v))
	}
	return v
}

// A level is all fields at a time.
type level struct {
	values, errs [][]float64
	times        []float64
}

func (l *level) at(f, i int) value { return value{v: l.values[f][i], err: l.errs[f][i], fields: true} }

// A place is where a formula is computed.
type place struct {
	tree    *tree
	at, off domain.Vec
}

// A ghost is a point behind faces of a field.
type ghost struct {
	level, field int
	at           domain.Vec
}

// functions are those of numbers and conditions, which are 1 or 0.
var functionsOfTrees = func() map[string]func(a []float64) float64 {
	truth := func(ok bool) float64 { return map[bool]float64{true: 1}[ok] }
	all := map[string]func(a []float64) float64{
		"+": func(a []float64) float64 { return a[0] + a[1] }, "*": func(a []float64) float64 { return a[0] * a[1] },
		"/": func(a []float64) float64 { return a[0] / a[1] },
		"-": func(a []float64) float64 {
			if len(a) == 1 {
				return -a[0]
			}
			return a[0] - a[1]
		},
		"<": func(a []float64) float64 { return truth(a[0] < a[1]) }, "<=": func(a []float64) float64 { return truth(a[0] <= a[1]) },
		">": func(a []float64) float64 { return truth(a[0] > a[1]) }, ">=": func(a []float64) float64 { return truth(a[0] >= a[1]) },
		"==": func(a []float64) float64 { return truth(a[0] == a[1]) }, "!=": func(a []float64) float64 { return truth(a[0] != a[1]) },
		"and": func(a []float64) float64 { return a[0] * a[1] }, "or": func(a []float64) float64 { return max(a[0], a[1]) },
		"not": func(a []float64) float64 { return 1 - a[0] },
		"min": func(a []float64) float64 { return min(a[0], a[1]) }, "max": func(a []float64) float64 { return max(a[0], a[1]) },
		"? :": func(a []float64) float64 {
			if a[0] != 0 {
				return a[1]
			}
			return a[2]
		},
		"sign": func(a []float64) float64 {
			if a[0] == 0 || a[0] != a[0] {
				return a[0]
			}
			return math.Copysign(1, a[0])
		},
	}
	for name, f := range map[string]func(float64) float64{"abs": math.Abs, "sqrt": math.Sqrt, "exp": math.Exp, "sin": math.Sin,
		"cos": math.Cos, "tanh": math.Tanh, "floor": math.Floor, "round": math.Round, "ceil": math.Ceil, "log": math.Log,
		"atan": math.Atan, "cbrt": math.Cbrt} {
		all[name] = func(a []float64) float64 { return f(a[0]) }
	}
	for name, f := range map[string]func(a, b float64) float64{"mod": math.Mod, "pow": math.Pow, "atan2": math.Atan2, "hypot": math.Hypot} {
		all[name] = func(a []float64) float64 { return f(a[0], a[1]) }
	}
	all["%"], all["&&"], all["||"] = all["mod"], all["and"], all["or"]
	return all
}()

// inexact is what GPUs compute otherwise.
var inexact = strings.Fields("exp sin cos tanh log atan cbrt pow atan2 hypot")

// apply is an operation on values.
func (o *interpreter) apply(op string, args ...value) (r value) {
	for _, a := range args {
		r.fields = r.fields || a.fields
		for axis := range 3 {
			if a.known[axis] {
				r.fields = r.fields || r.known[axis] && r.offset[axis] != a.offset[axis]
				r.known[axis], r.offset[axis] = true, a.offset[axis]
			}
		}
		r.timed = r.timed || a.timed
	}
	r.fields = r.fields || r.timed && r.known != [3]bool{} // is computed point by point
	var numbers [3]float64
	f, v := functionsOfTrees[op], numbers[:len(args)]
	at := func(i int, d float64) float64 {
		keep := v[i]
		v[i] += d
		changed := f(v)
		v[i] = keep
		return changed
	}
	for i, a := range args {
		if v[i] = a.v; r.fields {
			v[i] = o.round(a.v)
		}
	}
	if r.v = f(v); r.fields {
		r.v = o.round(r.v)
	}
	if !o.bounds || !r.fields {
		return r
	}
	ulp := math.Abs(r.v) * 0x1p-52
	if o.single {
		ulp = math.Abs(r.v)*0x1p-23 + 0x1p-149
	}
	for i, a := range args {
		if a.err > 0 {
			r.err += max(math.Abs(at(i, a.err)-r.v), math.Abs(at(i, -a.err)-r.v)) * 1.01
		}
	}
	if r.err > 0 {
		r.err += ulp
	}
	if slices.Contains(inexact, op) {
		r.err += 8 * ulp
	}
	return r
}

func (o *interpreter) number(v float64) value { return value{v: v} }

// eval computes a tree at a point that may lie behind faces; off is how far it is from the point that is computed.
func (o *interpreter) eval(t *tree, at, off domain.Vec) value {
	if len(t.args) == 0 {
		return o.leaf(t, at, off)
	}
	key := place{t, at, off}
	v, known := o.known[key]
	if !known {
		v = o.compute(t, at, off)
		o.known[key] = v
	}
	return v
}

// compute computes an operation.
func (o *interpreter) compute(t *tree, at, off domain.Vec) value {
	shifted := func(i int, d domain.Vec) value { return o.eval(t.args[i], at.Add(d), off.Add(d)) }
	along := func(i, axis, n int) value {
		var d domain.Vec
		d[axis] = n
		return shifted(i, d)
	}
	times := func(f float64, v value) value { return o.apply("*", o.number(f), v) }
	total := func(term func(axis int) value) value {
		all := term(0)
		for a := 1; a < o.axes; a++ {
			all = o.apply("+", all, term(a))
		}
		return all
	}
	inverse2 := func(a int) float64 { return 1 / (o.h[a] * o.h[a]) }
	here := domain.Vec{}
	switch t.op {
	case "lap":
		if h := o.h[:o.axes]; slices.Max(h) != slices.Min(h) {
			center := 0.0
			for a := range h {
				center += inverse2(a)
			}
			all := times(-2*center, shifted(0, here))
			for a := range h {
				all = o.apply("+", all, times(inverse2(a), o.apply("+", along(0, a, 1), along(0, a, -1))))
			}
			return all
		}
		all := total(func(a int) value { return along(0, a, 1) })
		for a := range o.axes {
			all = o.apply("+", all, along(0, a, -1))
		}
		return o.apply("+", times(-float64(2*o.axes)*inverse2(0), shifted(0, here)), times(inverse2(0), all))
	case "dx", "dy", "dz":
		return o.slope(t.args[0], int(t.op[1]-'x'), at, off)
	case "dxx", "dyy", "dzz":
		a := int(t.op[1] - 'x')
		return o.apply("+", times(-2*inverse2(a), shifted(0, here)), times(inverse2(a), o.apply("+", along(0, a, 1), along(0, a, -1))))
	case "dxy", "dxz", "dyz":
		a, b := int(t.op[1]-'x'), int(t.op[2]-'x')
		corner := func(m, n int) value {
			var d domain.Vec
			d[a], d[b] = m, n
			return shifted(0, d)
		}
		return times(0.25/(o.h[a]*o.h[b]), o.apply("-", o.apply("+", corner(1, 1), corner(-1, -1)), o.apply("+", corner(1, -1), corner(-1, 1))))
	case "grad2":
		return total(func(a int) value {
			d := o.slope(t.args[0], a, at, off)
			return o.apply("*", d, d)
		})
	case "div":
		face := func(axis, low int) value {
			k, next := along(0, axis, low), along(0, axis, low+1)
			both := o.apply("+", k, next)
			if len(t.args) == 3 {
				return o.apply("/", times(2, o.apply("*", k, next)), both)
			}
			return times(0.5, both)
		}
		return total(func(a int) value {
			up := o.apply("*", face(a, 0), o.apply("-", along(1, a, 1), shifted(1, here)))
			down := o.apply("*", face(a, -1), o.apply("-", shifted(1, here), along(1, a, -1)))
			return times(inverse2(a), o.apply("-", up, down))
		})
	case "upwind":
		u := len(t.args) - 1
		return total(func(a int) value {
			speed, zero := shifted(a, here), o.number(0)
			from := o.apply("*", o.apply("max", speed, zero), o.apply("-", shifted(u, here), along(u, a, -1)))
			to := o.apply("*", o.apply("min", speed, zero), o.apply("-", along(u, a, 1), shifted(u, here)))
			return times(1/o.h[a], o.apply("+", from, to))
		})
	case "at":
		var d domain.Vec
		for a, offset := range t.args[1:] {
			d[a] = int(o.eval(offset, at, off).v)
		}
		return shifted(0, d)
	case "noise":
		return value{v: o.noise(uint64(t.args[0].number), at), fields: true}
	case "previous":
		return o.field(1, slices.Index(o.all, t.args[0].op), at)
	case "a < b < c":
		b := shifted(1, here)
		return o.apply("and", o.apply("<", shifted(0, here), b), o.apply("<", b, shifted(2, here)))
	case "^":
		return o.power(shifted(0, here), shifted(1, here))
	}
	all := shifted(0, here)
	if t.op == "min" || t.op == "max" {
		for i := range t.args[1:] {
			all = o.apply(t.op, all, shifted(i+1, here))
		}
		return all
	}
	var args []value
	for i := range t.args {
		args = append(args, shifted(i, here))
	}
	return o.apply(t.op, args...)
}

// noise is the random number of a point: Philox4x32-10, of which float64 takes 53 bits and float32 takes 24.
func (o *interpreter) noise(seed uint64, at domain.Vec) float64 {
	c := [4]uint64{3: uint64(o.step)}
	for a, n := range o.grid.Size {
		c[a] = uint64((at[a]%n + n) % n)
	}
	k := [2]uint64{seed & 0xffffffff, seed>>32 | uint64(o.stage)<<21}
	for range 10 {
		p, q := 0xD2511F53*c[0], 0xCD9E8D57*c[2]
		c = [4]uint64{q>>32 ^ c[1] ^ k[0], q & 0xffffffff, p>>32 ^ c[3] ^ k[1], p & 0xffffffff}
		k = [2]uint64{(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff}
	}
	if o.single {
		return float64(c[0]>>8) / (1 << 24)
	}
	return float64(c[0]>>5<<26+c[1]>>6) / (1 << 53)
}

// slope is the centered difference along an axis.
func (o *interpreter) slope(u *tree, a int, at, off domain.Vec) value {
	var d domain.Vec
	d[a] = 1
	minus := domain.Vec{-d[0], -d[1], -d[2]}
	return o.apply("*", o.number(0.5/o.h[a]), o.apply("-", o.eval(u, at.Add(d), off.Add(d)), o.eval(u, at.Add(minus), off.Add(minus))))
}

// power multiplies for whole exponents.
func (o *interpreter) power(x, y value) value {
	isNumber := func(v value) bool { return !v.fields && !v.timed && v.known == [3]bool{} }
	n := y.v
	switch {
	case isNumber(x) && isNumber(y) || !isNumber(y):
		return o.apply("pow", x, y)
	case n == 0.5:
		return o.apply("sqrt", x)
	case n != math.Trunc(n) || math.Abs(n) > 16:
		return o.apply("pow", x, y)
	case n < 0:
		return o.apply("/", o.number(1), o.power(x, o.number(-n)))
	case n == 0:
		return o.number(1)
	case n == 1:
		return x
	case math.Mod(n, 2) == 1:
		return o.apply("*", o.power(x, o.number(n-1)), x)
	}
	half := o.power(x, o.number(n/2))
	return o.apply("*", half, half)
}

// leaf is the value of a number or a name.
func (o *interpreter) leaf(t *tree, at, off domain.Vec) value {
	name := t.op
	switch name {
	case "":
		return o.number(t.number)
	case "pi":
		return o.number(math.Pi)
	case "t", "dt", "step":
		return value{v: map[string]float64{"t": o.t, "dt": o.dt, "step": o.step}[name], timed: true}
	case "nx":
		return o.number(float64(o.grid.Size[0]))
	}
	if v, ok := o.numbers[name]; ok {
		return o.number(v)
	}
	if t, ok := o.names[name]; ok {
		return o.eval(t, at, off)
	}
	if f := slices.Index(o.all, name); f >= 0 {
		return o.field(0, f, at)
	}
	if f := slices.Index(o.stored, name); f >= 0 {
		return o.field(0, len(o.all)+f, at)
	}
	a := strings.Index("xyzijk", name)
	axis := a % 3
	place := at[axis]
	if o.grid.Periodic[axis] {
		place = (place + 4*o.grid.Size[axis]) % o.grid.Size[axis]
	}
	r := o.number(float64(place))
	if a < 3 {
		r.v = (float64(place) + o.shift[axis]) * o.h[axis]
	}
	r.known[axis], r.offset[axis] = true, off[axis]
	return r
}

// field is the value of a field of a level at a point: periodic axes are followed, then faces half a spacing out, of z,
// then y, then x, and last the Dirichlet face at the first ghosts of the last axis counts.
func (o *interpreter) field(level, f int, at domain.Vec) value {
	set, half := -1, -1
	for a, n := range o.grid.Size {
		switch {
		case at[a] >= 0 && at[a] < n:
		case o.grid.Periodic[a]:
			at[a] = (at[a] + 4*n) % n
		default:
			face := 2 * a
			if at[a] >= n {
				face++
			}
			if w := o.walls[f][face]; w.Kind == Dirichlet && !w.Half {
				set = face
			} else {
				half = face
			}
		}
	}
	if half < 0 && set < 0 {
		i := at[0] + o.grid.Size[0]*(at[1]+o.grid.Size[1]*at[2])
		return o.levels[level].at(f, i)
	}
	key := ghost{level, f, at}
	v, known := o.ghosts[key]
	if !known {
		face := set
		if half >= 0 {
			face = half
		}
		v = o.behind(face, key)
		o.ghosts[key] = v
	}
	return v
}

// behind is the value of a ghost behind a face.
func (o *interpreter) behind(face int, q ghost) value {
	level, f, at := q.level, q.field, q.at
	w := o.walls[f][face]
	set := w.Kind == Dirichlet && !w.Half
	axis, n, in, behind := face/2, o.grid.Size[face/2], at, at
	layer := max(-1-at[axis], at[axis]-n)
	first, inward := -1, 1
	if face%2 == 1 {
		first, inward = n, -1
	}
	wall := func(of *tree) float64 { // a value of the face
		behind[axis] = first
		keep := *o
		o.t, o.known, o.single = o.levels[level].times[f], map[place]value{}, false // coordinates are others
		if !set {
			o.shift[axis] += 0.5 * float64(inward)
		}
		g := o.eval(of, behind, domain.Vec{}) // in float64
		*o = keep
		return g.v
	}
	rounded := func(v float64) value { return value{v: o.round(v), fields: true} }
	in[axis] = first + inward*(layer+1)
	switch {
	case set && layer == 0:
		return rounded(wall(o.values[f][face]))
	case set: // odd about the first ghost
		behind[axis] = first
		return o.apply("-", o.apply("*", o.number(2), o.field(level, f, behind)), o.field(level, f, func() domain.Vec {
			p := at
			p[axis] = at[axis] + 2*inward
			return p
		}()))
	case w.Kind == "outflow":
		in[axis] = first + inward
		return o.field(level, f, in)
	case w.Value == "":
		return o.field(level, f, in)
	}
	d := float64(2*layer+1) * o.h[axis]
	a, b, g := 1., d, wall(o.values[f][face])
	switch w.Kind {
	case Dirichlet:
		a, b = -1, 2
	case "robin":
		h := wall(o.transfers[f][face])
		if a, b = (1/d-h/2)/(1/d+h/2), h/(1/d+h/2); len(o.transfers[f][face].args) > 0 { // not a number
			g, b = b*g, 1
		}
	}
	return o.apply("+", o.apply("*", o.number(a), o.field(level, f, in)), o.apply("*", o.number(b), rounded(g)))
}

// each calls f with each point of the grid.
func (o *interpreter) each(f func(i int, at domain.Vec)) {
	n := o.grid.Size
	for i := range n[0] * n[1] * n[2] {
		f(i, domain.Vec{i % n[0], i / n[0] % n[1], i / n[0] / n[1]})
	}
}

// An experiment is a random equation with its interpreter.
type experiment struct {
	*Equation
	interpreter *interpreter
	rules       map[int]*tree   // rates, accelerations or new values by field
	stages      []map[int]*tree // in place of rules
	stored      []*tree         // formulas of Equation.Define
	initial     [2][]*tree
}

// newExperiment makes the equation of a number, with or without values of faces that change with time; of so many fields, or
// of one to three if that is 0.
func newExperiment(number, fields int, moving bool) *experiment {
	r := rand.New(rand.NewPCG(51, uint64(number)))
	e := &experiment{Equation: &Equation{TimeStep: 0.01, Force: true}, rules: map[int]*tree{}}
	axes := 1 + r.IntN(3)
	o := &interpreter{axes: axes, names: map[string]*tree{}, numbers: map[string]float64{}}
	e.interpreter = o
	g := &grammar{Rand: r, axes: axes, coordinates: true, names: map[string]int{}}
	e.Element = []domain.Element{domain.Float64, domain.Float64, domain.Float32}[r.IntN(3)]
	o.single = e.Element == domain.Float32
	kinds, equal := make([]BoundaryKind, 6), r.IntN(2) == 0
	for a := range axes {
		most := []int{0, 16, 7, 5}[axes]
		e.Size = append(e.Size, 4+r.IntN(most-3))
		switch n := r.IntN(8); {
		case n == 0:
			e.Size[a] = 1 + r.IntN(3)
		case n == 1 && axes == 1: // more than CPU devices compute at a time
			e.Size[a] = 250 + r.IntN(600)
		}
		e.Start, e.Spacing = append(e.Start, []float64{0, 1.5, -0.3}[r.IntN(3)]), append(e.Spacing, 0.5+r.Float64())
		if equal {
			e.Spacing[a] = e.Spacing[0]
		}
		all := []BoundaryKind{Dirichlet, Dirichlet, Neumann, Neumann, "flux", "robin", "outflow"}
		kinds[2*a], kinds[2*a+1] = all[r.IntN(len(all))], all[r.IntN(len(all))]
		if r.IntN(3) == 0 {
			kinds[2*a], kinds[2*a+1] = Periodic, Periodic
		}
	}
	cells := r.IntN(4) == 0
	if r.IntN(2) == 0 {
		e.Parameters = map[string]float64{"p0": r.Float64(), "p1": -1.5}
		o.numbers, g.names["p0"], g.names["p1"] = e.Parameters, 0, 0
	}
	for i := range r.IntN(3) {
		name := fmt.Sprintf("c%d", i)
		o.names[name] = g.formula(3, 0)
		e.Constants, g.names[name] = append(e.Constants, Definition{name, o.names[name].String()}), 0
	}
	values := *g
	values.names = maps.Clone(g.names)
	if fields == 0 {
		fields = 1 + r.IntN(3)
	}
	for i := range fields {
		o.all = append(o.all, fmt.Sprintf("u%d", i))
	}
	form := []string{"update", "rate", "rate", "rate", "acceleration", "stages"}[r.IntN(6)]
	update := form == "update"
	g.all, g.fields, g.steps = o.all, true, form != "acceleration" && r.IntN(2) == 0
	if r.IntN(3) == 0 {
		g.quiet = true // noise also depends on how many stages store formulas
		for i := range 1 + r.IntN(2) {
			rule, name := g.formula(3, 2), fmt.Sprintf("d%d", i)
			e.stored, o.stored, g.names[name] = append(e.stored, rule), append(o.stored, name), 0
			e.Define = append(e.Define, Stored{Definition: Definition{name, rule.String()}})
		}
	}
	if all := []Integrator{"", "euler", "rk2", "ssprk3", "rk4"}; form == "rate" {
		e.Integrator = all[r.IntN(len(all))]
	}
	g.previous = update
	for i := range r.IntN(3) {
		name, reach := fmt.Sprintf("l%d", i), r.IntN(3) // without differences it may depend on no field
		o.names[name] = g.formula(3, reach)
		e.Let, g.names[name] = append(e.Let, Definition{name, o.names[name].String()}), reach
	}
	for i, name := range o.all {
		if fields > 3 {
			g.all = []string{name, o.all[(i+1)%fields], o.all[(i+2)%fields]}
		}
		f := EquationFor{Name: name}
		rule := g.formula(6, 2)
		if i == 0 {
			rule = of2("+", rule, of2("*", literal(0.25), of2("lap", leaf(name))))
		}
		if e.rules[i] = rule; form == "stages" {
			for len(e.stages) <= i%3 {
				e.stages, e.Stages = append(e.stages, map[int]*tree{}), append(e.Stages, nil)
			}
			for stage := range e.stages {
				if r.IntN(2) == 0 || stage == len(e.stages)-1 {
					e.stages[stage][i] = rule
					e.Stages[stage] = append(e.Stages[stage], Definition{name, rule.String()})
					rule = g.formula(4, 2)
				}
			}
		} else {
			*map[string]*string{"update": &f.Update, "rate": &f.Rate, "acceleration": &f.Acceleration}[form] = rule.String()
		}
		wave := func() *tree {
			part := of2("*", leaf("i"), literal(0.5+r.Float64()))
			for a := range axes - 1 {
				part = of2("+", part, of2("*", leaf("jk"[a:a+1]), of2("+", leaf("i"), literal(r.Float64()))))
			}
			return of2("sin", of2("+", part, literal(3*r.Float64())))
		}
		initial, before := wave(), wave()
		f.Initial = initial.String()
		if update && strings.Contains(fmt.Sprint(e.rules, e.Let, e.Define), "previous("+name+")") && r.IntN(2) == 0 {
			f.Previous = before.String()
		} else if form == "acceleration" {
			f.InitialRate = before.String()
		} else {
			before = initial
		}
		e.initial[0], e.initial[1] = append(e.initial[0], initial), append(e.initial[1], before)
		var trees, transfers [6]*tree
		for k := range 2 * axes {
			w := &f.Boundary[k]
			w.Kind, w.Half = kinds[k], cells && kinds[k] == Dirichlet
			if kinds[k] == Periodic || kinds[k] == "outflow" || kinds[k] == Neumann && r.IntN(2) == 0 {
				continue
			}
			values.time = moving && r.IntN(2) == 0
			trees[k] = of2("sin", values.formula(2, 0))
			w.Value, transfers[k] = trees[k].String(), literal(0.5+r.Float64())
			if w.Kind == "robin" && r.IntN(2) == 0 {
				transfers[k] = of2("+", literal(1.5), of2("sin", of2("+", leaf("i"), values.formula(2, 0))))
			}
			w.Transfer, w.Diffusivity = transfers[k].String(), "1"
		}
		e.Fields, o.walls, o.values = append(e.Fields, f), append(o.walls, f.Boundary), append(o.values, trees)
		o.transfers = append(o.transfers, transfers)
	}
	for range o.stored { // periodic, or without slope
		var walls [6]ConditionText
		for k := range walls {
			if walls[k].Kind = Neumann; kinds[k] == Periodic {
				walls[k].Kind = Periodic
			}
		}
		o.walls, o.values = append(o.walls, walls), append(o.values, [6]*tree{})
	}
	return e
}

// start sets the fields of an interpreter to those of a problem at its start.
func (e *experiment) start(p *Problem) {
	o := e.interpreter
	o.grid = p.Grid
	for a := range o.axes {
		distance := map[BoundaryKind]float64{Periodic: 0, Dirichlet: 1}
		o.h[a], o.shift[a] = e.Spacing[a], 0.5
		if d, ok := distance[o.walls[0][2*a].Kind]; ok && !o.walls[0][2*a].Half {
			o.shift[a] = d
		}
		o.shift[a] += e.Start[a] / o.h[a]
	}
	o.known = map[place]value{}
	for n, all := range e.initial {
		o.levels[n] = level{}
		for _, initial := range all {
			values := make([]float64, p.Grid.Points())
			o.each(func(i int, at domain.Vec) { values[i] = o.round(o.eval(initial, at, domain.Vec{}).v) })
			o.levels[n].values = append(o.levels[n].values, values)
			o.levels[n].errs = append(o.levels[n].errs, make([]float64, len(values)))
			o.levels[n].times = append(o.levels[n].times, 0)
		}
	}
}

// A substep computes w[to] = u + sum(parts[k]*(w[k] - u)) + rate*dt*f(w[from]), where w[0] is u, the fields before a step,
// and w[1] those after it. The time is that of w[to], in steps.
type substep struct {
	from, to   int
	parts      [4]float64
	rate, time float64
}

// substeps are the textbook methods, as increments of the fields before a step.
var substeps = map[Integrator][]substep{
	"euler": {{0, 1, [4]float64{}, 1, 1}},
	"rk2":   {{0, 2, [4]float64{}, 0.5, 0.5}, {2, 1, [4]float64{}, 1, 1}},
	"ssprk3": {{0, 1, [4]float64{}, 1, 1}, {1, 2, [4]float64{1: 0.25}, 0.25, 0.5},
		{2, 1, [4]float64{2: 2. / 3}, 2. / 3, 1}},
	"rk4": {{0, 1, [4]float64{}, 0.5, 0.5}, {1, 2, [4]float64{}, 0.5, 0.5}, {2, 3, [4]float64{}, 1, 1},
		{3, 1, [4]float64{1: 1. / 3, 2: 2. / 3, 3: 1. / 3}, 1. / 6, 1}},
}

// sweep computes fields from what rules give at each point, after the stored formulas.
func (e *experiment) sweep(rules map[int]*tree, time float64, next func(rule value, field, point int) value) level {
	o, from, all := e.interpreter, &e.interpreter.levels[0], len(e.interpreter.all)
	o.ghosts, o.known = map[ghost]value{}, map[place]value{}
	compute := func(l *level, f int, rule *tree, time float64, next func(v value, f, i int) value) {
		values, errs := make([]float64, len(from.values[0])), make([]float64, len(from.values[0]))
		o.each(func(i int, at domain.Vec) {
			v := next(o.eval(rule, at, domain.Vec{}), f, i)
			values[i], errs[i] = o.round(v.v), v.err
		})
		l.values[f], l.errs[f], l.times[f] = values, errs, time
	}
	more := make([][]float64, len(e.stored))
	*from = level{append(from.values[:all:all], more...), append(from.errs[:all:all], more...), append(from.times[:all:all], make([]float64, len(more))...)}
	for k, rule := range e.stored {
		compute(from, all+k, rule, 0, func(v value, _, _ int) value { return v })
	}
	l := level{slices.Clone(from.values[:all]), slices.Clone(from.errs[:all]), slices.Clone(from.times[:all])}
	for f, rule := range rules {
		compute(&l, f, rule, time, next)
	}
	return l
}

// plus adds a multiple.
func (o *interpreter) plus(a value, factor float64, b value) value {
	return o.apply("+", a, o.apply("*", o.number(factor), b))
}

// step advances an interpreter by the n-th step.
func (e *experiment) step(n int) {
	o, dt := e.interpreter, e.TimeStep
	o.dt, o.step = dt, float64(n+1)
	begins, ends := float64(n)*dt, float64(n+1)*dt
	for f := range o.all {
		o.levels[0].times[f], o.levels[1].times[f] = begins, float64(n-1)*dt
	}
	o.t = begins
	w := [4]level{o.levels[0]}
	same := func(v value, _, _ int) value { return v }
	switch first := e.Fields[0]; {
	case e.Stages != nil:
		for stage, rules := range e.stages {
			o.stage = stage
			o.levels[0] = e.sweep(rules, ends, same)
		}
		w[1] = o.levels[0]
	case first.Update != "":
		w[1] = e.sweep(e.rules, ends, same)
	case first.Acceleration != "":
		if n == 0 { // the rates give way to the fields before the first step
			o.levels[1] = e.sweep(e.rules, -dt, func(v value, f, i int) value {
				return o.plus(o.plus(o.levels[0].at(f, i), -dt, o.levels[1].at(f, i)), dt*dt/2, v)
			})
		}
		w[1] = e.sweep(e.rules, ends, func(v value, f, i int) value {
			u := o.levels[0].at(f, i)
			return o.apply("+", u, o.plus(o.apply("-", u, o.levels[1].at(f, i)), dt*dt, v))
		})
	default:
		for stage, s := range substeps[cmp.Or(e.Integrator, "euler")] {
			o.levels[0], o.t, o.stage = w[s.from], w[s.from].times[0], stage
			w[s.to] = e.sweep(e.rules, (float64(n)+s.time)*dt, func(v value, f, i int) value {
				all := w[0].at(f, i)
				for k, part := range s.parts {
					if part != 0 {
						all = o.plus(all, part, o.apply("-", w[k].at(f, i), w[0].at(f, i)))
					}
				}
				return o.plus(all, s.rate*dt, v)
			})
		}
	}
	o.levels, o.stage = [2]level{w[1], w[0]}, 0
}

// stepsOfExperiments is so many that each level of a field is used again.
const stepsOfExperiments = 3

// run compares a run of an equation with its interpreter. A scheme that does not suit it gives way to baseline.
func (e *experiment) run(t *testing.T, set *testdevices.Set, number int, p *Problem, h how) error {
	plan, err := p.NewPlan(placed(t, set, p, h.parts), set.Links, pathOf(h.scheme))
	if err != nil {
		return err
	}
	s, err := New(t.Context(), p, plan, set.Compiler)
	if err != nil {
		return err
	}
	o := scheme.Options{Scheme: h.scheme, Order: h.order, Steps: stepsOfExperiments, Limit: testLimit}
	if _, err = s.Run(t.Context(), o); err == nil {
		e.compare(t, number, p, s, fmt.Sprint(h))
	}
	err = errors.Join(err, s.Close())
	if errors.Is(err, scheme.ErrUnsuited) && h.scheme != scheme.Baseline {
		h.scheme = scheme.Baseline
		return e.run(t, set, number, p, h)
	}
	return err
}

// Random equations have the bits of an interpreter of their trees, with any scheme, decomposition, type and boundary.
func TestRandomEquations(t *testing.T) {
	set := testdevices.Host(t, 4)
	tried, ran, linear, refused := 0, 0, 0, map[string]int{}
	numbers := testdevices.Again(10, testdevices.Some(30, testdevices.Numbers(10000)))
	for _, number := range numbers {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			tried++
			r := rand.New(rand.NewPCG(52, uint64(number)))
			moving := r.IntN(2) == 0
			e := newExperiment(number, 0, moving)
			p, err := e.Problem()
			if err == nil && moving && p.checkParts() != nil { // values of Dirichlet faces must not change with time for all
				e = newExperiment(number, 0, false)
				p, err = e.Problem()
			}
			if err == nil {
				h := how{scheme: scheme.All()[r.IntN(len(scheme.All()))], order: scheme.LeftRight, parts: domain.Vec{1, 1, 1}}
				for a := range e.Size {
					h.parts[a] += r.IntN(2)
				}
				if r.IntN(3) == 0 && groups(h.scheme) {
					p = inGroupsOf(p, 2)
				}
				if !fits(set, p, h.parts) {
					h.parts, p = domain.Vec{1, 1, 1}, inGroupsOf(p, 1)
				}
				err = e.run(t, set, number, p, h)
			}
			if err != nil {
				refused[kindOf(err)]++
				return
			}
			if ran++; p.system == nil {
				linear++
			}
		})
	}
	t.Logf("%d ran, %d of them as stencils; refused: %v", ran, linear, refused)
	if ran < tried*6/10 { // about nine of ten run, but small samples vary
		t.Errorf("only %d of %d equations ran: %v", ran, tried, refused)
	}
}

// GPUs have the bits of the interpreter too, except those of functions such as exp: they are as near as these functions
// are. A program has five equations: NVRTC takes longer than ten minutes for twenty of them.
func TestRandomEquationsOnGPUs(t *testing.T) {
	const programs, fields = 80, 5
	schemes := []scheme.Scheme{scheme.Fused, scheme.TwoStream, scheme.Graph, scheme.Resident, scheme.Ranks, scheme.Assisted}
	run := func(t *testing.T, set *testdevices.Set, numbers []int) {
		for _, number := range numbers {
			t.Run(fmt.Sprint(number), func(t *testing.T) {
				h := how{scheme: schemes[number%len(schemes)], order: scheme.LeftRight, parts: domain.Vec{1, 1, 1}}
				for try := number; ; try += programs {
					e := newExperiment(try, fields, try == number)
					e.interpreter.bounds = true
					p, err := e.Problem()
					if err == nil {
						if h.parts[0] = min(2, len(set.Devices)); !fits(set, p, h.parts) {
							h.parts[0] = 1
						}
						if err = e.run(t, set, try, p, h); err == nil {
							break
						}
					}
					if t.Logf("equation %d: %v", try, err); try > 20*programs {
						t.Fatal("none runs")
					}
				}
			})
		}
	}
	t.Run("backend=cuda", func(t *testing.T) {
		run(t, testdevices.GPUs(t), testdevices.Some(4, testdevices.Numbers(programs)))
	})
	t.Run("backend=cuda-on-cpu", func(t *testing.T) {
		testdevices.InTurn(t, 2, 8)
		run(t, testdevices.CPU(t, 2), testdevices.Some(1, testdevices.Numbers(programs)))
	})
}

// kindOf is the text of an error without numbers.
func kindOf(err error) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, err.Error())
}

// compare fails the test unless a solver has the values of the interpreter.
func (e *experiment) compare(t *testing.T, number int, p *Problem, s *Solver, how string) {
	t.Helper()
	e.start(p)
	for n := range stepsOfExperiments {
		e.step(n)
	}
	for f, name := range e.interpreter.all {
		got := make([]float64, p.Grid.Points())
		succeeds(t, s.Gather(t.Context(), f, got, p.Grid.Box()))
		for i, want := range e.interpreter.levels[0].values[f] {
			allowed := e.interpreter.levels[0].errs[f][i]
			if p.system == nil { // a stencil, whose weights are the sums of the factors
				allowed = 1e-13 * (1 + math.Abs(want))
				if e.interpreter.single {
					allowed *= 1e8
				}
			}
			if got[i] != want && !(math.IsNaN(got[i]) && math.IsNaN(want)) && !(math.Abs(got[i]-want) <= allowed) && !math.IsNaN(allowed) {
				t.Errorf("equation %d, %s, %s: value %d of %s is %v, want %v within %v\n%+v", number, how, e.Element, i, name,
					got[i], want, allowed, *e.Equation)
				return
			}
		}
	}
}
