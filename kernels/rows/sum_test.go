package rows

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Apply gives the bits of its definition, point by point, and touches nothing beside its
// rows.
func TestApply(t *testing.T) {
	t.Run("float64", testApply[float64])
	t.Run("float32", testApply[float32])
}

func testApply[T Float](t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := Sum[T]{Centre: 0.3, Groups: []Group[T]{{0.1, [][]int{{-1, 1, -40}, {40}}}, {-0.7, [][]int{{41}}}, {0.01, [][]int{{-41}, {39, 2, 7}, {-42, 40}}}}}
	for _, points := range []int{1, 2, 7, 255, 256, 257, 600} {
		b := Band{Points: points, Count: 3, Pitch: points + 5}
		src := random[T](r, 3*b.Pitch+200, 1, 0)
		dst, intact := fenced[T](2*b.Pitch+points, 3)
		Apply(dst, src, 100, b, s)
		for i := range dst {
			if i%b.Pitch >= points {
				if dst[i] != canary {
					t.Fatalf("%d points: %d lies between rows and was written", points, i)
				}
				continue
			}
			want := T(s.Centre * src[100+i])
			for _, g := range s.Groups {
				var sum T
				for k, part := range g.Parts {
					one := src[100+i+part[0]]
					for _, o := range part[1:] {
						one += src[100+i+o]
					}
					if k == 0 {
						sum = one
					} else {
						sum += one
					}
				}
				want += T(g.Weight * sum)
			}
			if dst[i] != want {
				t.Fatalf("%d points: point %d is %v, not %v", points, i, dst[i], want)
			}
		}
		intact(t)
	}
}

// What does not fit is refused by name.
func TestApplyRefusals(t *testing.T) {
	s := Sum[float64]{Centre: 1, Groups: []Group[float64]{{1, [][]int{{-2, 2}}}}}
	for says, f := range map[string]func(){
		"rows.Apply: dst has 3 points, needs 4":    func() { Apply(make([]float64, 3), make([]float64, 20), 5, Band{4, 1, 4}, s) },
		"rows.Apply: src has 10 points, needs 11":  func() { Apply(make([]float64, 4), make([]float64, 10), 5, Band{4, 1, 4}, s) },
		"rows.Apply: src begins 1 points too late": func() { Apply(make([]float64, 4), make([]float64, 20), 1, Band{4, 1, 4}, s) },
		"rows.Apply: a group of weight 2 without points": func() {
			Apply(make([]float64, 4), make([]float64, 20), 5, Band{4, 1, 4}, Sum[float64]{1, []Group[float64]{{Weight: 2}}})
		},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, says) {
					t.Errorf("got %q, not %q", got, says)
				}
			}()
			f()
		}()
	}
}
