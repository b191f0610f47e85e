package reduce

import (
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// newStages makes launches ready that do one thing together, and are closed with open. Those
// without a Go form are left out where Go runs: the others do all there.
func newStages(d *streams.Device, open *streams.Resources, specs []streams.KernelSpec) (launches []*streams.Kernel, err error) {
	for _, spec := range specs {
		if d.GoKernels && spec.Run == nil && spec.RunWith == nil {
			continue
		}
		k, err := launch.New(d, spec)
		if err != nil {
			return nil, err
		}
		open.Add(k)
		launches = append(launches, k)
	}
	return launches, nil
}
