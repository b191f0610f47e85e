// Particles moves particles that repel each other in a box, the particle case study of Kuster (2017). The box is
// divided into segments with the height of the cutoff of the force, 1; a device rank has several consecutive segments.
// A step has two parts. First each segment moves its particles and lists those that leave for the segment below or
// above; then it merges the particles that stay and those that come, in order of their ids. After each part a device
// rank notifies its neighbors. A neighbor on another device has a copy of the segment, to which the lists are put.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed particles.cu
var cuda string

func source(threads int) kernels.Source {
	return example.Source("particles.cu", cuda, threads,
		kernels.Mirror{Name: "Part", Value: part{}}, kernels.Mirror{Name: "Failure", Value: failure{}},
		kernels.Mirror{Name: "Particle", Value: particle{}}, kernels.Mirror{Name: "HEADER", Value: header},
		kernels.Mirror{Name: "PARTICLE", Value: particleBytes}, kernels.Mirror{Name: "TOO_MANY", Value: tooMany},
		kernels.Mirror{Name: "TOO_FAST", Value: tooFast})
}

const (
	header        = 32 // bytes of a list before its particles
	particleBytes = 40
	dt            = 0.01
)

// The lists of a segment, in order: its particles, and those that stay, go below and go above.
const (
	listState = iota
	listStay
	listBelow
	listAbove
	lists
)

// Tags of notifications.
const (
	tagMigrants = iota
	tagState
)

// Reasons of failures.
const (
	nothing = iota
	tooMany
	tooFast
)

// errRun is the error of a run: a segment has more particles than its capacity, or a particle moves farther in a step
// than to the next segment.
var errRun = errors.New("invalid run")

// part is struct Part of particles.cu: what a device has.
type part struct {
	Slots, Failure                        uint64
	Segments, First, All, Capacity, Steps int64
	Width, Dt                             float64
}

// failure is struct Failure of particles.cu.
type failure struct {
	What           uint64
	Segment, Count int64
}

// particle is struct Particle of particles.cu, in units of the cutoff and of time.
type particle struct {
	X, Y, Vx, Vy float64
	Id           int64
}

func (p *part) listBytes() int64 { return header + p.Capacity*particleBytes }

// offset is the start of a list of a segment; segments -1 and Segments are copies of neighboring segments.
func (p *part) offset(segment, list int64) int64 { return ((segment+1)*lists + list) * p.listBytes() }

// has reports whether a segment exists: there are none below the first or above the last.
func (p *part) has(segment int64) bool { return p.First+segment >= 0 && p.First+segment < p.All }

// view is a part with its memory, or a copy of it, on the CPU.
type view struct {
	*part
	slots []byte
}

func (v view) bytes(segment, list int64) []byte {
	return v.slots[v.offset(segment, list):][:v.listBytes()]
}

// state is a list of the particles in a segment, as separate arrays of their numbers.
type state struct {
	count        *int64
	x, y, vx, vy []float64
	id           []int64
}

func (v view) state(segment, list int64) state {
	bytes := v.bytes(segment, list)
	floats := func(n int64) []float64 {
		return streams.View[float64](bytes[header+8*n*v.Capacity:][:8*v.Capacity])
	}
	ids := streams.View[int64](bytes[header+32*v.Capacity:])
	return state{&streams.View[int64](bytes[:8])[0], floats(0), floats(1), floats(2), floats(3), ids}
}

func (s state) at(i int64) particle { return particle{s.x[i], s.y[i], s.vx[i], s.vy[i], s.id[i]} }

// add appends a particle and reports whether there is room.
func (s state) add(p particle) bool {
	i := *s.count
	if i == int64(len(s.x)) {
		return false
	}
	s.x[i], s.y[i], s.vx[i], s.vy[i], s.id[i] = p.X, p.Y, p.Vx, p.Vy, p.Id
	*s.count++
	return true
}

// appendTo appends the particles to all.
func (s state) appendTo(all []particle) []particle {
	for i := range *s.count {
		all = append(all, s.at(i))
	}
	return all
}

// problem is a box of particles, and its decomposition.
type problem struct {
	width               float64 // of the box, in units of the cutoff
	segments, particles int     // of a device
	capacity            int64   // of a segment; 0: twice the mean and 64
	dt                  float64
}

// sizes of the problem of a device: that of the thesis is 41600 particles in 416 x 416.
var sizes = map[string]problem{
	"small":  {width: 104, segments: 64, particles: 1600, dt: dt},
	"thesis": {width: 416, segments: 416, particles: 41600, dt: dt},
	"full":   {width: 416, segments: 40 * 416, particles: 40 * 41600, dt: dt},
}

// box is a problem on some devices.
type box struct {
	*example.Setup
	world                  *ranks.World
	start                  []particle
	parts                  []part
	slots, images, failure []*streams.Memory // by device; an image is the initial content of slots
}

func newBox(s *example.Setup, p problem, start []particle) (x *box, err error) {
	x = &box{Setup: s, start: start}
	if p.capacity == 0 {
		p.capacity = int64(2*p.particles/p.segments+64+31) / 32 * 32
	}
	s.Options.AtMost = p.segments
	x.world, err = s.World(ranks.Program{
		Name: "particles", Source: source(s.Threads), Kernel: "particles", Host: x.rank,
	})
	if err != nil {
		return nil, err
	}
	n := int64(p.segments)
	for i, d := range s.Devices {
		q := part{
			Segments: n, First: int64(i) * n, All: int64(len(s.Devices)) * n, Capacity: p.capacity,
			Width: p.width, Dt: p.dt,
		}
		placed, err := q.place(start)
		if err != nil {
			return nil, err
		}
		image, err := example.Upload(s, d, placed)
		if err != nil {
			return nil, err
		}
		slots, err := s.Alloc(d, image.Size())
		if err != nil {
			return nil, err
		}
		failed, err := example.Upload(s, d, []failure{{}})
		if err != nil {
			return nil, err
		}
		q.Slots, q.Failure = slots.Address(), failed.Address()
		x.images, x.slots, x.failure = append(x.images, image), append(x.slots, slots), append(x.failure, failed)
		x.parts = append(x.parts, q)
	}
	return x, nil
}

// place returns the memory of a device with particles in their segments and in copies of neighboring segments, in order
// of ids.
func (p *part) place(all []particle) ([]byte, error) {
	v := view{p, make([]byte, p.offset(p.Segments+1, 0))}
	for _, one := range all {
		index := min(int64(one.Y), p.All-1) - p.First
		if index >= -1 && index <= p.Segments && !v.state(index, listState).add(one) {
			return nil, fmt.Errorf("segment %d: must have at most %d particles, its capacity: %w",
				index+p.First, p.Capacity, errRun)
		}
	}
	return v.slots, nil
}

func (x *box) String() string {
	return fmt.Sprintf("%d particles in a box of %g x %d by %d device ranks of %d threads per device",
		len(x.start), x.parts[0].Width, x.parts[0].All, x.world.Ranks(), x.Threads)
}

// Reset sets all particles to their initial positions.
func (x *box) Reset() (err error) {
	for i, d := range x.Devices {
		err = errors.Join(err, example.Copy(d, x.slots[i].All(), x.images[i].All()))
	}
	return err
}

func (x *box) Run(ctx context.Context, steps int) (time.Duration, error) {
	for i := range x.parts {
		x.parts[i].Steps = int64(steps)
	}
	return example.Timed(ctx, x.world, x.parts)
}

// read returns all particles in order of ids, or the error of the run.
func (x *box) read() (all []particle, err error) {
	for i := range x.parts {
		slots, err := example.Read[byte](x.slots[i].All())
		if err != nil {
			return nil, err
		}
		failed, err := example.Read[failure](x.failure[i].All())
		if err != nil {
			return nil, err
		}
		switch f := failed[0]; f.What {
		case tooMany:
			return nil, fmt.Errorf("segment %d: must have at most %d particles, its capacity, got %d: %w",
				f.Segment, x.parts[i].Capacity, f.Count, errRun)
		case tooFast:
			return nil, fmt.Errorf("particle %d left segment %d for one that is not next to it: %w",
				f.Count, f.Segment, errRun)
		}
		for segment := range x.parts[i].Segments {
			all = view{&x.parts[i], slots}.state(segment, listState).appendTo(all)
		}
	}
	slices.SortFunc(all, byID)
	return all, nil
}

func byID(p, q particle) int { return int(p.Id - q.Id) }

// Values returns the id, place and velocity of each particle, in order of ids.
func (x *box) Values(int) ([]float64, error) {
	all, err := x.read()
	return numbers(all), err
}

// Check compares the bits with those of the reference.
func (x *box) Check(values []float64, steps int) (string, error) {
	p := x.parts[0]
	want := numbers(reference(x.start, p.Width, p.All, p.Dt, steps))
	if len(values) != len(want) {
		return "", fmt.Errorf("must have all %d particles, got %d", len(want)/5, len(values)/5)
	}
	for i, v := range values {
		if math.Float64bits(v) != math.Float64bits(want[i]) {
			return "", fmt.Errorf("%s of particle %d is %v after %d steps, the reference has %v",
				[...]string{"id", "x", "y", "vx", "vy"}[i%5], i/5, v, steps, want[i])
		}
	}
	return fmt.Sprintf("all %d particles have the bits of the serial reference", len(x.start)), nil
}

// segments is the state of a device rank on a CPU device.
type segments struct {
	view
	failure *failure
	merged  []particle // by merge
}

// migrants returns the particles that leave a segment, and their number.
func (v view) migrants(segment, list int64) ([]particle, *int64) {
	bytes := v.bytes(segment, list)
	return streams.View[particle](bytes[header:]), &streams.View[int64](bytes[:8])[0]
}

// report records the first failure of a device.
func (s *segments) report(what uint64, segment, count int64) {
	if atomic.CompareAndSwapUint64(&s.failure.What, nothing, what) {
		s.failure.Segment, s.failure.Count = s.First+segment, count
	}
}

// advance is the counterpart of advance in particles.cu.
func (s *segments) advance(segment int64) {
	from, stay := s.state(segment, listState), s.state(segment, listStay)
	below, goBelow := s.migrants(segment, listBelow)
	above, goAbove := s.migrants(segment, listAbove)
	*stay.count, *goBelow, *goAbove = 0, 0, 0
	low := float64(s.First + segment)
	for i := range *from.count {
		p := from.at(i)
		fx, fy := 0.0, 0.0
		for other := segment - 1; other <= segment+1; other++ {
			if s.has(other) {
				s.state(other, listState).repel(p.X, p.Y, &fx, &fy)
			}
		}
		p.Vx += float64(s.Dt * fx)
		p.Vy += float64(s.Dt * fy)
		p.X += float64(s.Dt * p.Vx)
		p.Y += float64(s.Dt * p.Vy)
		p.X, p.Vx = reflect(p.X, p.Vx, s.Width)
		p.Y, p.Vy = reflect(p.Y, p.Vy, float64(s.All))
		if !(p.Y >= low-1 && p.Y < low+2) {
			s.report(tooFast, segment, p.Id)
		}
		switch {
		case p.Y < low && s.has(segment-1):
			below[*goBelow] = p
			*goBelow++
		case p.Y >= low+1 && s.has(segment+1):
			above[*goAbove] = p
			*goAbove++
		default:
			stay.add(p)
		}
	}
}

// repel adds the forces of a list on a particle at x, y.
func (s state) repel(x, y float64, fx, fy *float64) {
	for i := range *s.count {
		dx, dy := x-s.x[i], y-s.y[i]
		square := float64(dx*dx) + float64(dy*dy)
		if square < 1 && square > 0 {
			r := math.Sqrt(square)
			c := (1 - r) / r
			*fx += float64(c * dx)
			*fy += float64(c * dy)
		}
	}
}

// reflect reflects a particle at the walls 0 and wall.
func reflect(x, v, wall float64) (float64, float64) {
	switch {
	case x < 0:
		return -x, -v
	case x > wall:
		return wall + wall - x, -v
	}
	return x, v
}

// merge is the counterpart of merge in particles.cu.
func (s *segments) merge(segment int64) {
	s.merged = s.state(segment, listStay).appendTo(s.merged[:0])
	if s.has(segment - 1) {
		up, n := s.migrants(segment-1, listAbove)
		s.merged = append(s.merged, up[:*n]...)
	}
	if s.has(segment + 1) {
		down, n := s.migrants(segment+1, listBelow)
		s.merged = append(s.merged, down[:*n]...)
	}
	slices.SortFunc(s.merged, byID)
	to := s.state(segment, listState)
	*to.count = 0
	for _, p := range s.merged {
		if !to.add(p) {
			s.report(tooMany, segment, int64(len(s.merged)))
			break
		}
	}
}

// neighbor is struct Neighbor of particles.cu.
type neighbor struct {
	rank       int
	far        bool
	own, there int64 // segments
	list       int64 // of migrants
}

// tell sends a neighbor on another device what it reads of this rank's segment, and notifies it.
func (n neighbor) tell(r *ranks.Rank, w ranks.Window, s *segments, tag int) {
	put := func(list, from, bytes int64) {
		r.Put(w, n.rank, s.offset(n.there, list)+from, s.bytes(n.own, list)[from:][:bytes])
	}
	switch {
	case n.far && tag == tagMigrants:
		_, count := s.migrants(n.own, n.list)
		put(n.list, 0, header+particleBytes**count)
	case n.far:
		x := 8 * *s.state(n.own, listState).count
		put(listState, 0, header+x)
		put(listState, header+8*s.Capacity, x) // y
	}
	r.Notify(n.rank, ranks.All, tag)
}

// rank is the counterpart of kernel particles on CPU devices.
func (x *box) rank(r *ranks.Rank) {
	p, d := ranks.Data[part](r), r.Device()
	s := &segments{
		view: view{p, x.slots[d].Bytes()}, failure: &streams.View[failure](x.failure[d].Bytes()[:24])[0],
	}
	w := r.CreateWindow(ranks.All, s.slots)
	n, local, me := int64(r.Size(ranks.Device)), int64(r.Index(ranks.Device)), r.Index(ranks.All)
	var low, high int64
	var remote []neighbor
	if active := min(n, p.Segments); local < active { // the other ranks have no segment
		low, high = p.Segments*local/active, p.Segments*(local+1)/active
		below := neighbor{me - 1, low == 0, low, p.Segments, listBelow}
		above := neighbor{me + 1, high == p.Segments, high - 1, -1, listAbove}
		if below.far {
			below.rank = me - int(local-active+1+n)
		}
		if above.far {
			above.rank = me + int(n-local)
		}
		if p.has(low - 1) {
			remote = append(remote, below)
		}
		if p.has(high) {
			remote = append(remote, above)
		}
	}
	tell := func(tag int) bool {
		for _, b := range remote {
			b.tell(r, w, s, tag)
		}
		return len(remote) == 0 || r.WaitNotifications(tag, uint64(len(remote)))
	}
	r.StartTimer()
	for range p.Steps {
		for i := low; i < high; i++ {
			s.advance(i)
		}
		if !tell(tagMigrants) {
			return
		}
		for i := low; i < high; i++ {
			s.merge(i)
		}
		if !tell(tagState) {
			return
		}
		r.Flush(w)
	}
	r.StopTimer()
	r.FreeWindow(w)
}

func numbers(all []particle) (values []float64) {
	for _, p := range all {
		values = append(values, float64(p.Id), p.X, p.Y, p.Vx, p.Vy)
	}
	return values
}

// reference runs steps of particles, in order of ids, one after the other on the host. It shares no code with the
// device ranks. Forces on a particle are added over the segment below, its own and the one above, in order of ids
// within each: in this order the sums have the same bits.
func reference(all []particle, width float64, height int64, dt float64, steps int) []particle {
	now := slices.Clone(all)
	segment := func(p *particle) int64 { return min(int64(math.Floor(p.Y)), height-1) }
	for range steps {
		rows := make([][]particle, height+2) // row s+1 is segment s
		for _, p := range now {
			rows[segment(&p)+1] = append(rows[segment(&p)+1], p)
		}
		for i := range now {
			p := &now[i]
			s := segment(p)
			var force [2]float64
			for _, row := range rows[s : s+3] {
				for _, o := range row {
					d := [2]float64{p.X - o.X, p.Y - o.Y}
					r := math.Sqrt(float64(d[0]*d[0]) + float64(d[1]*d[1]))
					if o.Id == p.Id || r == 0 || r >= 1 {
						continue
					}
					for a := range d {
						force[a] += float64((1 - r) / r * d[a])
					}
				}
			}
			p.Vx, p.Vy = p.Vx+float64(dt*force[0]), p.Vy+float64(dt*force[1])
			p.X, p.Y = p.X+float64(dt*p.Vx), p.Y+float64(dt*p.Vy)
			p.X, p.Vx = bounce(p.X, p.Vx, width)
			p.Y, p.Vy = bounce(p.Y, p.Vy, float64(height))
		}
	}
	return now
}

// bounce reflects a particle that has passed a wall.
func bounce(at, v, wall float64) (float64, float64) {
	if at >= 0 && at <= wall {
		return at, v
	}
	if at < 0 {
		return 0 - at, 0 - v
	}
	return 2*wall - at, 0 - v
}

// scattered returns particles with ids from 0 on, at random places in a box and with velocities between -1 and 1.
func scattered(n int, width, height float64) []particle {
	all := make([]particle, n)
	for i := range all {
		u := func(k uint64) float64 { return example.Uniform(example.Hash(uint64(i), k)) }
		all[i] = particle{u(0) * width, u(1) * height, 2*u(2) - 1, 2*u(3) - 1, int64(i)}
	}
	return all
}

func newProgram() example.Program {
	var size string
	return example.Ranks("particles", example.Setup{Iterations: 100}, func(f *flag.FlagSet) {
		f.StringVar(&size, "size", "small", "of a device: small, thesis or full")
	}, func(s *example.Setup) (example.Problem, error) {
		p, known := sizes[size]
		if !known {
			return nil, fmt.Errorf("--size must be small, thesis or full, got %q", size)
		}
		n := len(s.Devices)
		return newBox(s, p, scattered(n*p.particles, p.width, float64(n*p.segments)))
	})
}

func main() { newProgram().Main() }
