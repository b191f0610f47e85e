//go:build linux && cgo

package p2p

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// NVML is the topology given by NVIDIA's management library.
type NVML struct{ lib nvml.Interface }

// OpenNVML loads the library and initializes it. After an error no other NVML function may be called.
func OpenNVML() (*NVML, error) {
	n := &NVML{nvml.New()}
	if r := n.lib.Init(); r != nvml.SUCCESS {
		return nil, fmt.Errorf("p2p: initialize NVML: %v", r)
	}
	return n, nil
}

// Close shuts the library down.
func (n *NVML) Close() error { return failed("shut down", n.lib.Shutdown()) }

// Link returns how two GPUs are linked, as printed by nvidia-smi topo: NV and the number of NVLinks, or else the
// most distant component in between: PIX one PCIe switch, PXB several, PHB a host bridge, NODE a NUMA node, SYS
// between nodes.
func (n *NVML) Link(busA, busB string) (string, error) {
	a, r := n.lib.DeviceGetHandleByPciBusId(busA)
	if err := failed("find "+busA, r); err != nil {
		return "", err
	}
	b, r := n.lib.DeviceGetHandleByPciBusId(busB)
	if err := failed("find "+busB, r); err != nil {
		return "", err
	}
	status, r := n.lib.DeviceGetP2PStatus(a, b, nvml.P2P_CAPS_INDEX_NVLINK)
	if r == nvml.SUCCESS && status == nvml.P2P_STATUS_OK {
		if links := countNVLinks(a, b); links > 0 {
			return fmt.Sprintf("NV%d", links), nil
		}
	}
	level, r := n.lib.DeviceGetTopologyCommonAncestor(a, b)
	if err := failed("query the topology", r); err != nil {
		return "", err
	}
	name, ok := map[nvml.GpuTopologyLevel]string{
		nvml.TOPOLOGY_INTERNAL: "X", nvml.TOPOLOGY_SINGLE: "PIX", nvml.TOPOLOGY_MULTIPLE: "PXB",
		nvml.TOPOLOGY_HOSTBRIDGE: "PHB", nvml.TOPOLOGY_NODE: "NODE", nvml.TOPOLOGY_SYSTEM: "SYS",
	}[level]
	if !ok {
		return "", fmt.Errorf("p2p: NVML gives an unknown topology level %d", level)
	}
	return name, nil
}

// countNVLinks counts the active NVLinks of a that end at b. If none ends at a GPU they end at a switch, and all
// of them lead to b.
func countNVLinks(a, b nvml.Device) int {
	peer, r := b.GetPciInfo()
	if r != nvml.SUCCESS {
		return 0
	}
	active, direct := 0, 0
	for link := range nvml.NVLINK_MAX_LINKS {
		if state, r := a.GetNvLinkState(link); r != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
			continue
		}
		active++
		remote, r := a.GetNvLinkRemotePciInfo(link)
		if r == nvml.SUCCESS && remote.Domain == peer.Domain && remote.Bus == peer.Bus && remote.Device == peer.Device {
			direct++
		}
	}
	if direct > 0 {
		return direct
	}
	return active
}

// MaxClocks returns the maximum clocks of the cores and the memory of a GPU in MHz.
func (n *NVML) MaxClocks(bus string) (cores, memory int, err error) {
	d, r := n.lib.DeviceGetHandleByPciBusId(bus)
	if err := failed("find "+bus, r); err != nil {
		return 0, 0, err
	}
	c, r1 := d.GetMaxClockInfo(nvml.CLOCK_SM)
	m, r2 := d.GetMaxClockInfo(nvml.CLOCK_MEM)
	return int(c), int(m), errors.Join(failed("read the clock of "+bus, r1),
		failed("read the memory clock of "+bus, r2))
}

func failed(doing string, r nvml.Return) error {
	if r == nvml.SUCCESS {
		return nil
	}
	return fmt.Errorf("p2p: NVML cannot %s: %w", doing, errors.New(nvml.ErrorString(r)))
}

// DriverVersion returns the version of the driver, or "" if unknown.
func (n *NVML) DriverVersion() string {
	v, r := n.lib.SystemGetDriverVersion()
	if r != nvml.SUCCESS {
		return ""
	}
	return v
}
