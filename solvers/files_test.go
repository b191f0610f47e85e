package solvers

import (
	"fmt"
	"math"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
)

// memory is a File of values by their points.
type memory struct {
	size  []int
	value func(at domain.Vec) float64
}

func (m *memory) Size() []int { return m.size }

func (m *memory) Row(dst []float64, at domain.Vec) {
	for i := range dst {
		for a, n := range m.size {
			if v := at[a] + map[int]int{0: i}[a]; v < 0 || v >= n {
				panic(fmt.Sprintf("point %v + %d of a file of %v", at, i, m.size))
			}
		}
		dst[i] = m.value(at.Add(domain.Vec{i}))
	}
}

// A field starts with the numbers of a file at each of its points, and formulas read files around points: on a periodic
// axis those of the other end, else the nearest. Linear interpolation has the values of linear fields between the points
// of the file.
func TestFilesOfEquations(t *testing.T) {
	number := func(at domain.Vec) float64 { return float64(at[0]) + 10*float64(at[1]) + 100*float64(at[2]) }
	for _, c := range []struct {
		name   string
		size   []int // of the file; the grid is [6, 5] or [6, 5, 4]
		linear string
		walls  BoundaryKind // of all axes
		want   func(p *Problem, at domain.Vec) float64
	}{
		{"as it is", []int{6, 5}, "", Neumann, func(_ *Problem, at domain.Vec) float64 { return number(at) }},
		{"three axes", []int{6, 5, 4}, "", Periodic, func(_ *Problem, at domain.Vec) float64 { return number(at) }},
		{"coarser", []int{3, 2}, ", linear", Dirichlet, func(p *Problem, at domain.Vec) float64 {
			// The points of the file are at 1/4, 2/4 and 3/4 along x, and at 1/3 and 2/3 along y.
			x, y := p.Coordinate(0, at[0]), p.Coordinate(1, at[1])
			return 4*min(max(x, 0.25), 0.75) - 1 + 10*(3*min(max(y, 1./3), 2./3)-1)
		}},
		{"finer", []int{12, 20}, ", linear", Neumann, func(p *Problem, at domain.Vec) float64 {
			return 12*p.Coordinate(0, at[0]) - 0.5 + 10*(20*p.Coordinate(1, at[1])-0.5)
		}},
		{"one point", []int{1, 1, 1}, ", linear", Periodic, func(*Problem, domain.Vec) float64 { return 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			size := []int{6, 5, 4}[:len(c.size)]
			file := fmt.Sprintf("file('a'%s)", c.linear)
			e := &Equation{Size: size, Element: domain.Float64, TimeStep: 1,
				Constants: []Definition{{Name: "c", Formula: file}},
				Fields: []EquationFor{
					{Name: "u", Initial: file, Update: "u"},
					{Name: "v", Initial: "0", Update: "0*lap(u) + at(c, 1, 0" + map[int]string{2: "", 3: ", 0"}[len(size)] + ")"},
				},
				Open: func(string) (File, error) { return &memory{c.size, number}, nil },
			}
			for i := range e.Fields {
				for k := range 2 * len(size) {
					e.Fields[i].Boundary[k].Kind = c.walls
					if c.walls == Dirichlet {
						e.Fields[i].Boundary[k].Value = "0"
					}
				}
			}
			p := must(e.Problem())(t)
			h := how{scheme: scheme.Baseline, path: p2p.Staged, parts: domain.Vec{2, 1, 1}}
			for _, set := range []*testdevices.Set{testdevices.Host(t, 2)} {
				solver, _ := solve(t, set, p, h, scheme.Options{Steps: 1})
				for field := range 2 {
					got := make([]float64, p.Grid.Points())
					succeeds(t, solver.Gather(t.Context(), field, got, p.Grid.Box()))
					for i, v := range got {
						at := domain.Vec{i % 6, i / 6 % 5, i / 30}
						if at[0] += field; at[0] == 6 && c.walls == Periodic {
							at[0] = 0
						} else if at[0] == 6 && c.linear == "" {
							at[0] = 5
						}
						if want := c.want(p, at); math.Abs(v-want) > 1e-13*(1+math.Abs(want)) && at[0] < 6 {
							t.Fatalf("field %d has %v at %v, not %v", field, v, at, want)
						}
					}
				}
			}
		})
	}
}
