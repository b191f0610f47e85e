package halo

import (
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
		w = wider(w, f.filled().Width)
	}
	return w
}

// path returns the path that is wanted.
func (c Cutting) path() p2p.Path {
	if c.Path == "" {
		return p2p.Auto
	}
	return c.Path
}

// withPath gives the path to a placement that the cutting has led to.
func (c Cutting) withPath(p *Placement, err error) (*Placement, error) {
	if err != nil {
		return nil, err
	}
	p.Path = c.Path
	return p, nil
}

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

// Cut cuts a grid into a subdomain a device and says which device owns which.
//
// Where neither Open nor the Cutting says how many devices are used, it is the largest
// number that the grid can be cut for, the session's first. Where Open named no ids and
// there are more than two GPUs, the subdomains are given to them as MapDevices finds best
// for the fields by the measured links; Placement.Mapping tells how. The links are
// measured, see Measure, where that or the path of a message depends on it.
//
// Where processes share the grid, all call it, and all devices take part: where every host has as
// many, the grid is cut first over the hosts, so that least goes between them.
//
// An *OptionError says what cannot be had.
func (s *Session) Cut(ctx context.Context, c Cutting) (*Placement, error) {
	if err := s.Usable(); err != nil {
		return nil, err
	}
	if !s.asked.Processes.IsAlone() {
		return s.cutAmong(ctx, c)
	}
	cut, err := s.cut(c)
	if err != nil {
		return nil, err
	}
	if err := live(ctx); err != nil {
		return nil, err
	}
	return c.withPath(s.place(ctx, cut, c))
}

// Draft is Cut without a measurement, for what can be prepared meanwhile: its subdomains are those of Cut, on the
// session's devices in their order.
func (s *Session) Draft(c Cutting) (*Placement, error) {
	if err := s.Usable(); err != nil {
		return nil, err
	}
	if !s.asked.Processes.IsAlone() {
		return s.placeAmong(c)
	}
	cut, err := s.cut(c)
	if err != nil {
		return nil, err
	}
	return c.withPath(Place(cut, s.Devices[:len(cut.Subdomains):len(cut.Subdomains)]))
}

// cut cuts the grid.
func (s *Session) cut(c Cutting) (*domain.Decomposition, error) {
	if err := s.Usable(); err != nil {
		return nil, err
	}
	grid, err := domain.NewGrid(c.Size, c.Periodic)
	if err != nil {
		return nil, &OptionError{"Cutting.Size", err}
	}
	if err := c.check(grid); err != nil {
		return nil, err
	}
	parts, err := s.parts(grid, c)
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
	return cut, nil
}

// parts returns how many subdomains there are along each axis.
func (s *Session) parts(grid domain.Grid, c Cutting) (parts domain.Vec, err error) {
	n := c.Devices
	if n < 0 || n > len(s.Devices) {
		return parts, optionError("Cutting.Devices", "%d are to take part; %v are open", n, s)
	}
	if c.Parts != (domain.Vec{}) {
		return c.fixedParts(s, n)
	}
	open := n == 0 && s.asked.open()
	if n == 0 {
		n = len(s.Devices)
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

// fixedParts returns the parts that were asked for, if they are for n devices, or, where n
// is 0, for those of the session.
func (c Cutting) fixedParts(s *Session, n int) (domain.Vec, error) {
	exact := n > 0 || !s.asked.open()
	if n == 0 {
		n = len(s.Devices)
	}
	parts := c.Parts
	for a := range parts {
		if parts[a] == 0 {
			parts[a] = 1
		}
	}
	if made := parts.Product(); made > int64(n) || exact && made != int64(n) {
		return parts, optionError("Cutting.Parts", "%v is for %d devices; %d are used", parts, made, n)
	}
	return parts, nil
}

// place gives the subdomains their devices.
func (s *Session) place(ctx context.Context, cut *domain.Decomposition, c Cutting) (*Placement, error) {
	devices := s.Devices[:len(cut.Subdomains):len(cut.Subdomains)]
	open := !s.Devices[0].HostMemory && len(devices) > 2 && len(s.asked.IDs) == 0 && len(c.Fields) > 0
	if open || c.path() == p2p.Auto && len(devices) > 1 {
		if err := s.Measure(ctx); err != nil {
			return nil, err
		}
	}
	if !open {
		return Place(cut, devices)
	}
	place, why, err := MapDevices(cut, devices, s.costBy(c.path()), c.Fields...)
	if err != nil {
		return nil, fmt.Errorf("halo: cut %v points: %w", c.Size, err)
	}
	place.Mapping = &why
	return place, nil
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
		return nil, optionError("Cutting.Devices", "%d are to take part; where processes share a grid, all devices do",
			c.Devices)
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
func partsAmong(grid domain.Grid, c Cutting, seats int, byHost []int) (parts domain.Vec,
	seatOf func(domain.Subdomain) int, err error) {
	inOrder := func(s domain.Subdomain) int { return s.Rank }
	switch {
	case c.Parts != (domain.Vec{}):
		for a := range parts {
			parts[a] = max(1, c.Parts[a])
		}
		if made := parts.Product(); made != int64(seats) {
			return parts, nil, optionError("Cutting.Parts", "%v is for %d devices; the processes have %d", parts, made,
				seats)
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
