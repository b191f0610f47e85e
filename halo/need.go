package halo

import (
	"errors"
	"fmt"

	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Need is the memory that fields and their exchanges need of one device.
type Need struct {
	Device *streams.Device
	Memory
	Free, Total int64 // of the device; 0 where that is not known
}

// Needs returns what so many fields of each Spec of the plan, each with an exchanger, need of the
// devices. Nothing is allocated to find out.
func (p *Plan) Needs(fields int) (all []*Need, err error) {
	if p == nil {
		return nil, errNoPlan
	}
	if fields < 0 {
		return nil, fmt.Errorf("halo: what %d fields need", fields)
	}
	found := map[*streams.Device]*Need{}
	for rank, d := range p.Placement.Devices {
		n := found[d]
		if n == nil {
			n = &Need{Device: d}
			if n.Free, n.Total, err = d.MemoryInfo(); err != nil {
				return nil, err
			}
			found[d] = n
			all = append(all, n)
		}
		m, err := p.Memory(rank)
		if err != nil {
			return nil, err
		}
		for range fields {
			n.Memory = n.add(m)
		}
	}
	return all, nil
}

// Fit returns an error for every device that has too little free memory, and one for all devices
// that share the memory of the host.
func Fit(needs []*Need) error {
	var errs []error
	var host Need
	for _, n := range needs {
		if n == nil || n.Device == nil {
			errs = append(errs, errors.New("halo: the need of no device"))
			continue
		}
		if n.Device.HostMemory {
			host.Device, host.Memory, host.Free, host.Total = n.Device, host.add(n.Memory), n.Free, n.Total
			continue
		}
		errs = append(errs, n.fit(n.Device.String()))
	}
	if host.Device != nil {
		errs = append(errs, host.fit("all "+host.Device.Noun+"s together"))
	}
	return errors.Join(errs...)
}

// fit returns an error if whoever has the memory has too little of it.
func (n *Need) fit(who string) error {
	sum := n.Fields + n.Buffers
	if n.Total == 0 || sum <= n.Free {
		return nil
	}
	return fmt.Errorf("%s: the run needs %s, %s for fields and %s for buffers; %s of %s are free: use more devices, float32 or a smaller grid",
		who, p2p.Size(sum), p2p.Size(n.Fields), p2p.Size(n.Buffers), p2p.Size(n.Free), p2p.Size(n.Total))
}
