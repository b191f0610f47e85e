package scheme

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/host"
	"github.com/halox/halox/streams"
)

// schemes are all schemes, in display order. A new one has its own file and a line here; the tests of scheme
// add one.
var schemes = []func() *definition{baselineScheme, twoStreamScheme, assistedScheme, graphScheme, blockedScheme,
	fusedScheme, ranksScheme, residentScheme}

// definitions returns the definition of each scheme.
func definitions() (all []*definition) {
	for _, one := range schemes {
		all = append(all, one())
	}
	return all
}

// find returns a scheme by its name.
func find(name Scheme) (*definition, error) {
	for _, d := range definitions() {
		if d.name == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("scheme: the scheme must be one of %v, got %q", All(), name)
}

// All returns the names of all schemes except Auto.
func All() (names []Scheme) {
	for _, d := range definitions() {
		names = append(names, d.name)
	}
	return names
}

// Needs returns the requirements of the scheme: none for Auto and for an unknown name.
func (s Scheme) Needs() Needs {
	if d, err := find(s); err == nil {
		return d.needs
	}
	return Needs{}
}

// SweepsInstead reports whether a scheme runs sweeps and exchanges on such a device, like TwoStream: its
// kernels wait for each other, and are made for GPUs. Fields and norms are bitwise identical.
func SweepsInstead(name Scheme, d *streams.Device) bool {
	def, err := find(name)
	return err == nil && def.onGPUs && d != nil && d.GoKernels
}

// Order returns the order of a run by the scheme with the given Options.Order: the first one of Needs.Orders if
// that is empty, or of another scheme.
func (s Scheme) Order(given Order) Order {
	mine := s.Needs().Orders
	if len(mine) > 0 && !slices.Contains(mine, given) && slices.Contains(append(Orders(), ""), given) {
		return mine[0]
	}
	return given
}

// Orders returns the orders of all schemes.
func Orders() (all []Order) {
	for _, d := range definitions() {
		all = append(all, d.needs.Orders...)
	}
	return all
}

// begin prepares the scheme for a run.
func (d *definition) begin(r *run, o Options) ([]worker, error) {
	if SweepsInstead(d.name, r.place.FirstDevice()) {
		o.Order = TwoStream.Order(o.Order)
		return newTwoStream(r, o)
	}
	return d.make(r, o)
}

// Choose returns the scheme itself or, for Auto, the default for the placement: Assisted if each of its
// threads can have a core, otherwise TwoStream. If processes share the grid it is TwoStream, so that all
// choose alike.
func Choose(s Scheme, p *halo.Placement) Scheme {
	if s != Auto && s != "" {
		return s
	}
	if !p.Processes.IsAlone() {
		return TwoStream
	}
	threads := 0
	for _, sub := range p.Subdomains {
		threads++
		for _, dir := range domain.Faces(p.Grid.Dims) {
			if _, ok := p.Neighbor(sub.Rank, dir); ok {
				threads++
			}
		}
	}
	if p.Devices[0].HostCores || threads > host.Threads() {
		return TwoStream
	}
	return Assisted
}
