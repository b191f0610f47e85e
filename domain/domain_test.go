package domain

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/halox/halox/internal/test"
)

// drawn is a random problem: a grid, a cut of it and a width that fits.
type drawn struct {
	d *Decomposition
	w Radius
}

func draw(t *rapid.T) drawn {
	dims := rapid.IntRange(2, 3).Draw(t, "dims")
	var periodic [3]bool
	size := make([]int, dims)
	parts := Vec{1, 1, 1}
	var w Radius
	for a := range dims {
		size[a] = rapid.IntRange(1, 17).Draw(t, "size")
		periodic[a] = rapid.Bool().Draw(t, "periodic")
		parts[a] = rapid.IntRange(1, min(4, size[a])).Draw(t, "parts")
		most := size[a] / parts[a]
		w.Minus[a] = rapid.IntRange(0, min(3, most)).Draw(t, "minus")
		w.Plus[a] = rapid.IntRange(0, min(3, most)).Draw(t, "plus")
	}
	g := test.Must(NewGrid(size, periodic))(t)
	d := test.Must(Decompose(g, parts))(t)
	return drawn{d, w}
}

// each calls f for every point of b.
func each(b Box, f func(p Vec)) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			for x := b.Lo[0]; x < b.Hi[0]; x++ {
				f(Vec{x, y, z})
			}
		}
	}
}

func TestEveryPointHasOneOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t)
		owners := map[Vec]int{}
		for _, s := range c.d.Subdomains {
			each(s.Box, func(p Vec) { owners[p]++ })
		}
		if int64(len(owners)) != c.d.Grid.Points() {
			t.Fatalf("%d points have an owner, the grid has %d", len(owners), c.d.Grid.Points())
		}
		for p, n := range owners {
			if n != 1 {
				t.Fatalf("point %v has %d owners", p, n)
			}
		}
	})
}

// A ghost point, folded back into the grid, is a point that the neighbour
// sends, at the same place of the message.
func TestGhostsAreWhatTheNeighbourSends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t)
		test.Check(t, c.d.CheckWidth(c.w))
		for _, s := range c.d.Subdomains {
			for _, dir := range Directions(c.d.Grid.Dims) {
				n, ok := c.d.Neighbour(s.Rank, dir)
				if !ok {
					continue
				}
				ghost := GhostBox(s.Box, dir, c.w)
				sent := SendBox(c.d.Subdomains[n].Box, dir.Opposite(), c.w)
				if ghost.Size() != sent.Size() {
					t.Fatalf("subdomain %d needs %v in %v, neighbour %d sends %v", s.Rank, ghost, dir, n, sent)
				}
				if !c.d.Subdomains[n].Box.Covers(sent) {
					t.Fatalf("subdomain %d sends %v and owns %v", n, sent, c.d.Subdomains[n].Box)
				}
				each(ghost, func(p Vec) {
					q := sent.Lo.Add(p.Sub(ghost.Lo))
					for a := range p {
						if size := c.d.Grid.Size[a]; (p[a]+size)%size != q[a] {
							t.Fatalf("ghost %v of subdomain %d in %v gets point %v", p, s.Rank, dir, q)
						}
					}
				})
			}
		}
	})
}

func TestSplitCoversTheBoxOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t)
		// What neighbours need at the low side is their ghosts in + direction.
		layers := Radius{Minus: c.w.Plus, Plus: c.w.Minus}
		for _, s := range c.d.Subdomains {
			seen := map[Vec]bool{}
			interior, boundary := Split(s.Box, layers)
			for _, b := range append(boundary, interior) {
				each(b, func(p Vec) {
					if seen[p] || !s.Box.Contains(p) {
						t.Fatalf("point %v of %v is twice in, or outside of, %v and %v", p, s.Box, interior, boundary)
					}
					seen[p] = true
				})
			}
			if int64(len(seen)) != s.Box.Points() {
				t.Fatalf("%d of %d points covered", len(seen), s.Box.Points())
			}
			for _, dir := range Faces(c.d.Grid.Dims) {
				if !SendBox(s.Box, dir, c.w).Intersect(interior).Empty() {
					t.Fatalf("interior %v holds points that the neighbour in %v needs", interior, dir)
				}
			}
		}
	})
}

func TestLayoutGivesEveryPointItsPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t)
		elem := rapid.SampledFrom([]int{1, 2, 3, 4, 8, 12, 16, 24, 40, 256}).Draw(t, "element size")
		for _, s := range c.d.Subdomains {
			l := test.Must(NewLayout(s.Box, c.w, elem))(t)
			places := map[int64]Vec{}
			each(s.Box.Grow(c.w), func(p Vec) {
				o := l.Offset(p)
				if o < 0 || o >= l.Length {
					t.Fatalf("point %v lies at %d of %d", p, o, l.Length)
				}
				if q, taken := places[o]; taken {
					t.Fatalf("points %v and %v lie both at %d", p, q, o)
				}
				places[o] = p
				if p[0] == s.Box.Lo[0] && o*int64(elem)%RowAlignment != 0 {
					t.Fatalf("row of %v starts at byte %d", p, o*int64(elem))
				}
			})
		}
	})
}

// What Contiguous calls one piece holds nothing that an exchange along
// another axis writes.
func TestContiguousRangesHoldNoForeignGhosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t)
		idle := [3]bool{rapid.Bool().Draw(t, "x idle"), rapid.Bool().Draw(t, "y idle"), true}
		for _, s := range c.d.Subdomains {
			l, _ := NewLayout(s.Box, c.w, 8)
			for _, dir := range Faces(c.d.Grid.Dims) {
				b := SendBox(s.Box, dir, c.w)
				off, n := l.Range(b)
				if !l.Contiguous(b, idle) || n == 0 {
					continue
				}
				each(s.Box.Grow(c.w), func(p Vec) {
					o := l.Offset(p)
					if o < off || o >= off+n || b.Contains(p) {
						return
					}
					for a := range p {
						if (p[a] < s.Box.Lo[a] || p[a] >= s.Box.Hi[a]) && idle[a] {
							return
						}
					}
					t.Fatalf("the piece that holds %v also holds %v", b, p)
				})
			}
		}
	})
}

func TestContiguousFaces(t *testing.T) {
	g, _ := NewGrid([]int{8, 6, 4}, [3]bool{})
	l, _ := NewLayout(g.Box(), UniformRadius(3, 1), 8)
	w := UniformRadius(3, 1)
	for _, c := range []struct {
		dir  Direction
		idle [3]bool
		want bool
	}{
		{Direction{0, 0, 1}, [3]bool{true, true, false}, true},
		{Direction{0, 0, 1}, [3]bool{true, false, false}, true},
		{Direction{0, 0, 1}, [3]bool{false, true, false}, false},
		{Direction{0, 1, 0}, [3]bool{true, true, true}, false},
		{Direction{1, 0, 0}, [3]bool{true, true, true}, false},
	} {
		t.Run(fmt.Sprintf("face=%v/idle=%v", c.dir, c.idle), func(t *testing.T) {
			if got := l.Contiguous(SendBox(g.Box(), c.dir, w), c.idle); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAutoParts(t *testing.T) {
	for _, c := range []struct {
		name string
		size []int
		n    int
		want Vec
	}{
		{"one device", []int{64, 64, 64}, 1, Vec{1, 1, 1}},
		{"a cube on 4 is cut in z", []int{512, 512, 512}, 4, Vec{1, 1, 4}},
		{"a plane on 4 is cut in y", []int{4096, 4096}, 4, Vec{1, 4, 1}},
		{"a thin grid is cut where it is long", []int{64, 1024, 2}, 4, Vec{1, 4, 1}},
		{"the only cut", []int{3, 1, 1}, 3, Vec{3, 1, 1}},
		{"a cube on 2 is cut in z", []int{512, 512, 512}, 2, Vec{1, 1, 2}},
		{"a cube on 8 is cut in z", []int{512, 512, 512}, 8, Vec{1, 1, 8}},
		{"a small cube on 4 is cut in z", []int{64, 64, 64}, 4, Vec{1, 1, 4}},
		{"a third of 17 is nearer to a third than 3 of 7", []int{17, 7, 7}, 3, Vec{3, 1, 1}},
		{"a layer more of 127 is no reason to pack", []int{512, 512, 509}, 4, Vec{1, 1, 4}},
		{"one of 2 layers fewer for the last is", []int{8, 8, 7}, 4, Vec{2, 2, 1}},
		{"nor are 7% a reason for a third message", []int{100, 100, 90}, 8, Vec{1, 1, 8}},
		{"nothing is in balance", []int{5, 5, 1}, 4, Vec{2, 2, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := test.Must(NewGrid(c.size, [3]bool{}))(t)
			got, err := AutoParts(g, c.n, UniformRadius(g.Dims, 1))
			if err != nil || got != c.want {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
	g, _ := NewGrid([]int{2, 2}, [3]bool{})
	if parts, err := AutoParts(g, 5, UniformRadius(2, 1)); err == nil {
		t.Errorf("2x2 points were cut into 5 parts: %v", parts)
	}
}

func TestRefusals(t *testing.T) {
	for _, size := range [][]int{{}, {4, 4, 4, 4}, {0, 4}, {4, -1, 4}, {1 << 31, 1 << 31, 1 << 31}} {
		if _, err := NewGrid(size, [3]bool{}); err == nil {
			t.Errorf("a grid of size %v was accepted", size)
		}
	}
	if line, err := NewGrid([]int{4}, [3]bool{}); err != nil || line.Dims != 2 || line.Size != (Vec{4, 1, 1}) {
		t.Errorf("a grid of one size is %+v: %v", line, err)
	}
	g, _ := NewGrid([]int{8, 5}, [3]bool{})
	if _, err := Decompose(g, Vec{1, 6, 1}); err == nil {
		t.Error("5 rows were cut into 6 parts")
	}
	d, _ := Decompose(g, Vec{1, 5, 1})
	if err := d.CheckWidth(UniformRadius(2, 2)); err == nil {
		t.Error("1 layer each satisfied neighbours that need 2")
	}
	if err := d.CheckWidth(Radius{Minus: Vec{3, 1, 0}, Plus: Vec{3, 1, 0}}); err != nil {
		t.Errorf("an axis without neighbours was checked: %v", err)
	}
}

// Products and sums beyond 64 bits make no layout, no cut and no box that has fewer points than it should.
func TestSizesBeyond64Bits(t *testing.T) {
	const most = math.MaxInt
	for _, b := range []Box{{Hi: Vec{1 << 32, 1 << 32, 1}}, {Hi: Vec{1 << 31, 1 << 31, 1 << 31}}, {Vec{-most}, Vec{most, 1, 1}}} {
		if b.Empty() || b.Points() != math.MaxInt64 || (Box{Hi: Vec{8, 8, 8}}).Covers(b) {
			t.Errorf("%v: empty %t, of %d points, or a small box covers it", b, b.Empty(), b.Points())
		}
	}
	if all := (Box{Lo: Vec{-most}, Hi: Vec{most, 1, 1}}); all.Size() != (Vec{most, 1, 1}) {
		t.Errorf("%v is of size %v", all, all.Size())
	}
	for _, b := range []Box{{Vec{most}, Vec{-5, 1, 1}}, {Vec{most}, Vec{-most, 1, 1}}} {
		if !b.Empty() || b.Points() != 0 {
			t.Errorf("%v has %d points", b, b.Points())
		}
	}
	if p := (Vec{-1 << 40, 1 << 40, 1}).Product(); p != math.MinInt64 {
		t.Errorf("a product of %d", p)
	}
	small, cube, one := Box{Hi: Vec{6, 9, 7}}, Box{Hi: Vec{4, 4, 4}}, UniformRadius(3, 1)
	g := test.Must(NewGrid([]int{1 << 20, 1 << 20}, [3]bool{}))(t)
	of := func(_ any, err error) error { return err }
	strided := func(w Radius, element, first, pitch, plane int) error {
		return of(NewStridedLayout(cube, w, element, int64(first), int64(pitch), int64(plane)))
	}
	for name, err := range map[string]error{
		"ghosts":                of(NewLayout(small, Radius{Minus: Vec{2, 0, most}}, 8)),
		"ghosts that meet":      of(NewLayout(small, Radius{Minus: Vec{most}, Plus: Vec{most}}, 8)),
		"ghosts of 2^31 layers": of(NewLayout(small, Radius{Minus: Vec{0, 1 << 31, 0}}, 8)),
		"a box":                 of(NewLayout(Box{Vec{-most}, Vec{most, 1, 1}}, Radius{}, 8)),
		"a box at the end":      of(NewLayout(Box{Lo: Vec{most - 1, 0, 0}, Hi: Vec{most, 1, 1}}, one, 8)),
		"rows":                  of(NewLayout(Box{Hi: Vec{1 << 31, 1 << 31, 1}}, Radius{}, 8)),
		"elements":              of(NewLayout(small, Radius{}, most)),
		"indices":               of(NewLayout(Box{Vec{-most, 0, 0}, Vec{5 - most, 1, 1}}, Radius{Minus: Vec{5}}, 8)),
		"a pitch":               strided(Radius{}, 8, 0, 1<<61, 2),
		"planes":                strided(Radius{}, 8, 0, 8, 1<<61),
		"planes around ghosts":  strided(one, 8, 100, 8, 1<<62),
		"a pitch that wraps":    strided(one, 8, 100, 1<<62, 1<<62),
		"a first point":         strided(Radius{}, 8, most, 8, 80),
		"a first point below":   strided(one, 8, math.MinInt64, 8, 64),
		"strided elements":      strided(Radius{}, most, 0, 8, 80),
		"elements that wrap":    strided(one, 1<<62, 100, 8, 64),
		"strided ghosts":        strided(Radius{Plus: Vec{0, 1 << 31, 1}}, 2, 0, 1<<40, 0),
		"a cut into 2^17":       of(Decompose(g, Vec{1 << 10, 1 << 7, 1})),
		"a cut into 2^40":       of(Decompose(g, Vec{1 << 20, 1 << 20, 1})),
		"2^40 parts":            of(AutoParts(g, 1<<40, Radius{})),
		"parts without end":     of(AutoParts(g, most, one)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := NewStridedLayout(cube, one, 8, 2000, 100, 1000); err != nil {
		t.Error(err)
	}
}

func TestLayoutFits(t *testing.T) {
	made, err := NewLayout(Box{Hi: Vec{6, 9, 7}}, Radius{}, 8)
	if err != nil || !made.Fits(made.Bytes()) || made.Fits(made.Bytes()-1) {
		t.Errorf("%d bytes, %v", made.Bytes(), err)
	}
	forged := made
	if forged.Length = 1 << 61; forged.Fits(math.MaxInt64) {
		t.Errorf("%d elements of 8 bytes fit into 64 bits", forged.Length)
	}
}

// Errors show the axes that a grid has, and do not ask for fewer parts than one.
func TestRefusalsSayWhatHelps(t *testing.T) {
	flat := test.Must(NewGrid([]int{9, 1}, [3]bool{true, true}))(t)
	line := test.Must(NewGrid([]int{1 << 20, 4}, [3]bool{}))(t)
	of := func(_ any, err error) error { return err }
	width := func(parts Vec, w int) error {
		d, err := Decompose(flat, parts)
		if err != nil {
			return err
		}
		return d.CheckWidth(UniformRadius(2, w))
	}
	_, _, nested := NestedParts(flat, 2, 2, UniformRadius(2, 2))
	_, _, given := NestedAs(flat, Vec{9, 1, 1}, 2, UniformRadius(2, 2))
	_, _, boxes := NestedAs(line, Vec{3, 2, 1}, 2, UniformRadius(2, 1))
	for want, err := range map[string]error{
		"domain: no cut of [9 1] points into 10 parts leaves each the layers its neighbours need":                         of(AutoParts(flat, 10, UniformRadius(2, 1))),
		"domain: [9 1] points are fewer layers than ghosts around a periodic axis need":                                   of(AutoParts(flat, 1, UniformRadius(2, 2))),
		"domain: no cut of [9 1] points over 2 hosts of 2 devices leaves each the layers its neighbours need":             nested,
		"domain: a cut of [9 1] points into [9 1] parts does not leave each the layers its neighbours need":               given,
		"domain: a cut into [3 2] parts gives hosts of 2 devices, in the order of their ranks, no boxes":                  boxes,
		"domain: [131072 1] parts: a grid is cut into up to 65536":                                                        of(Decompose(line, Vec{1 << 17, 1, 1})),
		"domain: subdomain 0 owns 1 layers along y, its neighbour in y- needs 2: use a larger grid":                       width(Vec{1, 1, 1}, 2),
		"domain: subdomain 0 owns 1 layers along x, its neighbour in x- needs 2: use fewer parts than 9 or a larger grid": width(Vec{9, 1, 1}, 2),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestNamesOfDirections(t *testing.T) {
	want := "[x- x+ y- y+ x-y- x+y- x-y+ x+y+]"
	if got := fmt.Sprint(Directions(2)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := len(Directions(3)); n != 26 {
		t.Errorf("3 dimensions have %d directions", n)
	}
}

func TestChunksAreTheGridInOrderOfMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := draw(t).d.Grid
		next := 0
		err := g.EachChunk(rapid.IntRange(1, 500).Draw(t, "points"), func(b Box) error {
			each(b, func(p Vec) {
				if at := p[0] + g.Size[0]*(p[1]+g.Size[1]*p[2]); at != next {
					t.Fatalf("point %v is number %d, not %d", p, at, next)
				}
				next++
			})
			return nil
		})
		if err != nil || int64(next) != g.Points() {
			t.Fatalf("%d of %d points, %v", next, g.Points(), err)
		}
	})
}

// A staggered field is cut without gaps, and each of its ghosts is a point that
// the neighbour owns.
func TestStaggered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t)
		axes := [3]bool{rapid.Bool().Draw(t, "x"), rapid.Bool().Draw(t, "y"), rapid.Bool().Draw(t, "z")}
		s := c.d.Staggered(axes)
		points := int64(0)
		for _, sub := range s.Subdomains {
			points += sub.Box.Points()
			if sub.Box.Lo != c.d.Subdomains[sub.Rank].Box.Lo {
				t.Fatalf("subdomain %v begins elsewhere than %v", sub, c.d.Subdomains[sub.Rank])
			}
		}
		if points != s.Grid.Points() {
			t.Fatalf("%d points owned, the field has %d", points, s.Grid.Points())
		}
		for a := range s.Grid.Size {
			extra := 0
			if axes[a] && a < c.d.Grid.Dims && !c.d.Grid.Periodic[a] {
				extra = 1
			}
			if s.Grid.Size[a] != c.d.Grid.Size[a]+extra {
				t.Fatalf("axis %d has %d points, the grid %d", a, s.Grid.Size[a], c.d.Grid.Size[a])
			}
		}
	})
}

// What Padding gives is nobody's: no point lies there, nor what is given at the
// other end, and with it the ghosts fill sectors.
func TestPaddingIsNobodys(t *testing.T) {
	const sector = 32
	given := 0
	rapid.Check(t, func(t *rapid.T) {
		width := Radius{}
		for a := range 3 {
			width.Minus[a], width.Plus[a] = rapid.IntRange(0, 5).Draw(t, "minus"), rapid.IntRange(0, 5).Draw(t, "plus")
		}
		size := Vec{rapid.IntRange(1, 70).Draw(t, "nx"), rapid.IntRange(1, 3).Draw(t, "ny"), rapid.IntRange(1, 3).Draw(t, "nz")}
		element := rapid.SampledFrom([]int{1, 3, 4, 8, 16, 24, 32, 64}).Draw(t, "element")
		l := test.Must(NewLayout(Box{Hi: size}, width, element))(t)
		taken := map[int64]bool{}
		each(l.Owned.Grow(width), func(p Vec) { taken[l.Offset(p)] = true })
		for _, dir := range []Direction{{-1, 0, 0}, {1, 0, 0}, {0, 1, 0}} {
			ghost := GhostBox(l.Owned, dir, width)
			before, after := l.Padding(ghost, sector)
			if before+after == 0 {
				continue
			}
			given++
			if before > 0 && dir[0] != -1 || after > 0 && dir[0] != 1 {
				t.Fatalf("padding %d and %d of %v", before, after, ghost)
			}
			wide := ghost
			wide.Lo[0], wide.Hi[0] = ghost.Lo[0]-before, ghost.Hi[0]+after
			if first, row := l.Offset(wide.Lo)*int64(element), wide.Size()[0]*element; first%sector != 0 || row%sector != 0 {
				t.Fatalf("rows of %d bytes from %d", row, first)
			}
			each(wide, func(p Vec) {
				o := l.Offset(p)
				if !ghost.Contains(p) && (taken[o] || o < 0 || o >= l.Length) {
					t.Fatalf("element %d beside %v is taken", o, ghost)
				}
				taken[o] = true
			})
		}
	})
	if given == 0 {
		t.Error("no padding was given")
	}
}
