package main

import (
	"time"

	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/streams"
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
	r.Host.Driver = j.machine.driver()
	for _, s := range j.place.Subdomains {
		r.Subdomains = append(r.Subdomains, results.Subdomain{Device: j.devices[s.Rank].ID, Lo: s.Box.Lo, Hi: s.Box.Hi})
	}
	r.describeDevices(j)
	if tuning, took := j.solver.Tuning(); tuning.Tried > 0 || tuning.Key != "" {
		r.Sweep = &results.Sweep{Block: tuning.Shape.Block, Layers: tuning.Shape.Layers, TuningSeconds: results.Number(took.Seconds())}
	}
	return r
}

// describeDevices lists the devices with their links: between GPUs all of them,
// between host devices, where all are alike, those that carry messages.
func (r *record) describeDevices(j *job) {
	paths := map[[2]*streams.Device]string{}
	for _, m := range j.solver.Plan().Messages {
		paths[[2]*streams.Device{j.devices[m.From], j.devices[m.To]}] = string(m.Path)
	}
	for _, d := range j.devices {
		device := describeDevice(d)
		for _, to := range j.devices {
			link, path := j.links.Between(d, to), paths[[2]*streams.Device{d, to}]
			if link != nil && (path != "" || d.Backend != streams.Host) {
				device.Links = append(device.Links, results.Link{To: to.ID, Kind: link.Kind, PeerAccess: link.Usable, Path: path})
			}
		}
		r.Devices = append(r.Devices, device)
	}
}

// fail says what the run, or one of its outputs, failed of, if it did.
func (r *record) fail(failure error) {
	if failure != nil {
		r.Stopped, r.Failure = results.StopError, failure.Error()
	}
}

// outcome adds what the run came to.
func (r *record) outcome(j *job, res solvers.Result, setup time.Duration) {
	r.Iterations = int(res.Iterations)
	r.Stopped = results.Stop(res.Stopped)
	r.BytesExchanged = res.Bytes
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
