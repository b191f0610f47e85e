package halo_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// drawWalls draws a wall for every face at which an axis ends.
func drawWalls(t *rapid.T, f *halo.Field) (walls []halo.Wall) {
	for _, side := range domain.Faces(f.Cut.Grid.Dims) {
		if f.Cut.Grid.Periodic[side.Axis()] {
			continue
		}
		w := halo.Wall{Side: side, Kind: rapid.SampledFrom([]halo.WallKind{halo.Dirichlet, halo.Repeat, halo.Mirror}).Draw(t, "kind")}
		if w.Kind == halo.Dirichlet {
			for range rapid.SampledFrom([]int{1, max(1, f.Spec.Components)}).Draw(t, "values") {
				w.Values = append(w.Values, float64(rapid.IntRange(-99, 99).Draw(t, "value")))
			}
		}
		walls = append(walls, w)
	}
	return walls
}

// behind follows a point to where its value comes from: a wall of numbers, or an
// owned point of the grid.
func behind(g domain.Grid, walls []halo.Wall, at domain.Vec) (number *halo.Wall, q domain.Vec) {
	q = at
	for a, n := range g.Size {
		if q[a] >= 0 && q[a] < n {
			continue
		}
		if g.Periodic[a] {
			q[a] = (q[a] + n) % n
			continue
		}
		for i, w := range walls {
			if w.Side.Axis() != a || w.Side.Positive() != (at[a] >= n) {
				continue
			}
			switch w.Kind {
			case halo.Dirichlet:
				number = &walls[i]
			case halo.Repeat:
				q[a] = min(max(q[a], 0), n-1)
			case halo.Mirror:
				q[a] = max(-1-at[a], min(at[a], 2*n-1-at[a]))
			}
		}
	}
	return number, q
}

// wallValue is what one value of a point gets from a wall of numbers.
func wallValue(p *picture, w *halo.Wall, value int) float64 {
	parts, _ := p.parts()
	if value%parts > 0 {
		return 0 // imaginary
	}
	return w.Values[min(value/parts, len(w.Values)-1)]
}

// Over random fields of all widths, cuts and mixtures of walls, every ghost, at
// corners too, holds after an exchange and the walls what its place says.
func TestWallsAgreeWithGeometry(t *testing.T) {
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		rapid.Check(t, func(t *rapid.T) {
			var open streams.Resources
			defer open.Close()
			p := drawPlace(t, set)
			s := drawNumbers(t, 0, p)
			s.Connectivity = halo.Corners
			f := openField(t, &open, p, s)
			walls := drawWalls(t, f)
			plan, err := halo.NewPlan(p, set.Links, p2p.Auto, s)
			if err != nil {
				t.Fatal(err)
			}
			x, err := halo.NewExchanger(plan, set.Compiler, f)
			if err != nil {
				t.Fatal(err)
			}
			open.Add(x)
			w, err := halo.NewWalls(f, set.Compiler, walls...)
			if err != nil {
				t.Fatal(err)
			}
			open.Add(w)
			start := take(t, f)
			start.each(func(rank, v int, at domain.Vec) {
				start.set(rank, v, at, -12345)
				if start.owned(rank).Contains(at) {
					start.set(rank, v, at, scatter(0, 0, v, at))
				}
			})
			start.put(t)
			at := openStreams(t, &open, p)
			done(t, at, x.Exchange(at), w.Queue(at))
			want := start.copyOf()
			want.each(func(rank, v int, at domain.Vec) {
				if number, q := behind(f.Cut.Grid, walls, at); number != nil {
					want.set(rank, v, at, wallValue(want, number, v))
				} else {
					want.set(rank, v, at, scatter(0, 0, v, q))
				}
			})
			same(t, take(t, f), want)
		})
	})
}

// A face without a wall keeps its ghosts.
func TestWallsLeaveOtherFacesAlone(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, set *testdevices.Set) {
		var open streams.Resources
		defer open.Close()
		f := openField(t, &open, place(t, set, []int{4, 3}, [3]bool{}, domain.Vec{1, 1, 1}), star(2))
		w, err := halo.NewWalls(f, set.Compiler, halo.Wall{Side: domain.Direction{-1, 0, 0}, Kind: halo.Dirichlet, Values: []float64{7}})
		if err != nil {
			t.Fatal(err)
		}
		open.Add(w)
		want := take(t, f)
		want.each(func(rank, v int, at domain.Vec) { want.set(rank, v, at, scatter(0, rank, v, at)) })
		want.put(t)
		at := openStreams(t, &open, f.Placement)
		done(t, at, w.Queue(at))
		want.each(func(rank, v int, at domain.Vec) {
			if at[0] < 0 {
				want.set(rank, v, at, 7)
			}
		})
		same(t, take(t, f), want)
	})
}

// The ends of what elements can hold are numbers for walls too.
func TestWallsAtTheEndsOfTheRange(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, set *testdevices.Set) {
		for _, c := range []struct {
			element halo.Element
			value   float64
		}{
			{halo.Int32, math.MinInt32}, {halo.Int32, math.MaxInt32}, {halo.Int64, math.MinInt64},
			{halo.Float32, math.MaxFloat32}, {halo.Float32, math.Inf(-1)}, {halo.Float64, math.MaxFloat64},
		} {
			var open streams.Resources
			s := star(2)
			s.Element = c.element
			f := openField(t, &open, place(t, set, []int{1, 3}, [3]bool{}, domain.Vec{1, 1, 1}), s)
			w := must(halo.NewWalls(f, set.Compiler, halo.Wall{Side: domain.Direction{-1}, Kind: halo.Dirichlet, Values: []float64{c.value}}))(t)
			open.Add(w)
			at := openStreams(t, &open, f.Placement)
			done(t, at, w.Queue(at))
			if got := take(t, f).get(0, 0, domain.Vec{-1, 2, 0}); got != c.value {
				t.Errorf("a wall of %s holds %v, not %v", c.element, got, c.value)
			}
			if err := open.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestWallRefusals(t *testing.T) {
	set := testdevices.Host(t, 2)
	var open streams.Resources
	defer open.Close()
	p := place(t, set, []int{4, 4, 4}, [3]bool{false, true, false}, domain.Vec{1, 1, 2})
	wide, whole, bytes, single := star(3), star(3), star(3), star(3)
	single.Element = halo.Float32
	wide.Width.Plus[2], wide.Width.Minus[0] = 0, 5
	whole.Element, bytes.Element = halo.Int32, halo.Bytes(4)
	left := domain.Direction{-1, 0, 0}
	number := func(v ...float64) halo.Wall { return halo.Wall{Side: left, Kind: halo.Dirichlet, Values: v} }
	for _, c := range []struct {
		name, says string
		spec       halo.Spec
		walls      []halo.Wall
	}{
		{"an edge", "no face", star(3), []halo.Wall{{Side: domain.Direction{1, 1, 0}, Kind: halo.Repeat}}},
		{"no direction", "no face", star(3), []halo.Wall{{Kind: halo.Repeat}}},
		{"a periodic axis", "periodic", star(3), []halo.Wall{{Side: domain.Direction{0, 1, 0}, Kind: halo.Repeat}}},
		{"a wall twice", "twice", star(3), []halo.Wall{number(1), {Side: left, Kind: halo.Repeat}}},
		{"no kind", "dirichlet, repeat or mirror", star(3), []halo.Wall{{Side: left}}},
		{"too many values", "2 values for 1 components", star(3), []halo.Wall{number(1, 2)}},
		{"no value", "0 values", star(3), []halo.Wall{number()}},
		{"a fraction for whole numbers", "1.5 is no int32", whole, []halo.Wall{number(1.5)}},
		{"too large a number", "is no int32", whole, []halo.Wall{number(1 << 31)}},
		{"no number for whole numbers", "NaN is no int32", whole, []halo.Wall{number(math.NaN())}},
		{"a real beyond the largest", "1e+39 is no float32", single, []halo.Wall{number(1e39)}},
		{"elements that are no numbers", "4 bytes hold no numbers", bytes, []halo.Wall{number(1)}},
		{"a mirror of too much", "owns 4 layers and would mirror 5", wide, []halo.Wall{{Side: left, Kind: halo.Mirror}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := halo.NewWalls(openField(t, &open, p, c.spec), set.Compiler, c.walls...)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error with %q", err, c.says)
			}
		})
	}
}
