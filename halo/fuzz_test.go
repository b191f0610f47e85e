package halo_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/halotest"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
)

// dice takes numbers from a fuzzer's bytes, and 0 after their end.
type dice struct{ data []byte }

func (d *dice) next() int {
	if len(d.data) == 0 {
		return 0
	}
	n := int(d.data[0])
	d.data = d.data[1:]
	return n
}

// upTo returns a number from 0 to most.
func (d *dice) upTo(most int) int { return d.next() % (most + 1) }

func (d *dice) bool() bool { return d.next()%2 == 1 }

// any usually returns a small number, otherwise one at which sums and products overflow.
func (d *dice) any(most int) int {
	switch n := d.next(); {
	case n < 220:
		return n % (most + 1)
	case n < 226:
		return -1 - n%3
	case n < 240:
		return 1 << (n*5%63 + 1)
	case n < 250:
		return math.MaxInt - n%3
	}
	var word [8]byte
	d.data = d.data[copy(word[:], d.data):]
	return int(binary.LittleEndian.Uint64(word[:]))
}

var fuzzedElements = []domain.Element{halo.Float64, halo.Float32, halo.Int32, halo.Int64, domain.Complex64, domain.Complex128, domain.Bytes(1), domain.Bytes(3), domain.Bytes(24)}

// place returns a valid placement.
func (d *dice) place(t *testing.T, set *testdevices.Set) *halo.Placement {
	dims := 2 + d.upTo(1)
	var periodic [3]bool
	size, parts := make([]int, dims), domain.Vec{1, 1, 1}
	for a := range dims {
		size[a] = 1 + d.upTo(8)
		periodic[a] = d.bool()
		parts[a] = 1 + d.upTo(min(2, size[a]-1))
	}
	return place(t, set, size, periodic, parts)
}

func (d *dice) width(p *halo.Placement) (w domain.Radius) {
	for a := range p.Grid.Dims {
		most := min(3, p.Grid.Size[a]/p.Parts[a])
		w.Minus[a], w.Plus[a] = d.upTo(most), d.upTo(most)
	}
	return w
}

// spec returns a field that fits the placement.
func (d *dice) spec(t *testing.T, i int, p *halo.Placement) halo.Spec {
	s := halo.Spec{
		Name: fmt.Sprintf("f%d", i), Components: d.upTo(3), SoA: d.bool(),
		Connectivity: halo.Connectivity(d.upTo(2)), Width: d.width(p),
	}
	if n := d.upTo(len(fuzzedElements)); n < len(fuzzedElements) {
		s.Element = fuzzedElements[n]
	} else {
		s.Type = d.values(t)
	}
	for range p.Grid.Dims {
		s.Stagger = append(s.Stagger, d.bool())
	}
	if s.SoA && d.bool() {
		for range max(1, s.Components) {
			s.Widths = append(s.Widths, d.width(p))
		}
	}
	return s
}

// values usually returns a type with gaps.
func (d *dice) values(t *testing.T) *datatype.Type {
	first, second := d.upTo(2), d.upTo(2)
	all, err := datatype.Struct([]int{1 + first, second}, []int64{0, int64(4*first + 4 + 4*d.upTo(2))}, []*datatype.Type{datatype.Int32, datatype.Float32})
	if err == nil && d.bool() {
		all, err = datatype.Resized(all, -4, all.Extent()+8)
	}
	test.Check(t, err)
	return all
}

// Over any grid, decomposition, fields, path and way, every ghost gets the value that geometry requires, and
// no other point changes.
func FuzzExchange(f *testing.F) {
	f.Setenv("HALOX_CACHE", f.TempDir())
	set := testdevices.Host(f, 5)
	f.Add([]byte{1, 7, 1, 1, 5, 0, 1, 4, 1, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1})
	f.Add([]byte{0, 6, 0, 0, 5, 1, 0, 2, 2, 2, 1, 1, 1, 1, 1, 1, 9, 1, 1, 1, 0, 0, 1, 2, 3})
	f.Add([]byte("grids of any size, periodic or not, with fields of all kinds on them, exchanged along all paths"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &dice{data}
		c := halotest.Case{
			Placement: d.place(t, set), Links: set.Links, Compiler: set.Compiler, Rounds: 2,
			Path: []p2p.Path{p2p.Peer, p2p.Staged, p2p.Direct, p2p.Auto}[d.upTo(3)],
		}
		for i := range 1 + d.upTo(2) {
			c.Specs = append(c.Specs, d.spec(t, i, c.Placement))
		}
		plan := must(halo.NewPlan(c.Placement, c.Links, c.Path, c.Specs...))(t)
		c.Exchange = []way{nil, byStart, byTransfers(t, plan)}[d.upTo(2)]
		if err := c.Run(); err != nil {
			t.Fatalf("%v over %+v: %v", c.Specs, c.Placement.Grid, err)
		}
	})
}

// anySpec returns a field that may be invalid in any way.
func (d *dice) anySpec(t *testing.T) (s halo.Spec) {
	s = halo.Spec{Name: "u", Element: halo.Float64, Components: d.any(3), SoA: d.bool(), Connectivity: halo.Connectivity(d.any(2))}
	switch d.upTo(5) {
	case 0:
		s.Element = domain.Bytes(d.any(9))
	case 1:
		s.Element = domain.Element(fmt.Sprintf("%d bytes", d.any(40)))
	case 2:
		s.Element, s.Type = "", d.anyType()
	}
	s.Stagger = make([]bool, 2+d.upTo(1))
	for a := range 3 {
		s.Width.Minus[a], s.Width.Plus[a], s.Stagger[a%len(s.Stagger)] = d.any(2), d.any(2), d.upTo(3) == 0
	}
	for range d.upTo(3) {
		w := s.Width
		w.Minus[d.upTo(2)] = d.any(2)
		s.Widths = append(s.Widths, w)
	}
	return s
}

func (d *dice) anyType() *datatype.Type {
	t, err := datatype.HVector(d.any(3), d.any(2), int64(d.any(9)), datatype.Int32)
	if err == nil {
		t, err = datatype.Struct([]int{d.any(2), 1}, []int64{int64(d.any(9)), 0}, []*datatype.Type{t, datatype.Byte})
	}
	if err != nil {
		return nil
	}
	return t
}

func (d *dice) anyBox() (b domain.Box) {
	for a := range 3 {
		b.Lo[a] = d.any(5)
		b.Hi[a] = b.Lo[a] + d.any(4)
	}
	return b
}

// affordable limits the size of a fuzzed field in points.
const affordable = 1 << 18

// Grids, decompositions, specs, fields and boxes of any numbers are rejected, or behave like a plain array.
func FuzzFields(f *testing.F) {
	set := testdevices.Host(f, 4)
	f.Add([]byte{1, 5, 4, 3, 0, 1, 1, 1, 1, 2, 0, 0, 0, 5, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 1, 2, 1, 2, 1, 2})
	f.Add([]byte{0, 5, 6, 0, 2, 1, 0, 0, 249, 1, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte("fields of too many components, of values without an extent, with ghosts wider than anything"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &dice{data}
		p := d.anyPlace(t, set)
		if p == nil {
			return
		}
		s := d.anySpec(t)
		plan, err := halo.NewPlan(p, set.Links, p2p.Auto, s)
		if err == nil && bytesOf(t, plan) > affordable {
			return
		}
		field, refused := halo.NewField(p, s)
		if (err == nil) != (refused == nil) {
			t.Fatalf("%+v over %v: the plan says %v, the field %v", s, p.Grid, err, refused)
		}
		if err != nil {
			return
		}
		defer func() {
			done(t, nil, field.Close())
		}()
		x, err := halo.NewExchanger(plan, set.Compiler, field)
		if err != nil {
			t.Fatalf("%+v over %v: %v", s, p.Grid, err)
		}
		checkArrays(t, d, field)
		done(t, nil, x.Close())
	})
}

// anyPlace returns a placement, nil if the numbers allow none.
func (d *dice) anyPlace(t *testing.T, set *testdevices.Set) *halo.Placement {
	size := make([]int, 2+d.upTo(1))
	for a := range size {
		size[a] = d.any(7)
	}
	g, err := domain.NewGrid(size, []bool{d.bool(), d.bool(), len(size) > 2 && d.bool()}[:len(size)])
	if err != nil {
		return nil
	}
	parts := domain.Vec{1, 1, 1}
	for a := range size {
		parts[a] = d.any(3)
	}
	cut, err := domain.Decompose(g, parts)
	if err != nil {
		return nil
	}
	return placeOn(t, set, cut)
}

// bytesOf returns the approximate size of the fields of a plan and their exchanger: messages are not larger
// than fields.
func bytesOf(t *testing.T, plan *halo.Plan) (sum int64) {
	for _, spec := range plan.Specs {
		count, bytes := spec.Arrays()
		for _, sub := range plan.Placement.Staggered(spec.Stagger).Subdomains {
			l := must(domain.NewLayout(sub.Box, spec.Width, bytes))(t)
			if l.Bytes() > affordable || int64(count) > affordable/l.Bytes() || sum > affordable {
				return math.MaxInt64
			}
			sum += 3 * int64(count) * l.Bytes()
		}
	}
	return sum
}

// checkArrays fills, writes and reads the field, component by component.
func checkArrays(t *testing.T, d *dice, f *halo.Field) {
	if count, _ := f.Spec.Arrays(); count == 1 {
		checkArray(t, d, f)
		return
	}
	one, err := f.Component(d.any(3))
	if err != nil {
		return
	}
	checkArray(t, d, one)
	done(t, nil, one.Close())
}

// checkArray compares the field with a map from points to values, if it has one float64 per point.
func checkArray(t *testing.T, d *dice, f *halo.Field) {
	model := map[domain.Vec]float64{}
	number := func(p domain.Vec) float64 { return float64(p[0] + 100*p[1] + 10000*p[2]) }
	if err := halo.FillPoints(f, number); err != nil {
		return
	}
	eachPoint(f.Cut.Grid.Box(), func(p domain.Vec) { model[p] = number(p) })
	writeBox(t, f, d.anyBox(), model)
	all := must(halo.ReadAll[float64](f))(t)
	i := 0
	eachPoint(f.Cut.Grid.Box(), func(p domain.Vec) {
		if all[i] != model[p] {
			t.Fatalf("point %v is %v, want %v", p, all[i], model[p])
		}
		i++
	})
	readBox(t, f, d.any(3), d.anyBox(), model)
}

// most is the maximum number of points of a box that is written and read.
const most = 1 << 12

// writeBox writes to a box, which fails unless it is in the grid.
func writeBox(t *testing.T, f *halo.Field, box domain.Box, model map[domain.Vec]float64) {
	if box.Points() > most {
		return
	}
	values := make([]float64, box.Points())
	for i := range values {
		values[i] = -float64(i) - 1
	}
	err := halo.Write(f, box, values)
	if (err == nil) != f.Cut.Grid.Box().Covers(box) {
		t.Fatalf("write %v of %v points: %v", box, f.Cut.Grid.Size, err)
	}
	if err != nil || box.Empty() {
		return
	}
	i := 0
	eachPoint(box, func(p domain.Vec) { model[p] = values[i]; i++ })
}

// readBox reads a box of a subdomain, which fails unless the subdomain contains it. Its owned points are the
// model's; ghosts keep their initial values.
func readBox(t *testing.T, f *halo.Field, rank int, box domain.Box, model map[domain.Vec]float64) {
	got := make([]float64, min(most, box.Points()))
	err := halo.ReadSubdomain(got, f, rank, box)
	if err != nil || box.Empty() {
		return
	}
	if int64(len(got)) != box.Points() || !f.Parts[rank].Layout.Owned.Grow(f.Spec.Width).Covers(box) {
		t.Fatalf("%d values of box %v were read from subdomain %d", len(got), box, rank)
	}
	i := 0
	eachPoint(box, func(p domain.Vec) {
		if want, owned := model[p]; owned && f.Parts[rank].Layout.Owned.Contains(p) && got[i] != want {
			t.Fatalf("point %v of subdomain %d is %v, want %v", p, rank, got[i], want)
		}
		i++
	})
}
