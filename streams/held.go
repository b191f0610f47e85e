package streams

import (
	"errors"
	"fmt"
)

// Held is memory that was allocated on a device, in bytes.
type Held struct {
	Memory int64 // of the device
	Pinned int64 // of the host
}

// Held returns what is allocated on the device.
func (d *Device) Held() Held {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held
}

// Peak returns the most of each that was allocated since the call before.
func (d *Device) Peak() (most Held) {
	d.mu.Lock()
	defer d.mu.Unlock()
	most, d.most = d.most, d.held
	return most
}

// count counts a block that was allocated, or with a sign of -1 freed.
func (d *Device) count(m *Memory, sign int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.pinned {
		d.held.Pinned += sign * m.size
	} else {
		d.held.Memory += sign * m.size
	}
	d.most = Held{max(d.most.Memory, d.held.Memory), max(d.most.Pinned, d.held.Pinned)}
}

// Demand is memory that somebody wants of a device.
type Demand struct {
	Device *Device
	Held
}

// Fit returns an error, which is ErrOutOfMemory, with the numbers for every device that has too little free
// memory for all that is wanted of it, and one for the host, whose memory host devices and pinned memory
// share. What is wanted of devices of a DryRun fits always. Who has allocated meanwhile may have left less.
func Fit(all []Demand) error {
	own := map[*Device]int64{}
	var order []*Device
	var host hostDemand
	var errs []error
	for _, n := range all {
		if n.Device.IsDry() {
			continue
		}
		if n.Memory < 0 || n.Pinned < 0 {
			return n.Device.fail(fmt.Errorf("%w: more than 2^63 bytes are needed", ErrOutOfMemory), "make room")
		}
		if n.Device.HostMemory {
			host.add(n.Device, n.Memory)
		} else if n.Memory > 0 {
			if _, seen := own[n.Device]; !seen {
				order = append(order, n.Device)
			}
			own[n.Device] = plus(own[n.Device], n.Memory)
		}
		host.add(n.Device, n.Pinned)
	}
	for _, d := range order {
		errs = append(errs, d.fit(own[d]))
	}
	return errors.Join(append(errs, host.fit())...)
}

// plus returns the sum of two sizes, or the greatest number there is.
func plus(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return 1<<63 - 1
}

// fit returns an error if the device has too little memory of its own.
func (d *Device) fit(bytes int64) error {
	free, total, err := d.MemoryInfo()
	if err != nil || total == 0 || bytes <= free {
		return err
	}
	needs, has := sizes(bytes, free)
	return d.fail(fmt.Errorf("%w: %s are needed, and %s of %s are free", ErrOutOfMemory, needs, has, Size(total)), "make room")
}

// hostDemand is what is wanted of the host's memory.
type hostDemand struct {
	device *Device // any that wants it
	bytes  int64
}

func (n *hostDemand) add(d *Device, bytes int64) {
	if bytes > 0 {
		n.device, n.bytes = d, plus(n.bytes, bytes)
	}
}

// fit returns an error if the host has too little.
func (n *hostDemand) fit() error {
	if n.device == nil {
		return nil
	}
	m, err := n.device.HostMemoryInfo()
	if err != nil || m.Total == 0 || n.bytes <= m.Free {
		return err
	}
	needs, has := sizes(n.bytes, m.Free)
	return fmt.Errorf("streams: %w on the host: %s are needed, and %s of %s are available: %s", ErrOutOfMemory, needs, has, Size(m.Total), m.Source)
}

// HostInfo is the host's memory as its devices and their pinned memory share it, in bytes; zeros where it is
// not known.
type HostInfo struct {
	Free, Total int64
	Source      string // what Free is: what the system calls available, or what a limit leaves
}

// HostMemoryInfo returns what of the host's memory may be allocated.
func (d *Device) HostMemoryInfo() (HostInfo, error) {
	if err := d.usable(); err != nil {
		return HostInfo{}, err
	}
	m, err := d.driver.host().free()
	return HostInfo{m.Free, m.Total, m.Source}, d.fail(err, "ask for the memory of the host")
}
