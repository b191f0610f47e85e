package domain

import (
	"fmt"
	"math"
)

// NestedParts returns the cut of a grid over hosts, and of what each of them gets over its
// devices, of which all have as many. The grid is cut into the products of the two, axis by axis,
// and the device of coordinates c belongs to the host of coordinates c / inner.
//
// It is the cut under which the host that sends most sends least in a face exchange of width w to
// other hosts, over the slowest links; among those it is that of AutoParts. Cuts whose largest
// subdomain owns over 10% more points than that of the best balanced cut are left out. It is an
// error if no cut gives every subdomain the layers that its neighbours need.
func NestedParts(g Grid, hosts, devices int, w Radius) (outer, inner Vec, err error) {
	if hosts < 1 || devices < 1 || int64(hosts)*int64(devices) > maxNested {
		return outer, inner, fmt.Errorf("domain: cannot cut a grid over %d hosts of %d devices: 1 to %d parts are possible", hosts, devices, maxNested)
	}
	all := nestedCuts(g, hosts, devices, w)
	balanced := int64(math.MaxInt64)
	for _, c := range all {
		balanced = min(balanced, c.largest)
	}
	var best *nestedCut
	for i, c := range all {
		if float64(c.largest) > maxImbalance*float64(balanced) {
			continue
		}
		if best == nil || c.between < best.between || c.between == best.between && c.cost < best.cost {
			best = &all[i]
		}
	}
	if best == nil {
		return outer, inner, fmt.Errorf("domain: no cut of %v points over %d hosts of %d devices leaves each the layers its neighbours need", g.along(g.Size), hosts, devices)
	}
	return best.outer, best.inner, nil
}

// NestedAs returns a given cut as one over hosts and over the devices of each, where subdomains go to hosts in the order of
// their ranks, to each as many as it has devices. It is an error if those of a host make no box, or if the cut does not leave
// each subdomain the layers that its neighbours need.
func NestedAs(g Grid, parts Vec, devices int, w Radius) (outer, inner Vec, err error) {
	ok := min(parts[0], parts[1], parts[2]) > 0
	if ok {
		_, ok = sizes(g, parts, w)
	}
	if !ok {
		return outer, inner, fmt.Errorf("domain: a cut of %v points into %v parts does not leave each the layers its neighbours need", g.along(g.Size), g.along(parts))
	}
	left := devices // of a host, that are not yet along an axis
	for a, n := range parts {
		inner[a] = max(1, min(n, left))
		outer[a] = n / inner[a]
		if n%inner[a] != 0 || left%inner[a] != 0 {
			break
		}
		left /= inner[a]
	}
	if left != 1 {
		return outer, inner, fmt.Errorf("domain: a cut into %v parts gives hosts of %d devices, in the order of their ranks, no boxes", g.along(parts), devices)
	}
	return outer, inner, nil
}

// maxNested is how many parts NestedParts cuts a grid into. They are more than a Decomposition has, for machines that are planned.
const maxNested = 1 << 24

// nestedCut is one way to cut a grid over hosts and devices.
type nestedCut struct {
	outer, inner Vec
	largest      int64   // points of the largest subdomain
	between      int64   // points that a host sends to others, at most
	cost         float64 // of a step, see piece.cost
}

// nestedCuts returns all that leave each subdomain the layers that its neighbours need.
func nestedCuts(g Grid, hosts, devices int, w Radius) (all []nestedCut) {
	for _, outer := range factors(hosts) {
		for _, inner := range factors(devices) {
			parts := Vec{outer[0] * inner[0], outer[1] * inner[1], outer[2] * inner[2]}
			if s, ok := sizes(g, parts, w); ok {
				all = append(all, nestedCut{outer, inner, s.largest, between(g, parts, inner, w), s.cost})
			}
		}
	}
	return all
}

// factors returns the ways to write n as a product of three numbers, those first that cut the
// slowest axis most.
func factors(n int) (all []Vec) {
	for x := 1; x <= n; x++ {
		for y := 1; n%x == 0 && y <= n/x; y++ {
			if n/x%y == 0 {
				all = append(all, Vec{x, y, n / x / y})
			}
		}
	}
	return all
}

// between returns how many points the host that sends most sends others, where each host has
// inner subdomains along each axis.
func between(g Grid, parts, inner Vec, w Radius) (most int64) {
	for host := range pieces(g, parts, inner, false) {
		sent := int64(0)
		for _, points := range host.faces(g.Dims, w) {
			sent += points
		}
		most = max(most, sent)
	}
	return most
}

// BlockOf returns the coordinates of the host whose subdomains, inner along each axis, have one
// of the given coordinates.
func BlockOf(coord, inner Vec) Vec {
	return Vec{coord[0] / inner[0], coord[1] / inner[1], coord[2] / inner[2]}
}
