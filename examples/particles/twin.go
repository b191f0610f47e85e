package main

import (
	"math"
	"sync/atomic"
)

// advance is the twin of that of particles.cu.
func (b board) advance(segment int64) {
	from, stay := b.state(segment, listState), b.state(segment, listStay)
	leave := [2]migrants{b.migrants(segment, listBelow), b.migrants(segment, listAbove)}
	*stay.count, *leave[0].count, *leave[1].count = 0, 0, 0
	low := float64(b.First + segment)
	for i := range *from.count {
		p := from.at(i)
		fx, fy := 0.0, 0.0
		for s := segment - 1; s <= segment+1; s++ {
			if b.has(s) {
				repel(b.state(s, listState), p.X, p.Y, &fx, &fy)
			}
		}
		p.Vx += float64(b.Dt * fx)
		p.Vy += float64(b.Dt * fy)
		p.X += float64(b.Dt * p.Vx)
		p.Y += float64(b.Dt * p.Vy)
		p.X, p.Vx = reflect(p.X, p.Vx, b.Width)
		p.Y, p.Vy = reflect(p.Y, p.Vy, float64(b.All))
		if !(p.Y >= low-1 && p.Y < low+2) {
			b.report(tooFast, segment, p.Id)
		}
		switch {
		case p.Y < low && b.has(segment-1):
			leave[0].add(p)
		case p.Y >= low+1 && b.has(segment+1):
			leave[1].add(p)
		default:
			stay.set(*stay.count, p)
			*stay.count++
		}
	}
}

func (m migrants) add(p particle) {
	m.particles[*m.count] = p
	*m.count++
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

func reflect(x, v, wall float64) (float64, float64) {
	switch {
	case x < 0:
		return -x, -v
	case x > wall:
		return wall + wall - x, -v
	}
	return x, v
}

// report says what went wrong first on the device.
func (b board) report(what uint64, segment, count int64) {
	if atomic.CompareAndSwapUint64(&b.failure.What, nothing, what) {
		b.failure.Segment, b.failure.Count = b.First+segment, count
	}
}

// merge is the twin of that of particles.cu. It takes the least id of three lists in turn.
func (b board) merge(segment int64) {
	to, stay := b.state(segment, listState), b.state(segment, listStay)
	var sources [2][]particle
	if b.has(segment - 1) {
		up := b.migrants(segment-1, listAbove)
		sources[0] = up.particles[:*up.count]
	}
	if b.has(segment + 1) {
		down := b.migrants(segment+1, listBelow)
		sources[1] = down.particles[:*down.count]
	}
	all := *stay.count + int64(len(sources[0])+len(sources[1]))
	for i, kept := int64(0), int64(0); i < all; i++ {
		next, least := -1, int64(math.MaxInt64)
		if kept < *stay.count {
			least = stay.id[kept]
		}
		for n, s := range sources {
			if len(s) > 0 && s[0].Id < least {
				next, least = n, s[0].Id
			}
		}
		if next < 0 {
			to.set(i, stay.at(kept))
			kept++
		} else {
			to.set(i, sources[next][0])
			sources[next] = sources[next][1:]
		}
	}
	*to.count = min(all, b.Capacity)
	if all > b.Capacity {
		b.report(tooMany, segment, all)
	}
}
