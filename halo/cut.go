package halo

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Cutting describes how to decompose a grid over the devices of a session. All fields except Size are
// optional.
type Cutting struct {
	Size     []int  // required: points along x, y and (in 3D) z, see domain.NewGrid
	Periodic []bool // periodic axes, one entry per axis; default none
	Fields   []Spec // fields exchanged in a step; they set the ghost width and message sizes
	// Parts is the number of subdomains along each axis; a 0 counts as 1. If all are 0, domain.AutoParts
	// chooses for the widest ghosts of the fields.
	Parts   []int
	Devices int      // how many of the session's devices to use; 0: one per subdomain of Parts, or all
	Path    p2p.Path // path of messages, see Placement; "" means p2p.Auto
}

// width returns the widest ghosts of the fields, on each side.
func (c Cutting) width() (w domain.Radius) {
	for _, f := range c.Fields {
		w = w.Max(f.filled().Width)
	}
	return w
}

// path returns the requested path.
func (c Cutting) path() p2p.Path { return cmp.Or(c.Path, p2p.Auto) }

// check returns an error if an option other than Size and Parts is invalid.
func (c Cutting) check(g domain.Grid) error {
	for i, f := range c.Fields {
		if err := f.checkIn(g); err != nil {
			return optionError("Cutting.Fields", "field %d, %q: %w", i, f.Name, err)
		}
	}
	if path := c.path(); path != p2p.Auto && !slices.Contains(p2p.Paths(), path) {
		return optionError("Cutting.Path", "must be a path (%s), got %q", p2p.Choices(p2p.Paths()), path)
	}
	return nil
}

// Cut decomposes a grid into one subdomain per device and assigns the subdomains to devices.
//
// If neither Open nor the Cutting sets the number of devices, Cut uses the first n devices of the session,
// with the largest n that the grid can be decomposed for. If Open was given no ids and there are more than
// two GPUs, MapDevices assigns the subdomains by the measured links; Placement.Mapping explains the result.
// The links are measured (see Measure) if the mapping or the path of a message depends on it.
//
// If processes share the grid, all of them call Cut, and all devices take part. If every host has the same
// number of devices, the grid is decomposed over the hosts first, to minimize traffic between hosts.
//
// An *OptionError names the invalid option.
func (s *Session) Cut(ctx context.Context, c Cutting) (*Placement, error) {
	release, err := s.hold()
	if err != nil {
		return nil, err
	}
	defer release()
	place, err := s.Draft(c)
	if err == nil {
		err = live(ctx)
	}
	if err == nil {
		place, err = s.mapped(ctx, place, c)
	}
	if err := s.asked.agree(ctx, "cut the grid", err); err != nil {
		return nil, err
	}
	return place, nil
}

// Draft is Cut without measurements, for preparation in the meantime: it has the subdomains of Cut, on the
// session's devices in their order. The processes do not wait for each other.
func (s *Session) Draft(c Cutting) (*Placement, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if err := domain.CheckPerAxis("parts", len(c.Parts), len(c.Size)); err != nil {
		return nil, &OptionError{"Cutting.Parts", err}
	}
	if err := domain.CheckPerAxis("periodic", len(c.Periodic), len(c.Size)); err != nil {
		return nil, &OptionError{"Cutting.Periodic", err}
	}
	grid, err := domain.NewGrid(c.Size, c.Periodic)
	if err != nil {
		return nil, &OptionError{"Cutting.Size", err}
	}
	if err := c.check(grid); err != nil {
		return nil, err
	}
	seats, byHost := s.seats()
	var parts domain.Vec
	seatOf := inOrder
	if s.asked.Processes.IsAlone() {
		parts, err = s.parts(grid, c)
	} else {
		parts, seatOf, err = partsAmong(grid, c, byHost)
	}
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
	devices := make([]*streams.Device, len(cut.Subdomains))
	for rank, sub := range cut.Subdomains {
		at := seats[seatOf(sub)]
		owners = append(owners, at.process)
		if at.process == s.asked.Processes.OrAlone().Rank {
			devices[rank] = s.Devices[at.device]
		}
	}
	place, err := PlaceShared(s.asked.Processes.OrAlone(), cut, owners, devices)
	if err != nil {
		return nil, err
	}
	place.Path = c.Path
	return place, nil
}

// wholeParts returns the parts that were asked for, where 0 counts as 1; ok is false if there are none.
func (c Cutting) wholeParts() (parts domain.Vec, ok bool) {
	copy(parts[:], c.Parts)
	ok = parts != domain.Vec{}
	for a, n := range parts {
		parts[a] = cmp.Or(n, 1)
	}
	return parts, ok
}

// parts returns the number of subdomains along each axis for a single process.
func (s *Session) parts(grid domain.Grid, c Cutting) (parts domain.Vec, err error) {
	n, open := c.Devices, c.Devices == 0 && s.asked.open()
	if n < 0 || n > len(s.Devices) {
		return parts, optionError("Cutting.Devices", "must be at most the open devices (%v), got %d", s, n)
	}
	if n == 0 {
		n = len(s.Devices)
	}
	if parts, ok := c.wholeParts(); ok {
		if made := parts.Product(); made > int64(n) || !open && made != int64(n) {
			return parts, optionError("Cutting.Parts",
				"must have one subdomain per device: %v is for %d devices, %d are used", parts, made, n)
		}
		return parts, nil
	}
	width := c.width()
	parts, err = domain.AutoParts(grid, n, width)
	for err != nil && open && n > 1 {
		n--
		parts, err = domain.AutoParts(grid, n, width)
	}
	if err != nil {
		return parts, tooSmall(err, grid, n, width)
	}
	return parts, nil
}

// mapped returns the placement in the order of MapDevices, unless the order was given. It measures the links
// if the mapping or the path of a message depends on it.
func (s *Session) mapped(ctx context.Context, p *Placement, c Cutting) (*Placement, error) {
	open := s.asked.Processes.IsAlone() && !s.Devices[0].HostMemory && len(p.Devices) > 2 && len(s.asked.IDs) == 0 &&
		len(c.Fields) > 0
	if open || c.path() == p2p.Auto && p.crosses() {
		if err := s.Measure(ctx); err != nil {
			return nil, err
		}
	}
	if !open {
		return p, nil
	}
	mapped, why, err := MapDevices(p.Decomposition, p.Devices, s.costBy(c.path()), c.Fields...)
	if err != nil {
		return nil, fmt.Errorf("halo: decompose %v points: %w", c.Size, err)
	}
	mapped.Mapping, mapped.Path = &why, c.Path
	return mapped, nil
}

// costBy returns the time of a packed message by the link model, in seconds.
func (s *Session) costBy(path p2p.Path) func(from, to *streams.Device, bytes int64) float64 {
	return func(from, to *streams.Device, bytes int64) float64 {
		message := p2p.MessageShape{Bytes: bytes, Packed: true}
		path, _, err := s.Links.Choose(path, from, to, message)
		took, known := s.Links.Model.Time(from, to, path, message)
		if err != nil || !known {
			return math.Inf(1)
		}
		return took.Seconds()
	}
}

// A seat is a device of a process.
type seat struct{ process, device int }

// seats returns the devices of all processes, host by host, and the number of devices of each host.
func (s *Session) seats() (all []seat, byHost []int) {
	nodes, counts := s.asked.Processes.OrAlone().Nodes, s.Counts()
	for rank, node := range nodes {
		if node == len(byHost) { // hosts are numbered in the order of their first ranks
			byHost = append(byHost, 0)
		}
		byHost[node] += counts[rank]
	}
	for node := range byHost {
		for rank, count := range counts {
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

// inOrder assigns each subdomain the seat of its rank.
func inOrder(s domain.Subdomain) int { return s.Rank }

// partsAmong returns the number of subdomains along each axis and the seat of each, for processes that share
// the grid. It decomposes over the hosts first if all have equally many devices, to minimize traffic between
// hosts.
func partsAmong(
	grid domain.Grid, c Cutting, byHost []int,
) (parts domain.Vec, seatOf func(domain.Subdomain) int, err error) {
	seats := 0
	asked, isAsked := c.wholeParts()
	for _, n := range byHost {
		seats += n
	}
	switch {
	case c.Devices > 0:
		return parts, nil, optionError("Cutting.Devices",
			"must be 0 if processes share a grid (all devices take part), got %d", c.Devices)
	case isAsked:
		parts = asked
		if made := parts.Product(); made != int64(seats) {
			return parts, nil, optionError("Cutting.Parts",
				"must have one subdomain per device: %v is for %d devices, the processes have %d", parts, made, seats)
		}
		return parts, inOrder, nil
	case slices.Min(byHost) != slices.Max(byHost):
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
		local := domain.Vec{s.Coord[0] % inner[0], s.Coord[1] % inner[1], s.Coord[2] % inner[2]}
		return index(host, outer)*byHost[0] + index(local, inner)
	}, nil
}

// index returns the linear index of coordinates in a block of the given size, x fastest.
func index(coord, size domain.Vec) int { return (coord[2]*size[1]+coord[1])*size[0] + coord[0] }
