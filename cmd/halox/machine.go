package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// machine is the devices that may be used.
type machine struct {
	platform *streams.Platform
	backend  streams.Backend
	nvml     *p2p.NVML // nil on host devices and where NVML does not start
}

// openMachine opens the backend that the config wants. Where auto finds no GPU
// it takes host devices and says so in one line, and so it does where the cache is not to
// be trusted.
func openMachine(c configs.Devices, notes io.Writer) (*machine, error) {
	if err := cache.At("").Check(); err != nil {
		fmt.Fprintln(notes, err)
	}
	want := c.Backend
	if want != string(streams.Host) {
		platform, err := streams.CUDAPlatform(os.Getenv("HALOX_CUDA"))
		if err == nil {
			m := &machine{platform: platform, backend: streams.CUDA}
			m.nvml, _ = p2p.OpenNVML() // without it the kinds of links stay unknown
			return m, nil
		}
		if want == string(streams.CUDA) || !errors.Is(err, streams.ErrNoDriver) {
			return nil, fmt.Errorf("devices.backend: %w", err)
		}
		fmt.Fprintf(notes, "no GPU to be used (%v): running on host devices\n", err)
	}
	if n := hostCount(c); n > configs.MaxDevices {
		return nil, fmt.Errorf("%d host devices: at most %d are possible", n, configs.MaxDevices)
	}
	return &machine{platform: streams.HostPlatform(hostCount(c)), backend: streams.Host}, nil
}

// hostCount returns how many host devices there are to be: those asked for, or
// one a core.
func hostCount(c configs.Devices) int {
	n := runtime.GOMAXPROCS(0)
	if c.Count > 0 {
		n = int(c.Count)
	}
	if len(c.IDs) > 0 {
		n = max(n, slices.Max(c.IDs)+1)
	}
	return n
}

// topology returns how GPUs are linked, nil where that is not known.
func (m *machine) topology() p2p.Topology {
	if m.nvml == nil {
		return nil
	}
	return m.nvml
}

// driver returns the version of the GPUs' driver, "" where that is not known.
func (m *machine) driver() string {
	if m.nvml == nil {
		return ""
	}
	return m.nvml.DriverVersion()
}

// ids returns the devices to use: those named, or the first of them, as many
// as asked for or as there are.
func (m *machine) ids(c configs.Devices) ([]int, error) {
	have := len(m.platform.Devices())
	if len(c.IDs) > 0 {
		for _, id := range c.IDs {
			if id >= have {
				return nil, fmt.Errorf("devices.ids: there is no %s device %d; this machine has %d, counted from 0", m.backend, id, have)
			}
		}
		return c.IDs, nil
	}
	n := have
	if c.Count > 0 {
		n = int(c.Count)
	}
	if n > have {
		return nil, fmt.Errorf("devices.count: %d %s devices were asked for; this machine has %d", n, m.backend, have)
	}
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	return ids, nil
}

func (m *machine) close() error {
	err := m.platform.Close()
	if m.nvml != nil {
		err = errors.Join(err, m.nvml.Close())
	}
	return err
}
