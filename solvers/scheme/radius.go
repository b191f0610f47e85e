package scheme

import "github.com/halox/halox/domain"

// deeper returns the larger of two depths at each side.
func deeper(r, s domain.Radius) domain.Radius {
	for a := range 3 {
		r.Minus[a], r.Plus[a] = max(r.Minus[a], s.Minus[a]), max(r.Plus[a], s.Plus[a])
	}
	return r
}

// at returns the depth at a side.
func at(r domain.Radius, side domain.Direction) int {
	if a := side.Axis(); side.Positive() {
		return r.Plus[a]
	} else {
		return r.Minus[a]
	}
}

// farther adds a radius some times to another.
func farther(r, s domain.Radius, times int) domain.Radius {
	for a := range 3 {
		r.Minus[a], r.Plus[a] = r.Minus[a]+times*s.Minus[a], r.Plus[a]+times*s.Plus[a]
	}
	return r
}
