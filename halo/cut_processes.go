package halo

import (
	"context"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// A seat is a device of a process.
type seat struct{ process, device int }

// seats returns the devices of all processes, host by host, and how many each host has.
func (s *Session) seats() (all []seat, byHost []int) {
	nodes := s.asked.Processes.Nodes
	for rank, node := range nodes {
		if node == len(byHost) { // hosts are numbered in the order of their first ranks
			byHost = append(byHost, 0)
		}
		byHost[node] += s.counts[rank]
	}
	for node := range byHost {
		for rank, count := range s.counts {
			if nodes[rank] != node {
				continue
			}
			for device := range count {
				all = append(all, seat{rank, device})
			}
		}
	}
	return all, byHost
}

// cutAmong cuts the grid over all devices of all processes: where every host has as many, first
// over the hosts, so that least goes between them, and then over the devices of each. All
// processes call it.
func (s *Session) cutAmong(ctx context.Context, c Cutting) (*Placement, error) {
	place, err := s.placeAmong(c)
	if err == nil && c.path() == p2p.Auto && len(s.Devices) > 1 {
		err = s.Measure(ctx)
	}
	if err := s.asked.agree(ctx, "cut the grid", err); err != nil {
		return nil, err
	}
	return place, nil
}

// placeAmong is cutAmong without the others.
func (s *Session) placeAmong(c Cutting) (*Placement, error) {
	if c.Devices > 0 {
		return nil, optionError("Cutting.Devices", "%d are to take part; where processes share a grid, all devices do", c.Devices)
	}
	grid, err := domain.NewGrid(c.Size, c.Periodic)
	if err != nil {
		return nil, &OptionError{"Cutting.Size", err}
	}
	if err := c.check(grid); err != nil {
		return nil, err
	}
	seats, byHost := s.seats()
	parts, seatOf, err := partsAmong(grid, c, len(seats), byHost)
	if err != nil {
		return nil, err
	}
	cut, err := domain.Decompose(grid, parts)
	if err == nil {
		err = cut.CheckWidth(c.width())
	}
	if err != nil {
		return nil, &OptionError{"Cutting.Parts", err}
	}
	var owners []int
	devices := make([]*streams.Device, len(seats))
	for rank, sub := range cut.Subdomains {
		at := seats[seatOf(sub)]
		owners = append(owners, at.process)
		if at.process == s.asked.Processes.Rank {
			devices[rank] = s.Devices[at.device]
		}
	}
	return c.withPath(PlaceAmong(s.asked.Processes, cut, owners, devices))
}

// partsAmong returns how many subdomains there are along each axis, and which seat has which.
func partsAmong(grid domain.Grid, c Cutting, seats int, byHost []int) (parts domain.Vec, seatOf func(domain.Subdomain) int, err error) {
	inOrder := func(s domain.Subdomain) int { return s.Rank }
	switch {
	case c.Parts != (domain.Vec{}):
		for a := range parts {
			parts[a] = max(1, c.Parts[a])
		}
		if made := parts.Product(); made != int64(seats) {
			return parts, nil, optionError("Cutting.Parts", "%v is for %d devices; the processes have %d", parts, made, seats)
		}
		return parts, inOrder, nil
	case !equal(byHost):
		if parts, err = domain.AutoParts(grid, seats, c.width()); err != nil {
			return parts, nil, tooSmall(err, grid, seats, c.width())
		}
		return parts, inOrder, nil
	}
	outer, inner, err := domain.NestedParts(grid, len(byHost), byHost[0], c.width())
	if err != nil {
		return parts, nil, tooSmall(err, grid, seats, c.width())
	}
	for a := range parts {
		parts[a] = outer[a] * inner[a]
	}
	return parts, func(s domain.Subdomain) int {
		host := domain.BlockOf(s.Coord, inner)
		within := domain.Vec{s.Coord[0] % inner[0], s.Coord[1] % inner[1], s.Coord[2] % inner[2]}
		return index(host, outer)*byHost[0] + index(within, inner)
	}, nil
}

// index returns the place of coordinates among so many along each axis, x fastest.
func index(coord, of domain.Vec) int { return (coord[2]*of[1]+coord[1])*of[0] + coord[0] }

func equal(numbers []int) bool {
	for _, n := range numbers {
		if n != numbers[0] {
			return false
		}
	}
	return true
}
