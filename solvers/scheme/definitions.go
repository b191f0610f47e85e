package scheme

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/host"
	"github.com/halox/halox/streams"
)

// schemes are all, in the order in which they are shown. A new one has a file of its own and a line
// here; the tests of scheme add one.
var schemes = []func() *definition{baselineScheme, twoStreamScheme, assistedScheme, graphScheme, blockedScheme,
	fusedScheme, ranksScheme, residentScheme}

// definitions returns what each scheme is.
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
	return nil, fmt.Errorf("scheme: %q is no scheme: take one of %v", name, All())
}

// All returns the names of all schemes but Auto.
func All() (names []Scheme) {
	for _, d := range definitions() {
		names = append(names, d.name)
	}
	return names
}

// Needs returns what the scheme needs: nothing for Auto and for an unknown name.
func (s Scheme) Needs() Needs {
	if d, err := find(s); err == nil {
		return d.needs
	}
	return Needs{}
}

// SweepsInstead reports whether a scheme runs sweeps and exchanges on such a device, as TwoStream does: its kernels
// wait for each other, and are made for GPUs. The fields and norms are the same to the bit.
func SweepsInstead(name Scheme, d *streams.Device) bool {
	def, err := find(name)
	return err == nil && def.onGPUs && d != nil && d.GoKernels
}

// begin makes the scheme ready for a run.
func (d *definition) begin(r *run, o Options) ([]worker, error) {
	if SweepsInstead(d.name, r.place.FirstDevice()) {
		return newTwoStream(r, o)
	}
	return d.make(r, o)
}

// Choose returns the scheme itself, or for Auto the one that suits the
// placement: Assisted where each of its threads can have a core, else
// TwoStream, which it is too where processes share the grid: all choose alike, whatever cores their hosts have.
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
			if _, ok := p.Neighbour(sub.Rank, dir); ok {
				threads++
			}
		}
	}
	if p.Devices[0].HostCores || threads > host.Threads() {
		return TwoStream
	}
	return Assisted
}
