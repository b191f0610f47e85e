package halo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// Placement says which device owns which subdomain.
type Placement struct {
	*domain.Decomposition
	Devices []*streams.Device // by rank of the subdomain
	Mapping *Explanation      // how MapDevices came to the order of the devices; nil where it was not asked
}

// Place gives subdomain i to device i. There must be as many of one as of the
// other.
func Place(d *domain.Decomposition, devices []*streams.Device) (*Placement, error) {
	if d == nil {
		return nil, errors.New("halo: a placement of no subdomains: the decomposition is nil")
	}
	if len(d.Subdomains) != len(devices) {
		return nil, fmt.Errorf("halo: %d subdomains (%v) for %d devices", len(d.Subdomains), d.Parts, len(devices))
	}
	p := &Placement{Decomposition: d, Devices: devices}
	return p, p.usable()
}

// usable returns an error unless there is a placement, with a device for every subdomain.
func (p *Placement) usable() error {
	switch {
	case p == nil || p.Decomposition == nil:
		return errors.New("halo: the placement is nil")
	case len(p.Devices) != len(p.Subdomains) || slices.Contains(p.Devices, nil):
		return fmt.Errorf("halo: the placement has no device for some of its %d subdomains", len(p.Subdomains))
	}
	return nil
}
