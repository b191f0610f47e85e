// Particles moves particles that repel each other in a box, the particle case study of Kuster (2017). The box is cut
// into segments that are as high as the cutoff of the force, 1; a device rank has some segments, one above the other.
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
	"strconv"
	"sync/atomic"
	"time"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed particles.cu
var cuda string

func source(threads int) kernels.Source {
	return kernels.Source{Name: "particles.cu", Text: example.RanksHeader + cuda,
		Defines: []string{"THREADS=" + strconv.Itoa(threads)},
		Mirrors: []kernels.Mirror{
			{Name: "Part", Value: part{}}, {Name: "Failure", Value: failure{}}, {Name: "Particle", Value: particle{}},
			{Name: "HEADER", Value: header}, {Name: "PARTICLE", Value: particleBytes},
			{Name: "TOO_MANY", Value: tooMany}, {Name: "TOO_FAST", Value: tooFast},
		}}
}

const (
	header        = 32 // bytes of a list before its particles
	particleBytes = 40
	dt            = 0.01
)

// The lists of a segment, in order.
const (
	listState = iota
	listStay
	listBelow
	listAbove
	lists
)

// Why a run fails.
const (
	nothing = iota
	tooMany
	tooFast
)

// Tags of notifications.
const (
	tagMigrants = iota
	tagState
)

// errRun is why a run fails: a segment has more particles than its capacity, or a particle moves further in a step than
// to the next segment.
var errRun = errors.New("the run is not valid")

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

// offset is where a list of a segment begins; segments -1 and Segments are copies of those of neighbors.
func (p *part) offset(segment, list int64) int64 { return ((segment+1)*lists + list) * p.listBytes() }

// has reports whether a segment exists: there is none below the first and above the last one of all.
func (p *part) has(segment int64) bool { return p.First+segment >= 0 && p.First+segment < p.All }

// view is a part with its memory on the CPU.
type view struct {
	*part
	slots   []byte
	failure *failure
}

func (v view) bytes(segment, list int64) []byte {
	return v.slots[v.offset(segment, list):][:v.listBytes()]
}

// state is a list of the particles in a segment, number by number.
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

// set puts a particle at a place within the capacity.
func (s state) set(i int64, p particle) {
	if i < int64(len(s.x)) {
		s.x[i], s.y[i], s.vx[i], s.vy[i], s.id[i] = p.X, p.Y, p.Vx, p.Vy, p.Id
	}
}

// migrants is a list of particles that leave a segment.
type migrants struct {
	count     *int64
	particles []particle
}

func (v view) migrants(segment, list int64) migrants {
	bytes := v.bytes(segment, list)
	return migrants{&streams.View[int64](bytes[:8])[0], streams.View[particle](bytes[header:])}
}

func (m migrants) add(p particle) {
	m.particles[*m.count] = p
	*m.count++
}

// report records the first failure on the device.
func (v view) report(what uint64, segment, count int64) {
	if atomic.CompareAndSwapUint64(&v.failure.What, nothing, what) {
		v.failure.Segment, v.failure.Count = v.First+segment, count
	}
}

// advance is that of particles.cu.
func (v view) advance(segment int64) {
	from, stay := v.state(segment, listState), v.state(segment, listStay)
	below, above := v.migrants(segment, listBelow), v.migrants(segment, listAbove)
	*stay.count, *below.count, *above.count = 0, 0, 0
	low := float64(v.First + segment)
	for i := range *from.count {
		p := from.at(i)
		fx, fy := 0.0, 0.0
		for s := segment - 1; s <= segment+1; s++ {
			if v.has(s) {
				repel(v.state(s, listState), p.X, p.Y, &fx, &fy)
			}
		}
		p.Vx += float64(v.Dt * fx)
		p.Vy += float64(v.Dt * fy)
		p.X += float64(v.Dt * p.Vx)
		p.Y += float64(v.Dt * p.Vy)
		p.X, p.Vx = reflect(p.X, p.Vx, v.Width)
		p.Y, p.Vy = reflect(p.Y, p.Vy, float64(v.All))
		if !(p.Y >= low-1 && p.Y < low+2) {
			v.report(tooFast, segment, p.Id)
		}
		switch {
		case p.Y < low && v.has(segment-1):
			below.add(p)
		case p.Y >= low+1 && v.has(segment+1):
			above.add(p)
		default:
			stay.set(*stay.count, p)
			*stay.count++
		}
	}
}

// repel adds the forces of a list on a particle at x, y.
func repel(from state, x, y float64, fx, fy *float64) {
	for k := range *from.count {
		dx, dy := x-from.x[k], y-from.y[k]
		square := float64(dx*dx) + float64(dy*dy)
		if square < 1 && square > 0 {
			r := math.Sqrt(square)
			c := (1 - r) / r
			*fx += float64(c * dx)
			*fy += float64(c * dy)
		}
	}
}

// reflect turns a particle back at the walls 0 and wall.
func reflect(x, v, wall float64) (float64, float64) {
	switch {
	case x < 0:
		return -x, -v
	case x > wall:
		return wall + wall - x, -v
	}
	return x, v
}

// merge is that of particles.cu. It takes the least id of three lists by turns.
func (v view) merge(segment int64) {
	to, stay := v.state(segment, listState), v.state(segment, listStay)
	var come [2][]particle
	if v.has(segment - 1) {
		up := v.migrants(segment-1, listAbove)
		come[0] = up.particles[:*up.count]
	}
	if v.has(segment + 1) {
		down := v.migrants(segment+1, listBelow)
		come[1] = down.particles[:*down.count]
	}
	all := *stay.count + int64(len(come[0])+len(come[1]))
	for i, kept := int64(0), int64(0); i < all; i++ {
		next, least := -1, int64(math.MaxInt64)
		if kept < *stay.count {
			least = stay.id[kept]
		}
		for n, list := range come {
			if len(list) > 0 && list[0].Id < least {
				next, least = n, list[0].Id
			}
		}
		if next < 0 {
			to.set(i, stay.at(kept))
			kept++
		} else {
			to.set(i, come[next][0])
			come[next] = come[next][1:]
		}
	}
	*to.count = min(all, v.Capacity)
	if all > v.Capacity {
		v.report(tooMany, segment, all)
	}
}

// neighbor is struct Neighbor of particles.cu.
type neighbor struct {
	rank       int // -1: none
	far        bool
	own, there int64 // segments
	list       int64 // of migrants
}

func (n neighbor) tellMigrants(r *ranks.Rank, w ranks.Window, v view) {
	switch {
	case n.rank < 0:
	case n.far:
		bytes := header + *v.migrants(n.own, n.list).count*particleBytes
		r.PutNotify(w, n.rank, v.offset(n.there, n.list), v.bytes(n.own, n.list)[:bytes], tagMigrants)
	default:
		r.Notify(n.rank, ranks.All, tagMigrants)
	}
}

func (n neighbor) tellState(r *ranks.Rank, w ranks.Window, v view) {
	switch {
	case n.rank < 0:
	case n.far:
		list, to, y := v.bytes(n.own, listState), v.offset(n.there, listState), header+8*v.Capacity
		bytes := 8 * *v.state(n.own, listState).count
		r.Put(w, n.rank, to, list[:header+bytes])
		r.PutNotify(w, n.rank, to+y, list[y:y+bytes], tagState)
	default:
		r.Notify(n.rank, ranks.All, tagState)
	}
}

// rank is kernel particles on CPU devices.
func (x *box) rank(r *ranks.Rank) {
	v := x.views[r.Device()]
	v.part = ranks.Data[part](r)
	w := r.CreateWindow(ranks.All, v.slots)
	n, local, me := int64(r.Size(ranks.Device)), int64(r.Index(ranks.Device)), r.Index(ranks.All)
	active := min(n, v.Segments)
	below, above := neighbor{rank: -1}, neighbor{rank: -1}
	var low, high int64
	neighbors := uint64(0)
	if local < active {
		low, high = v.Segments*local/active, v.Segments*(local+1)/active
		if v.has(low - 1) {
			below = neighbor{me - 1, low == 0, low, v.Segments, listBelow}
			if below.far {
				below.rank = me - int(local-active+1+n)
			}
			neighbors++
		}
		if v.has(high) {
			above = neighbor{me + 1, high == v.Segments, high - 1, -1, listAbove}
			if above.far {
				above.rank = me + int(n-local)
			}
			neighbors++
		}
	}
	r.StartTimer()
	for step := range v.Steps {
		if step > 0 && neighbors > 0 && !r.WaitNotifications(tagState, neighbors) {
			return
		}
		for s := low; s < high; s++ {
			v.advance(s)
		}
		below.tellMigrants(r, w, v)
		above.tellMigrants(r, w, v)
		if neighbors > 0 && !r.WaitNotifications(tagMigrants, neighbors) {
			return
		}
		for s := low; s < high; s++ {
			v.merge(s)
		}
		below.tellState(r, w, v)
		above.tellState(r, w, v)
		r.Flush(w)
	}
	r.StopTimer()
	r.FreeWindow(w)
}

// problem is a box of particles, and how it is cut.
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
	world           *ranks.World
	threads         int
	start           []particle
	parts           []part
	images          []view            // by device: what it holds before the first step
	views           []view            // by device: its memory, of CPU devices only
	slots, failures []*streams.Memory // by device
	resources       streams.Resources
}

func newBox(s *halo.Session, o example.RankOptions, p problem, start []particle) (_ *box, err error) {
	x := &box{threads: o.Threads, start: start}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	if p.capacity == 0 {
		p.capacity = int64(2*p.particles/p.segments+64+31) / 32 * 32
	}
	o.Ranks.AtMost = p.segments
	x.world, err = ranks.New(s.Compiler, s.Devices, s.Links, ranks.Program{
		Name: "particles", Source: source(o.Threads), Kernel: "particles", Threads: o.Threads, Host: x.rank,
	}, o.Ranks)
	if err != nil {
		return nil, err
	}
	x.resources.Add(x.world)
	n := int64(p.segments)
	x.parts = make([]part, len(s.Devices))
	for i, d := range s.Devices {
		q := &x.parts[i]
		*q = part{
			Segments: n, First: int64(i) * n, All: int64(len(s.Devices)) * n, Capacity: p.capacity, Width: p.width, Dt: p.dt,
		}
		bytes := q.offset(n+1, 0)
		slots, err := example.Alloc(&x.resources, d, bytes)
		if err != nil {
			return nil, err
		}
		failed, err := example.Alloc(&x.resources, d, 24)
		if err != nil {
			return nil, err
		}
		q.Slots, q.Failure = slots.Address(), failed.Address()
		x.slots, x.failures = append(x.slots, slots), append(x.failures, failed)
		x.images = append(x.images, view{part: q, slots: make([]byte, bytes)})
		if d.Backend == streams.Host {
			x.views = append(x.views, view{q, slots.Bytes(), &streams.View[failure](failed.Bytes()[:24])[0]})
		}
		if err := x.images[i].place(start); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// place puts particles into their segments and into the copies that neighbors have, in order of ids.
func (v view) place(all []particle) error {
	for _, p := range all {
		index := min(int64(p.Y), v.All-1) - v.First
		if index < -1 || index > v.Segments {
			continue
		}
		s := v.state(index, listState)
		s.set(*s.count, p)
		if *s.count++; *s.count > v.Capacity {
			return fmt.Errorf("segment %d has more than its capacity of %d particles: %w", index+v.First, v.Capacity, errRun)
		}
	}
	return nil
}

func (x *box) String() string {
	return fmt.Sprintf("%d particles in a box of %g x %d by %d device ranks of %d threads per device",
		len(x.start), x.parts[0].Width, x.parts[0].All, x.world.Ranks(), x.threads)
}

// Reset puts all particles where they begin.
func (x *box) Reset() (err error) {
	for i := range x.parts {
		err = errors.Join(err,
			example.FillMemory(x.slots[i].All(), func(to []byte, first int64) { copy(to, x.images[i].slots[first:]) }),
			example.FillMemory(x.failures[i].All(), func(to []byte, _ int64) { clear(to) }))
	}
	return err
}

func (x *box) Run(ctx context.Context, steps int) (time.Duration, error) {
	for i := range x.parts {
		x.parts[i].Steps = int64(steps)
	}
	return example.Timed(ctx, x.world, x.parts)
}

// read returns all particles in order of ids, or why the run failed.
func (x *box) read() (all []particle, err error) {
	for i := range x.parts {
		slots, err := example.ReadMemory[byte](x.slots[i].All())
		if err != nil {
			return nil, err
		}
		failed, err := example.ReadMemory[failure](x.failures[i].All())
		if err != nil {
			return nil, err
		}
		switch f := failed[0]; f.What {
		case tooMany:
			return nil, fmt.Errorf("segment %d got %d particles, its capacity is %d: %w",
				f.Segment, f.Count, x.parts[i].Capacity, errRun)
		case tooFast:
			return nil, fmt.Errorf("particle %d left segment %d for one that is not next to it: %w",
				f.Count, f.Segment, errRun)
		}
		from := view{part: &x.parts[i], slots: slots}
		for s := range from.Segments {
			list := from.state(s, listState)
			for n := range *list.count {
				all = append(all, list.at(n))
			}
		}
	}
	slices.SortFunc(all, func(p, q particle) int { return int(p.Id - q.Id) })
	return all, nil
}

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
		return "", fmt.Errorf("%d of %d particles are left", len(values)/5, len(want)/5)
	}
	for i, v := range values {
		if math.Float64bits(v) != math.Float64bits(want[i]) {
			return "", fmt.Errorf("%s of particle %d is %v after %d steps, the reference has %v",
				[...]string{"id", "x", "y", "vx", "vy"}[i%5], i/5, v, steps, want[i])
		}
	}
	return fmt.Sprintf("all %d particles have the bits of the serial reference", len(x.start)), nil
}

func (x *box) Close() error { return x.resources.Close() }

func numbers(all []particle) (values []float64) {
	for _, p := range all {
		values = append(values, float64(p.Id), p.X, p.Y, p.Vx, p.Vy)
	}
	return values
}

// reference runs steps of particles, in order of ids, one after the other on the host. It shares no code with the
// device ranks. Forces on a particle are added over the segment below its own, its own and the one above, in each in
// order of ids: the order of summation that gives the same bits.
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

// bounce turns a particle back that has passed a wall.
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

func newExample() example.Ranks {
	var size string
	return example.Ranks{Name: "particles", Iterations: 100,
		Flags: func(f *flag.FlagSet) { f.StringVar(&size, "size", "small", "of a device: small, thesis or full") },
		New: func(s *halo.Session, o example.RankOptions) (example.Problem, error) {
			p, known := sizes[size]
			if !known {
				return nil, fmt.Errorf("--size must be small, thesis or full, got %q", size)
			}
			n := len(s.Devices)
			return newBox(s, o, p, scattered(n*p.particles, p.width, float64(n*p.segments)))
		}}
}

func main() { newExample().Main() }
