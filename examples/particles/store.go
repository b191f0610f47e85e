package main

import (
	"github.com/halox/halox/streams"
)

// Bytes of a list before its particles, and of a particle.
const (
	header        = 32
	particleBytes = 40
)

// The lists of a segment, in order.
const (
	listState = iota
	listStay
	listBelow
	listAbove
	lists
)

// What a run fails of.
const (
	nothing = iota
	tooMany
	tooFast
)

// part is struct Part of particles.cu.
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

// particle is struct Particle of particles.cu: where it is, and its velocity, in units of the cutoff and of time.
type particle struct {
	X, Y, Vx, Vy float64
	Id           int64
}

func listBytes(capacity int64) int64 { return header + capacity*particleBytes }

// offset is where a list of a segment of a part begins; segments -1 and Segments are those of neighbours.
func (p *part) offset(segment int64, list int64) int64 {
	return ((segment+1)*lists + list) * listBytes(p.Capacity)
}

// slotBytes are those of all segments.
func (p *part) slotBytes() int64 { return p.offset(p.Segments+1, 0) }

// has reports whether a segment exists: there is none below the first and above the last one of all.
func (p *part) has(segment int64) bool { return p.First+segment >= 0 && p.First+segment < p.All }

// board is a part with its memory as the CPU sees it.
type board struct {
	*part
	slots   []byte
	failure *failure
}

func (b board) bytes(segment int64, list int64) []byte {
	at := b.offset(segment, list)
	return b.slots[at : at+listBytes(b.Capacity)]
}

// state is a list, number by number.
type state struct {
	count        *int64
	x, y, vx, vy []float64
	id           []int64
}

func (b board) state(segment, list int64) state {
	bytes := b.bytes(segment, list)
	numbers := func(n int64) []byte { return bytes[header+8*n*b.Capacity:][:8*b.Capacity] }
	v := streams.View[float64]
	return state{&streams.View[int64](bytes[:8])[0], v(numbers(0)), v(numbers(1)), v(numbers(2)), v(numbers(3)), streams.View[int64](numbers(4))}
}

func (s state) at(i int64) particle { return particle{s.x[i], s.y[i], s.vx[i], s.vy[i], s.id[i]} }

// set puts a particle at a place, if there is room.
func (s state) set(i int64, p particle) {
	if i < int64(len(s.x)) {
		s.x[i], s.y[i], s.vx[i], s.vy[i], s.id[i] = p.X, p.Y, p.Vx, p.Vy, p.Id
	}
}

// migrants is a list of particles that leave.
type migrants struct {
	count     *int64
	particles []particle
}

func (b board) migrants(segment, list int64) migrants {
	bytes := b.bytes(segment, list)
	return migrants{&streams.View[int64](bytes[:8])[0], streams.View[particle](bytes[header:])}
}
