package bench

import (
	"context"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// Describe adds to a record the machine of a session, the transports between processes, and the devices given by this
// process and the others. All processes call it. Devices are described with the links between them, if any are given,
// that messages over these paths use; GPUs with all links.
func Describe(
	r *results.Record, s *halo.Session, p *mpi.Processes, devices []*streams.Device, links *p2p.Links,
	paths map[[2]*streams.Device]string,
) error {
	r.Host = results.Machine()
	r.Host.CUDA, r.Host.Driver = s.CUDAVersion(), s.DriverVersion()
	r.Networks = networksOf(s)
	for _, d := range devices {
		device := results.Device{ID: d.ID, Name: d.Name, Backend: string(d.Backend), MemoryBytes: d.Memory,
			PCIBusID: d.PCIBusID}
		if cores, memory, ok := s.MaxClocks(d); ok {
			device.Clocks = &results.Clocks{Cores: cores, Memory: memory}
		}
		for _, to := range devices {
			if links == nil {
				break
			}
			link, path := links.Between(d, to), paths[[2]*streams.Device{d, to}]
			if link != nil && (path != "" || !d.HostMemory) {
				device.Links = append(device.Links,
					results.Link{To: to.ID, Kind: link.Kind, PeerAccess: link.Usable, Path: path})
			}
		}
		r.Devices = append(r.Devices, device)
	}
	if p.IsAlone() {
		return nil
	}
	all, err := mpi.Gather(context.Background(), p, "describe the devices", r.Devices)
	if err != nil {
		return err
	}
	r.Devices = nil
	for process, devices := range all {
		for _, d := range devices {
			d.Process, d.Host = process, p.Hosts[process]
			r.Devices = append(r.Devices, d)
		}
	}
	return nil
}

// networksOf describes the transports between processes.
func networksOf(s *halo.Session) (all []results.Network) {
	for _, n := range s.UsedNetworks() {
		r := results.Network{Between: "processes", Name: string(n.Network), Carrier: n.Carrier}
		if n.Hosts {
			r.Between = "hosts"
		}
		if n.Curve != nil {
			for _, sample := range n.Curve.Curve {
				r.Times = append(r.Times, results.NetworkTime{Bytes: sample.Bytes,
					Microseconds: float64(sample.Time.Nanoseconds()) / 1e3})
			}
		}
		all = append(all, r)
	}
	return all
}
