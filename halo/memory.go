package halo

import (
	"fmt"
	"math"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// Fit returns an error, which is streams.ErrOutOfMemory, with the numbers, if so many copies of fields of
// each Spec do not fit into the memory that is free now. Nothing is allocated to find out.
func Fit(p *Placement, copies int, specs ...Spec) error {
	if err := p.usable(); err != nil {
		return err
	}
	if copies < 0 {
		return fmt.Errorf("halo: %d fields", copies)
	}
	var all []streams.Demand
	for _, s := range specs {
		s = s.filled()
		if err := s.check(p.Decomposition); err != nil {
			return err
		}
		count, bytes := s.Arrays()
		for _, sub := range p.Staggered(s.Stagger).Subdomains {
			if !p.IsLocal(sub.Rank) {
				continue
			}
			l, err := domain.NewLayout(sub.Box, s.Width, bytes)
			if err != nil {
				return err
			}
			one := l.Bytes() * int64(count) // up to 2^60, see checkSize
			d := streams.Demand{Device: p.Devices[sub.Rank], Held: streams.Held{Memory: math.MaxInt64}}
			if int64(copies) <= math.MaxInt64/one {
				d.Memory = one * int64(copies)
			}
			all = append(all, d)
		}
	}
	if err := streams.Fit(all); err != nil {
		return fmt.Errorf("halo: %s: %w", counted(copies, specs), err)
	}
	return nil
}

// counted names fields.
func counted(copies int, specs []Spec) string {
	switch {
	case copies == 1 && len(specs) == 1:
		return fmt.Sprintf("field %q", specs[0].Name)
	case len(specs) == 1:
		return fmt.Sprintf("%d fields %q", copies, specs[0].Name)
	}
	return fmt.Sprintf("%d fields of each of %d kinds", copies, len(specs))
}

// DryRun returns the placement on devices that stand for its own and only count what is allocated on them,
// see streams.DryRun. Fields there are filled and read with nothing. streams.CloseAll closes its Devices.
func (p *Placement) DryRun() *Placement {
	dry := *p
	var here []*streams.Device
	for _, d := range p.Devices {
		if d != nil {
			here = append(here, d)
		}
	}
	made := streams.DryRun(here)
	dry.Devices = make([]*streams.Device, len(p.Devices))
	for rank, d := range p.Devices {
		if d != nil {
			dry.Devices[rank], made = made[0], made[1:]
		}
	}
	return &dry
}

// On returns the plan for another placement of the same subdomains.
func (p *Plan) On(other *Placement) *Plan {
	moved := *p
	moved.Placement = other
	return &moved
}
