package sweep

import (
	"errors"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// checkLimit is how long a launch may take before the device counts as stuck.
const checkLimit = 30 * time.Second

// onGPU runs the kernels of a point function on a device, with arrays that lie on the host.
type onGPU struct {
	device  *streams.Device
	plan    *plan
	sweeper *Sweeper
}

func newOnGPU(c *kernels.Compiler, d *streams.Device, n *plan) (*onGPU, error) {
	s, err := New(c, d, n.point, n.accesses)
	return &onGPU{d, n, s}, err
}

// launch makes a launch with arrays of such contents, which it replaces. It returns what it finds.
func (k *onGPU) launch(arrays []kernels.Array, boxes []domain.Box, variant string, shape Shape, contents [][]byte, m Moment) (found slot, err error) {
	k.sweeper.shape = shape
	var made streams.Resources
	defer func() { err = errors.Join(err, made.Close()) }()
	stream, err := k.device.NewStream(streams.Normal)
	if err != nil {
		return nil, err
	}
	made.Add(stream)
	there, staged, err := k.upload(&made, stream, arrays, contents)
	if err != nil {
		return nil, err
	}
	launch, total, err := k.prepare(&made, k.plan.split(there), boxes, variant)
	if err != nil {
		return nil, err
	}
	launch.SetMoment(m)
	if err := stream.Launch(launch.Kernel); err != nil {
		return nil, err
	}
	if total != nil {
		if err := total.Queue(stream); err != nil {
			return nil, err
		}
	}
	for i, a := range there {
		if err := stream.Copy(staged[i].All(), a.Data.Memory.All()); err != nil {
			return nil, err
		}
	}
	if err := stream.Sync(checkLimit); err != nil {
		return nil, err
	}
	for i := range contents {
		copy(contents[i], staged[i].Bytes())
	}
	if total == nil {
		return nil, nil
	}
	return slices.Clone(slot(total.host.Bytes())), nil
}

// upload puts the contents into arrays of the device.
func (k *onGPU) upload(made *streams.Resources, s *streams.Stream, arrays []kernels.Array, contents [][]byte) (there []kernels.Array, staged []*streams.Memory, err error) {
	for i, a := range arrays {
		m, err := k.device.Alloc(int64(len(contents[i])))
		if err != nil {
			return nil, nil, err
		}
		made.Add(m)
		host, err := k.device.AllocPinned(int64(len(contents[i])))
		if err != nil {
			return nil, nil, err
		}
		made.Add(host)
		copy(host.Bytes(), contents[i])
		if err := s.Copy(m.All(), host.All()); err != nil {
			return nil, nil, err
		}
		there, staged = append(there, kernels.Array{Data: m.All(), Layout: a.Layout}), append(staged, host)
	}
	return there, staged, nil
}

// prepare makes the sweep ready, or its measured twin.
func (k *onGPU) prepare(made *streams.Resources, arrays Arrays, boxes []domain.Box, variant string) (*Launch, *Totals, error) {
	if variant == "" {
		l, err := k.sweeper.Sweep("check", arrays, boxes...)
		if err == nil {
			made.Add(l)
		}
		return l, nil, err
	}
	all, total, err := k.sweeper.Measure(arrays, Portion{Name: "check", Boxes: boxes})
	if err != nil {
		return nil, nil, err
	}
	made.Add(total)
	return all[0], total, nil
}
