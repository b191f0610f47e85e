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

// Cutting says how a grid is cut over the devices of a session. All but Size may be
// left out.
type Cutting struct {
	Size     []int   // points along x, y and maybe z, see domain.NewGrid
	Periodic [3]bool // which axes are
	Fields   []Spec  // what is exchanged in a step, which says how wide the ghosts are and what messages take
	// subdomains along each axis, 0 counts as 1; all 0: by domain.AutoParts, for the widest ghosts of the fields
	Parts   domain.Vec
	Devices int      // the first so many of the session's take part; 0: as many as Parts has subdomains, or all
	Path    p2p.Path // what messages are to travel by, see Placement; "" is p2p.Auto
}

// width returns the widest ghosts of the fields, on each side.
func (c Cutting) width() (w domain.Radius) {
	for _, f := range c.Fields {
		w = w.Max(f.filled().Width)
	}
	return w
}

// path returns the path that is wanted.
func (c Cutting) path() p2p.Path { return cmp.Or(c.Path, p2p.Auto) }

// check returns an error if what is said beside the size and the parts makes no sense.
func (c Cutting) check(g domain.Grid) error {
	for i, f := range c.Fields {
		if err := f.checkIn(g); err != nil {
			return optionError("Cutting.Fields", "field %d, %q: %w", i, f.Name, err)
		}
	}
	if path := c.path(); path != p2p.Auto && !slices.Contains(p2p.Paths(), path) {
		return optionError("Cutting.Path", "%q is no path: %s", path, p2p.Choices(p2p.LinksFirst()))
	}
	return nil
}

// Cut cuts a grid into one subdomain per device and says which device owns which.
//
// Where neither Open nor the Cutting says how many devices are used, it is the largest
// number that the grid can be cut for, the session's first. Where Open named no ids and
// there are more than two GPUs, the subdomains are given to them as MapDevices finds best
// for the fields by the measured links; Placement.Mapping tells how. The links are
// measured, see Measure, where that or the path of a message depends on it.
//
// Where processes share the grid, all call it, and all devices take part: where every host has
// equally many, the grid is cut first over the hosts, so that least is sent between them.
//
// An *OptionError says which option is invalid.
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

// Draft is Cut without a measurement, for what can be prepared meanwhile: its subdomains are those of Cut, on the
// session's devices in their order. The processes do not wait for each other.
func (s *Session) Draft(c Cutting) (*Placement, error) {
	if err := s.usable(); err != nil {
		return nil, err
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
	place, err := PlaceAmong(s.asked.Processes.OrAlone(), cut, owners, devices)
	if err != nil {
		return nil, err
	}
	place.Path = c.Path
	return place, nil
}

// wholeParts returns the parts that were asked for, where 0 counts as 1.
func (c Cutting) wholeParts() domain.Vec {
	for a := range c.Parts {
		c.Parts[a] = cmp.Or(c.Parts[a], 1)
	}
	return c.Parts
}

// parts returns how many subdomains there are along each axis, where this process is alone.
func (s *Session) parts(grid domain.Grid, c Cutting) (parts domain.Vec, err error) {
	n, open := c.Devices, c.Devices == 0 && s.asked.open()
	if n < 0 || n > len(s.Devices) {
		return parts, optionError("Cutting.Devices", "%d are to take part; %v are open", n, s)
	}
	if n == 0 {
		n = len(s.Devices)
	}
	if c.Parts != (domain.Vec{}) {
		parts = c.wholeParts()
		if made := parts.Product(); made > int64(n) || !open && made != int64(n) {
			return parts, optionError("Cutting.Parts", "%v is for %d devices; %d are used", parts, made, n)
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

// mapped returns the placement on the devices as MapDevices orders them, unless the order was given, and measures the
// links where that or the path of a message depends on it.
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
		return nil, fmt.Errorf("halo: cut %v points: %w", c.Size, err)
	}
	mapped.Mapping, mapped.Path = &why, c.Path
	return mapped, nil
}

// costBy returns what a packed message takes by the link model, in seconds.
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

// seats returns the devices of all processes, host by host, and how many each host has.
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

// inOrder gives each subdomain the seat of its rank.
func inOrder(s domain.Subdomain) int { return s.Rank }

// partsAmong returns how many subdomains there are along each axis, and which seat each gets, where processes share
// the grid: first over the hosts, if all have equally many devices, so that least is sent between them.
func partsAmong(
	grid domain.Grid, c Cutting, byHost []int,
) (parts domain.Vec, seatOf func(domain.Subdomain) int, err error) {
	seats := 0
	for _, n := range byHost {
		seats += n
	}
	switch {
	case c.Devices > 0:
		return parts, nil, optionError("Cutting.Devices",
			"%d are to take part; where processes share a grid, all devices do", c.Devices)
	case c.Parts != (domain.Vec{}):
		parts = c.wholeParts()
		if made := parts.Product(); made != int64(seats) {
			return parts, nil, optionError("Cutting.Parts", "%v is for %d devices; the processes have %d", parts, made,
				seats)
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

// index returns the place of coordinates in a block of the given size, x fastest.
func index(coord, size domain.Vec) int { return (coord[2]*size[1]+coord[1])*size[0] + coord[0] }
