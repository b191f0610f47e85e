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

// Open opens the devices with the given ids, or all. A device may be opened
// once.
func (p *Platform) Open(ids ...int) ([]*Device, error) {
	if len(ids) == 0 {
		for _, info := range p.infos {
			ids = append(ids, info.ID)
		}
	}
	var devices []*Device
	seen := map[int]bool{}
	for _, id := range ids {
		d, err := p.open(id, seen[id])
		if err != nil {
			return nil, errors.Join(err, CloseAll(devices))
		}
		seen[id] = true
		devices = append(devices, d)
	}
	return devices, nil
}

func (p *Platform) open(id int, twice bool) (*Device, error) {
	if twice {
		return nil, fmt.Errorf("streams: device %d is named twice", id)
	}
	if id < 0 || id >= len(p.infos) {
		return nil, fmt.Errorf("streams: there is no device %d; there are %d, counted from 0", id, len(p.infos))
	}
	drv, err := p.start(p.infos[id])
	if err != nil {
		return nil, fmt.Errorf("streams: open device %d: %w", id, err)
	}
	return newDevice(p.infos[id], drv), nil
}

// Close releases the platform. Its devices must be closed before.
func (p *Platform) Close() error { return p.stop() }

// CloseAll closes all devices, the streams of all before the memory of any:
// copies cross. A device that is nil is left out.
func CloseAll(devices []*Device) error {
	devices = slices.DeleteFunc(slices.Clone(devices), func(d *Device) bool { return d == nil })
	errs := make([]error, len(devices))
	var group sync.WaitGroup
	for i, d := range devices {
		group.Go(func() { errs[i] = d.closeStreams() })
	}
	group.Wait()
	for _, d := range devices {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}
