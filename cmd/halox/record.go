package main

import (
	"time"

	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers"
)

// record is the results.Record of a job.
type record struct{ results.Record }

// newRecord describes a job before its run.
func newRecord(j *job, begin time.Time) *record {
	r := &record{results.Record{
		Halox:         results.Program{Version: version, Commit: builtFrom()},
		Config:        j.config,
		Host:          results.Machine(),
		Started:       begin,
		Scheme:        string(j.scheme),
		Path:          j.solver.Plan().Path(),
		Decomposition: j.place.Parts,
	}}
	if j.scheme == solvers.TwoStream {
		r.Order = j.config.Exchange.Order
	}
	r.Host.CUDA = j.machine.platform.Version()
	if j.machine.nvml != nil {
		r.Host.Driver = j.machine.nvml.DriverVersion()
	}
	for _, s := range j.place.Subdomains {
		r.Subdomains = append(r.Subdomains, results.Subdomain{Device: j.devices[s.Rank].ID, Lo: s.Box.Lo, Hi: s.Box.Hi})
	}
	r.describeDevices(j)
	return r
}

// describeDevices lists the devices, their links, and the paths that messages
// take over them.
func (r *record) describeDevices(j *job) {
	for _, d := range j.devices {
		device := results.Device{ID: d.ID, Name: d.Name, Backend: string(d.Backend), MemoryBytes: d.Memory, PCIBusID: d.PCIBusID}
		for _, to := range j.devices {
			if link := j.links.Between(d, to); link != nil {
				device.Links = append(device.Links, results.Link{To: to.ID, Kind: link.Kind, PeerAccess: link.Usable})
			}
		}
		for _, m := range j.solver.Plan().Messages {
			for i := range device.Links {
				if j.devices[m.From] == d && j.devices[m.To].ID == device.Links[i].To {
					device.Links[i].Path = string(m.Path)
				}
			}
		}
		r.Devices = append(r.Devices, device)
	}
}

// outcome adds what the run came to, or what it failed of.
func (r *record) outcome(j *job, res solvers.Result, setup time.Duration, failure error) {
	r.Iterations = int(res.Iterations)
	r.Stopped = results.Stop(res.Stopped)
	r.BytesExchanged = res.Bytes
	if failure != nil {
		r.Stopped, r.Failure = results.StopError, failure.Error()
	}
	if res.Iterations > 0 {
		r.Norms = norms(res.Norms)
	}
	for _, n := range res.History {
		r.History = append(r.History, results.Check{Iteration: int(n.Iteration), Norms: norms(n)})
	}
	loop := res.Loop.Seconds()
	r.SetupSeconds, r.LoopSeconds = results.Number(setup.Seconds()), results.Number(loop)
	r.UpdatesPerSecond = results.Number(float64(res.Iterations) * float64(j.problem.Grid.Points()) / loop)
	if dt := j.problem.TimeStep; dt > 0 {
		r.DT, r.Time = results.Number(dt), results.Number(float64(res.Iterations)*dt)
	}
}

func norms(n solvers.Norms) results.Norms {
	return results.Norms{
		MaxChange: results.Number(n.MaxChange), L2Change: results.Number(n.L2Change),
		L2Norm: results.Number(n.L2), MaxNorm: results.Number(n.Max),
	}
}
