package kernels

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Sweeper makes sweeps of one stencil ready for one device. It may be used by one
// goroutine at a time.
type Sweeper struct {
	device  *streams.Device
	stencil stencil.Stencil
	real    Real
	kernels map[string]streams.Function // by name; nil on a host device
	sums    [2]streams.Function         // norms_sums and norms_total
	form    largeForm
	shape   Shape // of sweeps of large boxes
	tuner   *tuner
	cache   cache.Folder // of what the tuner learnt
}

// NewSweeper compiles the stencil for the device.
func (c *Compiler) NewSweeper(d *streams.Device, s stencil.Stencil, real Real) (*Sweeper, error) {
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	if real.Size() == 0 {
		return nil, fmt.Errorf("kernels: type %q cannot be swept", real)
	}
	w := &Sweeper{device: d, stencil: s, real: real, tuner: c.tuner, cache: c.cache, form: formOf(s, real)}
	w.shape = w.form.shapes[0]
	if d.Backend == streams.Host {
		return w, nil
	}
	names := sweepNames(w.form)
	found, err := c.load(d, sweepProgram(s, real), names...)
	if err != nil {
		return nil, err
	}
	w.kernels = map[string]streams.Function{}
	for i, name := range names {
		w.kernels[name] = found[i]
	}
	found, err = c.load(d, normsProgram(real), "norms_sums", "norms_total")
	if err != nil {
		return nil, err
	}
	copy(w.sums[:], found)
	return w, nil
}

// sweepNames are the kernels of sweep.cu.
func sweepNames(f largeForm) []string {
	names := []string{"sweep_flat", "sweep_flat" + withNorms, "sweep_points", "sweep_points" + withNorms}
	for _, large := range f.kernels() {
		names = append(names, "sweep_"+large)
	}
	return names
}

// withNorms is how the name of a kernel ends that reduces norms too.
const withNorms = "_norms"

// Sweep makes a launch ready that applies the stencil to the points of src in
// the boxes and writes dst. The arrays have one layout and do not overlap; the
// boxes are at most six, owned, and do not overlap. Ghosts of src around the boxes are
// read, as many layers as the stencil reaches.
func (s *Sweeper) Sweep(dst, src Array, boxes ...domain.Box) (*streams.Kernel, error) {
	return s.SweepAs("sweep", dst, src, boxes...)
}

// SweepAs is Sweep with a name for the launch.
func (s *Sweeper) SweepAs(name string, dst, src Array, boxes ...domain.Box) (*streams.Kernel, error) {
	if err := s.check(dst, src, boxes); err != nil {
		return nil, err
	}
	spec := streams.KernelSpec{Name: name, Work: streams.Sweep, Uses: []streams.Span{dst.Data, src.Data}}
	if s.device.Backend == streams.Host {
		spec.Run = s.onHost(dst, src, boxes, nil)
	} else {
		s.launchOf(dst, src, boxes, s.shape).fill(s, &spec, "")
	}
	return newKernel(s.device, spec)
}

// check returns an error unless the boxes of the arrays can be swept.
func (s *Sweeper) check(dst, src Array, boxes []domain.Box) error {
	if dst.Layout != src.Layout {
		return fmt.Errorf("kernels: a sweep between arrays of different layouts")
	}
	if len(boxes) < 1 || len(boxes) > maxRegions {
		return fmt.Errorf("kernels: a sweep over %d boxes; 1 to %d are possible", len(boxes), maxRegions)
	}
	for _, b := range boxes {
		for _, a := range []Array{dst, src} {
			if err := a.holds(b.Grow(s.stencil.Radius())); err != nil {
				return err
			}
		}
	}
	return nil
}
