package halo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// Placement says which device owns which subdomain.
//
// Where several processes share a grid, each has a placement of all its subdomains, with the
// devices of its own. It allocates, fills and exchanges only what lies on these; whatever goes
// by rank, as streams and arrays, has nothing for the others.
type Placement struct {
	*domain.Decomposition
	Devices   []*streams.Device // by rank of the subdomain; nil where another process owns it
	Mapping   *Explanation      // how MapDevices came to the order of the devices; nil where it was not asked
	Processes *mpi.Processes    // which share the grid; mpi.Alone where this one has all of it
	Owners    []int             // by rank of the subdomain: the rank of its process
	Path      p2p.Path          // what plans take that leave it to p2p.Auto, as Cutting.Path says; "" is the fastest
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
	p := placeAlone(d, devices)
	return p, p.usable()
}

// placeAlone is Place without a check.
func placeAlone(d *domain.Decomposition, devices []*streams.Device) *Placement {
	return &Placement{
		Decomposition: d, Devices: devices, Processes: mpi.Alone(), Owners: make([]int, len(d.Subdomains)),
	}
}

// PlaceAmong places subdomains on devices of several processes: owners has the process of each,
// by rank of the subdomain, and devices the device of each that this process owns, nil for the
// others. All processes give the same decomposition and owners.
func PlaceAmong(processes *mpi.Processes, d *domain.Decomposition, owners []int, devices []*streams.Device) (*Placement, error) {
	switch {
	case processes.IsAlone():
		return Place(d, devices)
	case d == nil:
		return nil, errors.New("halo: a placement of no subdomains: the decomposition is nil")
	case len(d.Subdomains) != len(owners) || len(owners) != len(devices):
		return nil, fmt.Errorf("halo: %d subdomains (%v) with %d owners and %d devices", len(d.Subdomains), d.Parts, len(owners), len(devices))
	}
	for rank, owner := range owners {
		if owner < 0 || owner >= processes.Size() {
			return nil, fmt.Errorf("halo: subdomain %d is owned by process %d of %d", rank, owner, processes.Size())
		}
	}
	p := &Placement{Decomposition: d, Devices: slices.Clone(devices), Processes: processes, Owners: slices.Clone(owners)}
	return p, p.usable()
}

// IsLocal reports whether this process owns the subdomain of a rank.
func (p *Placement) IsLocal(rank int) bool {
	return p.Owners[rank] == p.Processes.Rank
}

// FirstDevice returns the device of the first subdomain of this process, nil where it owns none.
func (p *Placement) FirstDevice() *streams.Device {
	for _, d := range p.Devices {
		if d != nil {
			return d
		}
	}
	return nil
}

// usable returns an error unless there is a placement, with a device for every subdomain that is
// this process's, and none for any other.
func (p *Placement) usable() error {
	if p == nil || p.Decomposition == nil {
		return errors.New("halo: the placement is nil")
	}
	if len(p.Devices) != len(p.Subdomains) || len(p.Owners) != len(p.Subdomains) || p.Processes == nil {
		return fmt.Errorf("halo: the placement has no device for some of its %d subdomains", len(p.Subdomains))
	}
	for rank, d := range p.Devices {
		switch local := p.IsLocal(rank); {
		case local && d == nil:
			return fmt.Errorf("halo: the placement has no device for some of its %d subdomains, as for %d", len(p.Subdomains), rank)
		case !local && d != nil:
			return fmt.Errorf("halo: the placement has device %v for subdomain %d, which process %d owns", d, rank, p.Owners[rank])
		}
	}
	return nil
}

// wanted returns the path that a plan is to take: where that is Auto, the placement's own.
func (p *Placement) wanted(path p2p.Path) p2p.Path {
	if path == p2p.Auto && p.Path != "" {
		return p.Path
	}
	return path
}

// onOneDevice reports whether two subdomains lie on the same device, as far as this process knows.
func (p *Placement) onOneDevice(a, b int) bool {
	return a == b || p.Devices[a] != nil && p.Devices[a] == p.Devices[b]
}

// isDry reports whether the devices only count.
func (p *Placement) isDry() bool {
	d := p.FirstDevice()
	return d != nil && d.IsDry()
}
