package rows

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/stencil"
)

// operationsOf are the operations of nodes by their number of operands, of which the last ones give conditions.
var operationsOf = map[int][]string{
	1: {"-", "sqrt", "abs", "floor", "ceil", "sign", "sin", "not"},
	2: {"+", "-", "*", "/", "+", "-", "*", "min", "max", "mod", "<", "<=", ">", ">=", "==", "!=", "and", "or"},
	3: {"? :"},
}

// point is what an operation gives of single values.
func point[T Float](op string, v []T) T {
	truth := func(holds bool) T {
		if holds {
			return 1
		}
		return 0
	}
	a, b := v[0], v[min(1, len(v)-1)]
	switch op {
	case "+":
		return a + b
	case "-":
		if len(v) == 1 {
			return -a
		}
		return a - b
	case "*":
		return T(a * b)
	case "/":
		return a / b
	case "sqrt":
		return T(math.Sqrt(float64(a)))
	case "abs":
		return T(math.Abs(float64(a)))
	case "floor":
		return T(math.Floor(float64(a)))
	case "ceil":
		return T(math.Ceil(float64(a)))
	case "sin":
		return T(math.Sin(float64(a)))
	case "mod":
		return T(math.Mod(float64(a), float64(b)))
	case "sign":
		if a > 0 || a < 0 {
			return truth(a > 0) - truth(a < 0)
		}
		return a
	case "min":
		if a < b || a != a {
			return a
		}
		return b
	case "max":
		if a > b || a != a {
			return a
		}
		return b
	case "not":
		return truth(a == 0)
	case "and":
		return truth(a != 0 && b != 0)
	case "or":
		return truth(a != 0 || b != 0)
	case "? :":
		if a != 0 {
			return b
		}
		return v[2]
	}
	return truth(map[string]bool{"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[op])
}

// randomNodes returns nodes of random operations: leaves first, the third of which is a number.
func randomNodes(r *rand.Rand, leaves, count int, pure bool) (nodes []stencil.Node) {
	var numbers, conditions []int
	for i := range leaves {
		n := stencil.Node{Read: i}
		if i == 2 {
			n = stencil.Node{Read: -1, Number: 1.0 / 3}
		}
		nodes, numbers = append(nodes, n), append(numbers, i)
	}
	for len(nodes) < count {
		operands := []int{1, 2, 2, 2, 2, 3}[r.IntN(6)]
		op := operationsOf[operands][r.IntN(len(operationsOf[operands]))]
		n := stencil.Node{Op: op, Read: -1}
		for k := range operands {
			from := numbers
			if op == "not" || op == "and" || op == "or" || op == "? :" && k == 0 {
				from = conditions
			}
			if len(from) > 0 {
				n.Args = append(n.Args, from[max(0, len(from)-1-r.IntN(1+r.IntN(len(from))))])
			}
		}
		if len(n.Args) < operands || pure && (op == "sin" || op == "mod" || op == "sign") {
			continue
		}
		switch op {
		case "<", "<=", ">", ">=", "==", "!=", "and", "or", "not":
			conditions = append(conditions, len(nodes))
		default:
			numbers = append(numbers, len(nodes))
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// Programs give the bits of their operations, one by one.
func TestPrograms(t *testing.T) {
	t.Run("type=float64", testPrograms[float64])
	t.Run("type=float32", testPrograms[float32])
}

func testPrograms[T Float](t *testing.T) {
	const leaves = 6
	r := rand.New(rand.NewPCG(3, 4))
	for _, assembly := range variants() {
		t.Run(fmt.Sprintf("assembly=%v", assembly), func(t *testing.T) {
			for trial := range 120 {
				nodes := randomNodes(r, leaves, leaves+1+r.IntN(40), trial%2 == 0)
				results := []int{len(nodes) - 1, r.IntN(len(nodes)), len(nodes) - 1}
				inPlace := []bool{trial%3 == 0, trial%6 == 0, false}
				p := NewProgram[T](nodes, results, inPlace)
				p.assembly = assembly
				n := []int{1, 31, 32, 33, 63, 64, 100, 255, 256, 300, 700}[r.IntN(11)]
				if trial == 0 {
					n = 8200
				}
				in := make([][]T, leaves)
				for i := range in {
					in[i] = random[T](r, n, 1+r.IntN(8), 9)
					if i != 2 {
						p.Row(i).Set(in[i])
					}
				}
				var dst [3][]T
				for i := range dst {
					var intact func(*testing.T)
					dst[i], intact = fenced[T](n, 1+r.IntN(8))
					defer intact(t)
					p.Result(i).Set(dst[i])
					if inPlace[i] {
						copy(dst[i], in[i])
						p.Row(i).Set(dst[i])
					}
				}
				p.Run(n)
				values := make([]T, len(nodes))
				for i := range n {
					for at, node := range nodes {
						var args []T
						for _, a := range node.Args {
							args = append(args, values[a])
						}
						switch {
						case node.Op != "":
							values[at] = point(node.Op, args)
						case node.Read < 0:
							values[at] = T(node.Number)
						default:
							values[at] = in[node.Read][i]
						}
					}
					for k, at := range results {
						if !same(dst[k][i], values[at]) {
							t.Fatalf("trial %d, point %d of %d: result %d: got %v, want %v of nodes %v", trial, i, n, k, dst[k][i], values[at], nodes)
						}
					}
				}
			}
		})
	}
}
