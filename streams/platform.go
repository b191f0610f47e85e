package streams

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Platform is a backend with its devices.
type Platform struct {
	infos   []Info
	version string
	start   func(info Info) (driver, error)
	stop    func() error
}

// Devices describes the devices, in the order of their ids.
func (p *Platform) Devices() []Info { return p.infos }

// Version returns the newest CUDA version that the driver supports, as "13.0";
// "" for host devices.
func (p *Platform) Version() string { return p.version }

// Open opens the devices with the given ids, or all, side by side. A device may be opened
// once.
func (p *Platform) Open(ids ...int) ([]*Device, error) {
	if len(ids) == 0 {
		for _, info := range p.infos {
			ids = append(ids, info.ID)
		}
	}
	seen := map[int]bool{}
	for _, id := range ids {
		if seen[id] {
			return nil, fmt.Errorf("streams: device %d is named twice", id)
		}
		if id < 0 || id >= len(p.infos) {
			return nil, fmt.Errorf("streams: there is no device %d; there are %d, counted from 0", id, len(p.infos))
		}
		seen[id] = true
	}
	devices, errs := make([]*Device, len(ids)), make([]error, len(ids))
	var group sync.WaitGroup
	for i, id := range ids {
		group.Go(func() { devices[i], errs[i] = p.open(id) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, errors.Join(err, CloseAll(devices))
		}
	}
	return devices, nil
}

func (p *Platform) open(id int) (*Device, error) {
	drv, err := p.start(p.infos[id])
	if err != nil {
		return nil, fmt.Errorf("streams: open device %d: %w", id, err)
	}
	return newDevice(p.infos[id], drv), nil
}

// Close releases the platform. Its devices must be closed before.
func (p *Platform) Close() error { return p.stop() }

// CloseAll closes all devices, side by side, but the streams of all before the memory of any:
// copies cross. A device that is nil is left out.
func CloseAll(devices []*Device) error {
	devices = slices.DeleteFunc(slices.Clone(devices), func(d *Device) bool { return d == nil })
	return errors.Join(eachDevice(devices, (*Device).closeStreams), eachDevice(devices, (*Device).Close))
}

// eachDevice calls do for all devices, side by side.
func eachDevice(devices []*Device, do func(d *Device) error) error {
	errs := make([]error, len(devices))
	var group sync.WaitGroup
	for i, d := range devices {
		group.Go(func() { errs[i] = do(d) })
	}
	group.Wait()
	return errors.Join(errs...)
}
