package main

import (
	"github.com/halox/halox/halo"
	"github.com/halox/halox/results"
)

// part is what one process adds to the record.
type part struct {
	Devices    []results.Device
	Subdomains []int // by rank: the id of the device, of its own
}

// addProcesses adds the devices of all processes to the record. All call it.
func addProcesses(r *results.Record, j *solverRun) error {
	processes := j.place.Processes
	if processes.IsAlone() {
		return nil
	}
	mine := part{Devices: r.Devices}
	for _, s := range r.Run.Subdomains {
		mine.Subdomains = append(mine.Subdomains, s.Device)
	}
	all, err := gather(processes, "describe the devices", mine)
	if err != nil {
		return err
	}
	r.Run.Processes, r.Devices = processes.Size(), nil
	for process, p := range all {
		for _, d := range p.Devices {
			d.Process, d.Host = process, processes.Hosts[process]
			r.Devices = append(r.Devices, d)
		}
		for rank, id := range p.Subdomains {
			if j.place.Owners[rank] == process {
				r.Run.Subdomains[rank].Device, r.Run.Subdomains[rank].Process = id, process
			}
		}
	}
	return nil
}

// networksOf says for a record what carries messages between processes.
func networksOf(s *halo.Session) (all []results.Network) {
	for _, n := range s.UsedNetworks() {
		r := results.Network{Between: "processes", Name: string(n.Network), Carrier: n.Carrier}
		if n.Hosts {
			r.Between = "hosts"
		}
		if n.Curve != nil {
			for _, sample := range n.Curve.Curve {
				r.Times = append(r.Times, results.NetworkTime{Bytes: sample.Bytes, Microseconds: float64(sample.Time.Nanoseconds()) / 1e3})
			}
		}
		all = append(all, r)
	}
	return all
}
