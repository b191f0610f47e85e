package halo

import (
	"fmt"

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
	if len(d.Subdomains) != len(devices) {
		return nil, fmt.Errorf("halo: %d subdomains (%v) for %d devices", len(d.Subdomains), d.Parts, len(devices))
	}
	return &Placement{Decomposition: d, Devices: devices}, nil
}
