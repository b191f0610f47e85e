package temporal

import (
	"errors"
	"fmt"
	"math"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// Points makes passes of a point function ready for one device. It may be used by one goroutine at a time, and what it made by one stream.
//
// The function computes a step by itself: it reads level 0 of variables around points, and writes level +1 of these. What else it reads
// is the same at each level.
type Points struct {
	device   *streams.Device
	body     *sweep.Body
	name     string // of the function
	dims     int
	arrays   []sweep.BodyArray
	like     sweep.Arrays // of the strides that kernels are compiled for
	fields   []field
	constant []int         // arrays that are only read
	radius   domain.Radius // how far any field is read
	cost     []float64
	gpu      *gpu
	room     *streams.Memory // of passes on a host device, which share it
}

// field is an array of a variable that is stepped.
type field struct {
	from, to int   // among the arrays
	reads    []int // all arrays that are level 0, under different names
	radius   domain.Radius
}

// findFields pairs what is read of a variable with its next level.
func (p *Points) findFields(accesses []sweep.Access, next []int) error {
	byWritten := map[int]int{}
	for i, a := range p.arrays {
		if a.Written < 0 {
			continue
		}
		if a.Read >= 0 {
			return fmt.Errorf("temporal: %w: %q is updated in place, and tiles of a pass compute points twice", ErrImpossible, accesses[a.Access].Name)
		}
		byWritten[i] = len(p.fields)
		p.fields = append(p.fields, field{from: -1, to: i})
	}
	for i, a := range p.arrays {
		switch n := next[a.Access]; {
		case a.Read < 0:
		case n < 0:
			p.constant = append(p.constant, i)
		default:
			to := p.find(n, a.Component)
			f, ok := byWritten[to]
			if !ok || p.arrays[to].Element != a.Element {
				return fmt.Errorf("temporal: the next level of %q is access %d, which is not written, or of another type", accesses[a.Access].Name, n)
			}
			p.fields[f].add(i, a)
		}
	}
	for _, f := range p.fields {
		if f.from < 0 {
			return fmt.Errorf("temporal: %w: %q is written and the level before it is not read: a pass keeps levels of what is read", ErrImpossible, accesses[p.arrays[f.to].Access].Name)
		}
	}
	return nil
}

// find returns the place of a component of an access among the arrays, -1 where there is none.
func (p *Points) find(access, component int) int {
	for i, a := range p.arrays {
		if a.Access == access && a.Component == component {
			return i
		}
	}
	return -1
}

// add adds an array that is level 0.
func (f *field) add(array int, a sweep.BodyArray) {
	if f.from < 0 {
		f.from = array
	}
	f.reads = append(f.reads, array)
	f.radius = farther(f.radius, a.Footprint.Radius())
}

// farther returns the larger of two radii on each side.
func farther(r, s domain.Radius) domain.Radius {
	for a := range r.Minus {
		r.Minus[a], r.Plus[a] = max(r.Minus[a], s.Minus[a]), max(r.Plus[a], s.Plus[a])
	}
	return r
}

// findRadius finds how far fields are read. What lies behind a wall follows from as many layers of points before it, which a tile at the
// wall computes if it reads about as far in both directions.
func (p *Points) findRadius() error {
	for _, f := range p.fields {
		p.radius = farther(p.radius, f.radius)
	}
	for a := range p.dims {
		minus, plus := p.radius.Minus[a], p.radius.Plus[a]
		if max(minus, plus) > maxRadius {
			return fmt.Errorf("temporal: %w: points are read %d away along axis %d; up to %d are possible", ErrImpossible, max(minus, plus), a, maxRadius)
		}
		if minus > plus+1 || plus > minus+1 {
			return fmt.Errorf("temporal: %w: points are read %d down and %d up along axis %d, and one more at most is possible in one direction than in the other",
				ErrImpossible, minus, plus, a)
		}
	}
	return nil
}

// spec is what launches of all passes have.
func (p *Points) spec(name string, arrays sweep.Arrays) streams.KernelSpec {
	spec := streams.KernelSpec{Name: name, Work: streams.Sweep, Early: true} // kernels wait by themselves, see grid_dependency_wait in device.cuh
	for i := range p.arrays {
		spec.Uses = append(spec.Uses, p.array(arrays, i).Data)
	}
	return spec
}

// array returns one of the arrays.
func (p *Points) array(arrays sweep.Arrays, i int) kernels.Array {
	return arrays[p.arrays[i].Access][p.arrays[i].Component]
}

// sidesOf returns those of a field.
func (p *Points) sidesOf(sides []Sides, f field) *Sides { return &sides[p.arrays[f.to].Access] }

// check returns an error unless the pass can be made.
func (p *Points) check(arrays sweep.Arrays, box domain.Box, sides []Sides, depth int) error {
	if depth < 2 || depth >= len(p.cost) || math.IsInf(p.cost[depth], 1) {
		return fmt.Errorf("temporal: a pass of %d steps; there are those of finite Costs", depth)
	}
	if err := p.body.Check(arrays); err != nil {
		return err
	}
	if box.Empty() || len(sides) != len(p.like) {
		return fmt.Errorf("temporal: a pass over the box %v with sides of %d accesses of %d", box, len(sides), len(p.like))
	}
	for _, f := range p.fields {
		if err := p.checkSides(f, box, sides); err != nil {
			return err
		}
		if err := p.array(arrays, f.to).Holds(box); err != nil {
			return fmt.Errorf("temporal: what a pass stores: %w", err)
		}
	}
	return p.holds(arrays, box, sides, depth)
}

// holds returns an error unless arrays hold what a pass of so many steps over a box reads.
func (p *Points) holds(arrays sweep.Arrays, box domain.Box, sides []Sides, depth int) error {
	for _, f := range p.fields {
		for _, i := range f.reads {
			if err := p.array(arrays, i).Holds(p.read(box, sides, depth, domain.Radius{}, f.radius)); err != nil {
				return fmt.Errorf("temporal: what a pass of %d steps reads: %w", depth, err)
			}
		}
	}
	for _, i := range p.constant {
		r := p.arrays[i].Footprint.Radius()
		if err := p.array(arrays, i).Holds(p.read(box, sides, depth-1, r, r)); err != nil {
			return fmt.Errorf("temporal: what a pass of %d steps reads: %w", depth, err)
		}
	}
	return nil
}

// read returns what is read around a box at so many levels: where it is open as far as all fields are read, and more, and behind walls a radius.
func (p *Points) read(box domain.Box, sides []Sides, levels int, more, radius domain.Radius) domain.Box {
	open := p.sidesOf(sides, p.fields[0])
	for a := range p.dims {
		minus, plus := radius.Minus[a], radius.Plus[a]
		if open.low(a) == Open {
			minus = levels*p.radius.Minus[a] + more.Minus[a]
		}
		if open.high(a) == Open {
			plus = levels*p.radius.Plus[a] + more.Plus[a]
		}
		box.Lo[a], box.Hi[a] = box.Lo[a]-minus, box.Hi[a]+plus
	}
	return box
}

// checkSides returns an error unless a field can have its sides.
func (p *Points) checkSides(f field, box domain.Box, sides []Sides) error {
	own, first := p.sidesOf(sides, f), p.sidesOf(sides, p.fields[0])
	for i, side := range own[:2*p.dims] {
		a := i / 2
		radius := f.radius.Minus[a]
		if i%2 == 1 {
			radius = f.radius.Plus[a]
		}
		element := p.arrays[f.to].Element
		switch {
		case side < Open || side > Odd:
			return fmt.Errorf("temporal: side %d is %d, which is none", i, int(side))
		case (side == Open) != (first[i] == Open):
			return fmt.Errorf("temporal: side %d is open for some variables and not for others", i)
		case side == Odd && (radius > 2 || element != "float32" && element != "float64"):
			return fmt.Errorf("temporal: an odd side of %s that are read %d layers away; reals and 2 are possible", element, radius)
		case side == Mirror && box.Size()[a] < radius:
			return fmt.Errorf("temporal: a box of %d points along axis %d, of which %d are mirrored", box.Size()[a], a, radius)
		}
	}
	return nil
}

// Close frees what passes on a host device share. None of them may be launched again. Closing twice is no error.
func (p *Points) Close() error {
	room := p.room
	if p.room = nil; room == nil {
		return nil
	}
	return room.Close()
}

// makeRoom has room for so many bytes. Nothing that was queued before may still use what was there.
func (p *Points) makeRoom(bytes int64) error {
	if p.room != nil && p.room.Size() >= bytes {
		return nil
	}
	if err := p.Close(); err != nil {
		return err
	}
	var err error
	if p.room, err = p.device.Alloc(bytes); err != nil {
		return errors.Join(errors.New("temporal: levels of a tile"), err)
	}
	return nil
}
