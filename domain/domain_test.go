package domain

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/halox/halox/internal/test"
)

// drawn is a random problem: a grid, a decomposition of it and a valid halo width.
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
	g := test.Must(NewGrid(size, periodic[:len(size)]))(t)
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
			t.Fatalf("points with an owner: got %d, want %d", len(owners), c.d.Grid.Points())
		}
		for p, n := range owners {
			if n != 1 {
				t.Fatalf("point %v has %d owners", p, n)
			}
		}
	})
}

// Each ghost point, wrapped into the grid, is a point that the neighbor sends, at the same place of the message.
func TestGhostsMatchSentPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t)
		test.Check(t, c.d.CheckWidth(c.w))
		for _, s := range c.d.Subdomains {
			for _, dir := range Directions(c.d.Grid.Dims) {
				n, ok := c.d.Neighbor(s.Rank, dir)
				if !ok {
					continue
				}
				ghost := GhostBox(s.Box, dir, c.w)
				sent := SendBox(c.d.Subdomains[n].Box, dir.Opposite(), c.w)
				if ghost.Size() != sent.Size() {
					t.Fatalf("subdomain %d needs %v in %v, neighbor %d sends %v", s.Rank, ghost, dir, n, sent)
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
		// The layers needed at the low side are the neighbor's ghosts in + direction.
		layers := Radius{Minus: c.w.Plus, Plus: c.w.Minus}
		for _, s := range c.d.Subdomains {
			seen := map[Vec]bool{}
			interior, boundary := Split(s.Box, layers)
			for _, b := range append(boundary, interior) {
				each(b, func(p Vec) {
					if seen[p] || !s.Box.Contains(p) {
						t.Fatalf("point %v of %v must be exactly once in %v and %v", p, s.Box, interior, boundary)
					}
					seen[p] = true
				})
			}
			if int64(len(seen)) != s.Box.Points() {
				t.Fatalf("%d of %d points covered", len(seen), s.Box.Points())
			}
			for _, dir := range Faces(c.d.Grid.Dims) {
				if !SendBox(s.Box, dir, c.w).Intersect(interior).Empty() {
					t.Fatalf("interior %v holds points that the neighbor in %v needs", interior, dir)
				}
			}
		}
	})
}

func TestLayoutOffsetsAreUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t)
		elem := rapid.SampledFrom([]int{1, 2, 3, 4, 8, 12, 16, 24, 40, 256}).Draw(t, "element size")
		for _, s := range c.d.Subdomains {
			l := test.Must(NewLayout(s.Box, c.w, elem))(t)
			places := map[int64]Vec{}
			each(s.Box.Grow(c.w), func(p Vec) {
				o := l.Offset(p)
				if o < 0 || o >= l.Length {
					t.Fatalf("point %v has offset %d in a block of %d", p, o, l.Length)
				}
				if q, taken := places[o]; taken {
					t.Fatalf("points %v and %v both have offset %d", p, q, o)
				}
				places[o] = p
				if p[0] == s.Box.Lo[0] && o*int64(elem)%RowAlignment != 0 {
					t.Fatalf("row of %v starts at byte %d", p, o*int64(elem))
				}
			})
		}
	})
}

// A contiguous range contains no ghosts that an exchange along another axis writes.
func TestContiguousRangesExcludeOtherGhosts(t *testing.T) {
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
					t.Fatalf("the contiguous range of %v contains %v", b, p)
				})
			}
		}
	})
}

func TestContiguousFaces(t *testing.T) {
	g, _ := NewGrid([]int{8, 6, 4}, nil)
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
		{"cube on 4 divided along z", []int{512, 512, 512}, 4, Vec{1, 1, 4}},
		{"plane on 4 divided along y", []int{4096, 4096}, 4, Vec{1, 4, 1}},
		{"thin grid divided along its longest axis", []int{64, 1024, 2}, 4, Vec{1, 4, 1}},
		{"the only decomposition", []int{3, 1, 1}, 3, Vec{3, 1, 1}},
		{"cube on 2 divided along z", []int{512, 512, 512}, 2, Vec{1, 1, 2}},
		{"cube on 8 divided along z", []int{512, 512, 512}, 8, Vec{1, 1, 8}},
		{"small cube on 4 divided along z", []int{64, 64, 64}, 4, Vec{1, 1, 4}},
		{"17 layers are better balanced than 7", []int{17, 7, 7}, 3, Vec{3, 1, 1}},
		{"one layer in 127 does not justify packing", []int{512, 512, 509}, 4, Vec{1, 1, 4}},
		{"one layer in 2 does", []int{8, 8, 7}, 4, Vec{2, 2, 1}},
		{"7% do not justify a third message", []int{100, 100, 90}, 8, Vec{1, 1, 8}},
		{"no balanced decomposition", []int{5, 5, 1}, 4, Vec{2, 2, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := test.Must(NewGrid(c.size, nil))(t)
			got, err := AutoParts(g, c.n, UniformRadius(g.Dims, 1))
			if err != nil || got != c.want {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
	g, _ := NewGrid([]int{2, 2}, nil)
	if parts, err := AutoParts(g, 5, UniformRadius(2, 1)); err == nil {
		t.Errorf("2x2 points in 5 parts: got %v, want an error", parts)
	}
}

func TestInvalidArguments(t *testing.T) {
	for _, size := range [][]int{{}, {4, 4, 4, 4}, {0, 4}, {4, -1, 4}, {1 << 31, 1 << 31, 1 << 31}} {
		if _, err := NewGrid(size, nil); err == nil {
			t.Errorf("a grid of size %v: got no error", size)
		}
	}
	for n := range 5 {
		if g, err := NewGrid([]int{4, 4, 4}, []bool{false, true, true, true}[:n]); (err == nil) != (n == 0 || n == 3) || g.Periodic[2] != (n == 3) {
			t.Errorf("%d periodic entries for 3 axes: got %+v, %v", n, g, err)
		}
	}
	if line, err := NewGrid([]int{4}, nil); err != nil || line.Dims != 2 || line.Size != (Vec{4, 1, 1}) {
		t.Errorf("a grid with one size: got %+v, %v", line, err)
	}
	g, _ := NewGrid([]int{8, 5}, nil)
	if _, err := Decompose(g, Vec{1, 6, 1}); err == nil {
		t.Error("5 rows in 6 parts: got no error")
	}
	d, _ := Decompose(g, Vec{1, 5, 1})
	if err := d.CheckWidth(UniformRadius(2, 2)); err == nil {
		t.Error("width 2 with 1 layer per subdomain: got no error")
	}
	if err := d.CheckWidth(Radius{Minus: Vec{3, 1, 0}, Plus: Vec{3, 1, 0}}); err != nil {
		t.Errorf("an axis without neighbors: got %v", err)
	}
}

// Products and sums that exceed 64 bits are rejected or saturate.
func TestSizesBeyond64Bits(t *testing.T) {
	const most = math.MaxInt
	for _, b := range []Box{{Hi: Vec{1 << 32, 1 << 32, 1}}, {Hi: Vec{1 << 31, 1 << 31, 1 << 31}}, {Vec{-most}, Vec{most, 1, 1}}} {
		if b.Empty() || b.Points() != math.MaxInt64 || (Box{Hi: Vec{8, 8, 8}}).Covers(b) {
			t.Errorf("%v: empty %t, %d points, or covered by a small box", b, b.Empty(), b.Points())
		}
	}
	if all := (Box{Lo: Vec{-most}, Hi: Vec{most, 1, 1}}); all.Size() != (Vec{most, 1, 1}) {
		t.Errorf("%v: got size %v", all, all.Size())
	}
	for _, b := range []Box{{Vec{most}, Vec{-5, 1, 1}}, {Vec{most}, Vec{-most, 1, 1}}} {
		if !b.Empty() || b.Points() != 0 {
			t.Errorf("%v: got %d points", b, b.Points())
		}
	}
	if p := (Vec{-1 << 40, 1 << 40, 1}).Product(); p != math.MinInt64 {
		t.Errorf("product: got %d", p)
	}
	small, cube, one := Box{Hi: Vec{6, 9, 7}}, Box{Hi: Vec{4, 4, 4}}, UniformRadius(3, 1)
	g := test.Must(NewGrid([]int{1 << 20, 1 << 20}, nil))(t)
	of := func(_ any, err error) error { return err }
	strided := func(w Radius, element, first, pitch, plane int) error {
		return of(NewStridedLayout(cube, w, element, int64(first), int64(pitch), int64(plane)))
	}
	for name, err := range map[string]error{
		"ghosts":                   of(NewLayout(small, Radius{Minus: Vec{2, 0, most}}, 8)),
		"ghosts overflow":          of(NewLayout(small, Radius{Minus: Vec{most}, Plus: Vec{most}}, 8)),
		"ghosts of 2^31 layers":    of(NewLayout(small, Radius{Minus: Vec{0, 1 << 31, 0}}, 8)),
		"a box":                    of(NewLayout(Box{Vec{-most}, Vec{most, 1, 1}}, Radius{}, 8)),
		"a box at the upper limit": of(NewLayout(Box{Lo: Vec{most - 1, 0, 0}, Hi: Vec{most, 1, 1}}, one, 8)),
		"rows":                     of(NewLayout(Box{Hi: Vec{1 << 31, 1 << 31, 1}}, Radius{}, 8)),
		"elements":                 of(NewLayout(small, Radius{}, most)),
		"indices":                  of(NewLayout(Box{Vec{-most, 0, 0}, Vec{5 - most, 1, 1}}, Radius{Minus: Vec{5}}, 8)),
		"a pitch":                  strided(Radius{}, 8, 0, 1<<61, 2),
		"planes of ghosts":         strided(Radius{}, 8, 0, 8, 1<<61),
		"planes and ghosts":        strided(one, 8, 100, 8, 1<<62),
		"a pitch overflow":         strided(one, 8, 100, 1<<62, 1<<62),
		"a first point":            strided(Radius{}, 8, most, 8, 80),
		"a negative first point":   strided(one, 8, math.MinInt64, 8, 64),
		"strided elements":         strided(Radius{}, most, 0, 8, 80),
		"an element size overflow": strided(one, 1<<62, 100, 8, 64),
		"strided ghosts":           strided(Radius{Plus: Vec{0, 1 << 31, 1}}, 2, 0, 1<<40, 0),
		"2^17 parts":               of(Decompose(g, Vec{1 << 10, 1 << 7, 1})),
		"a cut into 2^40":          of(Decompose(g, Vec{1 << 20, 1 << 20, 1})),
		"2^40 parts":               of(AutoParts(g, 1<<40, Radius{})),
		"parts without end":        of(AutoParts(g, most, one)),
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

// Errors show only the axes of the grid, and never suggest fewer than one part.
func TestErrorTexts(t *testing.T) {
	flat := test.Must(NewGrid([]int{9, 1}, []bool{true, true}))(t)
	line := test.Must(NewGrid([]int{1 << 20, 4}, nil))(t)
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
		"domain: [9 1] points in 10 parts: a part has fewer layers than the [1 1] that its neighbors need":               of(AutoParts(flat, 10, UniformRadius(2, 1))),
		"domain: [9 1] points: a periodic axis has fewer layers than the [2 2] that its ghosts need":                     of(AutoParts(flat, 1, UniformRadius(2, 2))),
		"domain: [9 1] points over 2 hosts of 2 devices: a part has fewer layers than the [2 2] that its neighbors need": nested,
		"domain: [9 1] points in [9 1] parts: a part has fewer layers than the [2 2] that its neighbors need":            given,
		"domain: parts [3 2]: the subdomains of each host of 2 devices must form a box, in the order of their ranks":     boxes,
		"domain: parts [131072 1]: product must be at most 65536":                                                        of(Decompose(line, Vec{1 << 17, 1, 1})),
		"domain: subdomain 0 owns 1 layers along y, its neighbor in y- needs 2: use a larger grid":                       width(Vec{1, 1, 1}, 2),
		"domain: subdomain 0 owns 1 layers along x, its neighbor in x- needs 2: use fewer parts than 9 or a larger grid": width(Vec{9, 1, 1}, 2),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestDirectionNames(t *testing.T) {
	want := "[x- x+ y- y+ x-y- x+y- x-y+ x+y+]"
	if got := fmt.Sprint(Directions(2)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := len(Directions(3)); n != 26 {
		t.Errorf("3 dimensions have %d directions", n)
	}
}

func TestChunksCoverTheGridInMemoryOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := draw(t).d.Grid
		next := 0
		err := g.EachChunk(rapid.IntRange(1, 500).Draw(t, "points"), func(b Box) error {
			each(b, func(p Vec) {
				if at := p[0] + g.Size[0]*(p[1]+g.Size[1]*p[2]); at != next {
					t.Fatalf("point %v: got number %d, want %d", p, at, next)
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

// The subdomains of a staggered field have no gaps, and each of its ghosts is a point that the neighbor owns.
func TestStaggered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t)
		axes := [3]bool{rapid.Bool().Draw(t, "x"), rapid.Bool().Draw(t, "y"), rapid.Bool().Draw(t, "z")}
		s := c.d.Staggered(axes[:])
		points := int64(0)
		for _, sub := range s.Subdomains {
			points += sub.Box.Points()
			if sub.Box.Lo != c.d.Subdomains[sub.Rank].Box.Lo {
				t.Fatalf("subdomain %v must begin at the same point as %v", sub, c.d.Subdomains[sub.Rank])
			}
		}
		if points != s.Grid.Points() {
			t.Fatalf("owned points: got %d, want %d", points, s.Grid.Points())
		}
		for a := range s.Grid.Size {
			extra := 0
			if axes[a] && a < c.d.Grid.Dims && !c.d.Grid.Periodic[a] {
				extra = 1
			}
			if s.Grid.Size[a] != c.d.Grid.Size[a]+extra {
				t.Fatalf("axis %d of %d points in a grid of %d", a, s.Grid.Size[a], c.d.Grid.Size[a])
			}
		}
	})
}

// Padding contains no point and no padding of another row, and completes the sectors of the ghosts.
func TestPaddingIsUnused(t *testing.T) {
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
				t.Fatalf("padding %d and %d at ghosts %v", before, after, ghost)
			}
			wide := ghost
			wide.Lo[0], wide.Hi[0] = ghost.Lo[0]-before, ghost.Hi[0]+after
			if first, row := l.Offset(wide.Lo)*int64(element), wide.Size()[0]*element; first%sector != 0 || row%sector != 0 {
				t.Fatalf("rows of %d bytes at offset %d must be whole sectors", row, first)
			}
			each(wide, func(p Vec) {
				o := l.Offset(p)
				if !ghost.Contains(p) && (taken[o] || o < 0 || o >= l.Length) {
					t.Fatalf("padding element %d of %v is in use or out of range", o, ghost)
				}
				taken[o] = true
			})
		}
	})
	if given == 0 {
		t.Error("Padding returned 0 for all layouts")
	}
}
