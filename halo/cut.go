package halo

import (
	"context"
	"fmt"
	"math"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

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
