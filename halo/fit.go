package halo

import (
	"errors"
	"fmt"

	"github.com/halox/halox/streams"
)

var errNoPlan = errors.New("halo: the plan is nil")

// fits returns an error unless there is a field for each Spec of the plan, in that
// order and placed as the plan is.
func (p *Plan) fits(fields []*Field) error {
	if p == nil {
		return errNoPlan
	}
	if len(fields) != len(p.Specs) {
		return fmt.Errorf("halo: %d fields for a plan of %d", len(fields), len(p.Specs))
	}
	for i, f := range fields {
		if err := f.Usable(); err != nil {
			return err
		}
		if f.Placement != p.Placement {
			return fmt.Errorf("halo: field %q has another placement than the plan", f.Spec.Name)
		}
		if !f.Spec.alike(p.Specs[i]) {
			return fmt.Errorf("halo: field %q is %+v, the plan is for %+v", f.Spec.Name, f.Spec, p.Specs[i])
		}
	}
	return nil
}

// Suits returns an error unless there is a stream for every subdomain of this process, by rank,
// of its device.
func (p *Placement) Suits(at []*streams.Stream) error {
	if err := p.usable(); err != nil {
		return err
	}
	if len(at) != len(p.Devices) {
		return fmt.Errorf("halo: %d streams for %d subdomains", len(at), len(p.Devices))
	}
	for rank, s := range at {
		if !p.IsLocal(rank) {
			continue
		}
		if err := p.suits(rank, s); err != nil {
			return err
		}
	}
	return nil
}

// suits returns an error unless the stream is one of the device of a subdomain.
func (p *Placement) suits(rank int, s *streams.Stream) error {
	if s == nil {
		return fmt.Errorf("halo: there is no stream for subdomain %d", rank)
	}
	if want := p.Devices[rank]; s.Device() != want {
		return fmt.Errorf("halo: the stream for subdomain %d is one of device %v; the subdomain lies on device %v", rank, s.Device(), want)
	}
	return nil
}
