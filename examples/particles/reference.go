package main

import (
	"cmp"
	"math"
	"slices"
)

// reference makes steps of particles in a box of a width and a height, one particle after the other on the host, by
// no code of the two methods. Forces on a particle are added over the segment below its own, its own, and that above,
// in each in order of ids: the order of summation that gives the same bits.
func reference(all []particle, width float64, height int64, dt float64, steps int) []particle {
	now := slices.Clone(all)
	slices.SortFunc(now, func(a, b particle) int { return cmp.Compare(a.Id, b.Id) })
	for range steps {
		rows := make([][]particle, height+2) // row s+1 is segment s
		for _, p := range now {
			s := min(int64(math.Floor(p.Y)), height-1)
			rows[s+1] = append(rows[s+1], p)
		}
		for i := range now {
			p := &now[i]
			s := min(int64(math.Floor(p.Y)), height-1)
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

// bounce turns a particle round that has passed a wall.
func bounce(at, v, wall float64) (float64, float64) {
	if at >= 0 && at <= wall {
		return at, v
	}
	if at < 0 {
		return 0 - at, 0 - v
	}
	return 2*wall - at, 0 - v
}

// scattered returns particles with ids from 0 on, at places and with velocities that a hash of the id gives: evenly
// over the box, and up to 1 in each direction.
func scattered(n int, width, height float64) []particle {
	all := make([]particle, n)
	for i := range all {
		id := uint64(i)
		all[i] = particle{hashed(4*id) * width, hashed(4*id+1) * height, 2*hashed(4*id+2) - 1, 2*hashed(4*id+3) - 1, int64(i)}
	}
	return all
}

// hashed returns a number from 0 up to 1 for each n, by the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
func hashed(n uint64) float64 {
	n = (n + 1) * 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return float64((n^n>>31)>>11) / (1 << 53)
}
