package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// record is the results.Record of a run with its Run section.
type record struct {
	*results.Record
	run *results.Run
}

// beginRecord begins a record with who measures what on the devices of a session, and how: a
// command in whose context the command line is.
func beginRecord(ctx context.Context, s *halo.Session, kind results.Kind, settings any) *results.Record {
	r := &results.Record{
		Kind: kind, Halox: program(), Command: arguments(ctx),
		Started: time.Now(), Host: results.Machine(), Settings: settings,
	}
	r.Host.CUDA, r.Host.Driver = s.CUDAVersion(), s.DriverVersion()
	r.Networks = networksOf(s)
	return r
}

// describeDevice describes a device for a record.
func describeDevice(s *halo.Session, d *streams.Device) results.Device {
	r := results.Device{ID: d.ID, Name: d.Name, Backend: string(d.Backend), MemoryBytes: d.Memory, PCIBusID: d.PCIBusID}
	if cores, memory, ok := s.MaxClocks(d); ok {
		r.Clocks = &results.Clocks{Cores: cores, Memory: memory}
	}
	return r
}

// clone returns a record that what is added to the other does not change.
func (r *record) clone() *record {
	c := &record{new(*r.Record), new(*r.run)}
	c.Run = c.run
	return c
}

// newRecord describes a run before it begins. Where processes share the grid all call it.
func newRecord(ctx context.Context, j *solverRun, begin time.Time) (*record, error) {
	run := &results.Run{Scheme: string(j.Scheme), Path: j.solver.Plan().Path(), Decomposition: j.Place.Parts}
	if j.Problem.Group > 1 {
		run.StepsAnExchange = j.Problem.Group
	}
	if len(j.Scheme.Needs().Orders) > 0 {
		run.Order = j.config.Exchange.Order
	}
	for _, s := range j.Place.Subdomains {
		d := results.Subdomain{Lo: s.Box.Lo, Hi: s.Box.Hi}
		if j.Place.IsLocal(s.Rank) {
			d.Device = j.Place.Devices[s.Rank].ID
		}
		run.Subdomains = append(run.Subdomains, d)
	}
	r := &record{Record: beginRecord(ctx, j.Session, results.KindRun, j.config), run: run}
	r.Started, r.Run = begin, run
	r.describeDevices(j)
	if all := j.solver.Tuning(); len(all) > 0 { // of the only stage
		r.run.Sweep = &results.Sweep{Block: all[0].Block, Layers: all[0].Layers,
			TuningSeconds: results.Number(all[0].Took.Seconds())}
	}
	return r, gatherRun(r.Record, j.Place)
}

// describeDevices lists the devices of this process with their links: between GPUs all of them,
// between CPU devices, where all are alike, those that carry messages.
func (r *record) describeDevices(j *solverRun) {
	paths := map[[2]*streams.Device]string{}
	for _, m := range j.solver.Plan().Messages {
		if !j.Place.IsLocal(m.From) || !j.Place.IsLocal(m.To) {
			continue
		}
		paths[[2]*streams.Device{j.Place.Devices[m.From], j.Place.Devices[m.To]}] = string(m.Path)
	}
	devices := slices.DeleteFunc(slices.Clone(j.Place.Devices), func(d *streams.Device) bool { return d == nil })
	r.Devices = describeDevices(j.Session, devices, j.Session.Links, paths)
}

// describeDevices says for a record which devices these are and how they are linked,
// where links are given; of the links of CPU devices those that have a path alone.
func describeDevices(s *halo.Session, devices []*streams.Device, links *p2p.Links,
	paths map[[2]*streams.Device]string) (all []results.Device) {
	for _, d := range devices {
		device := describeDevice(s, d)
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
		all = append(all, device)
	}
	return all
}

// end adds the failure of the run or of an output, if there is one, and the row that sums it up.
func (r *record) end(failure error) {
	if r.End(failure); failure != nil {
		r.run.Stopped = results.StopError
	}
	r.Add(r.RunRow())
}

// outcome adds what the run came to.
func (r *record) outcome(j *solverRun, res solvers.Result, setup time.Duration) {
	run := r.run
	run.Iterations = int(res.Steps)
	run.Stopped = results.Stop(res.Stopped)
	r.Interrupted = res.Stopped == scheme.StoppedInterrupted
	run.BytesExchanged = res.Bytes
	if res.Steps > 0 {
		run.Norms = norms(res.Norms)
	}
	for _, n := range res.History {
		run.History = append(run.History, results.Check{Iteration: int(n.Step), Norms: norms(n)})
	}
	loop := res.Loop.Seconds()
	run.SetupSeconds, run.LoopSeconds = results.Number(setup.Seconds()), results.Number(loop)
	run.UpdatesPerSecond = results.Number(float64(res.Steps) * float64(j.Problem.Grid.Points()) / loop)
	if dt := j.Problem.TimeStep; dt > 0 {
		run.DT, run.Time = results.Number(dt), results.Number(float64(res.Steps)*dt)
	}
}

func norms(n solvers.Norms) results.Norms {
	return results.Norms{
		MaxChange: results.Number(n.MaxChange), L2Change: results.Number(n.L2Change),
		L2Norm: results.Number(n.L2), MaxNorm: results.Number(n.Max),
	}
}

// gatherDevices puts the devices of all processes into a record that has those of this one. All processes call it.
func gatherDevices(r *results.Record, p *mpi.Processes) error {
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

// gatherRun puts what other processes know into the record of a run. All processes call it.
func gatherRun(r *results.Record, place *halo.Placement) error {
	p := place.Processes
	if p.IsAlone() {
		return nil
	}
	if err := gatherDevices(r, p); err != nil {
		return err
	}
	all, err := mpi.Gather(context.Background(), p, "describe the subdomains", r.Run.Subdomains)
	if err != nil {
		return err
	}
	r.Run.Processes = p.Size()
	for rank, owner := range place.Owners {
		r.Run.Subdomains[rank] = all[owner][rank]
		r.Run.Subdomains[rank].Process = owner
	}
	return nil
}

// networksOf describes for a record what carries messages between processes.
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

// recordWriter returns a function that writes the record of a run as it is, if one is wanted, after complete has added
// what it lacks, and says what was kept.
func (j *solverRun) recordWriter(of *record, complete func(run *results.Run)) func() string {
	return func() string {
		name := j.config.Output.Record
		if name == "" || !j.writes() {
			return ""
		}
		r := of.clone()
		if complete != nil {
			complete(r.run)
		}
		r.Interrupted = true
		r.Add(r.RunRow())
		if err := r.Write(name); err != nil {
			return fmt.Sprintf("; there is no record: %v", err)
		}
		return fmt.Sprintf("; %s tells of the %d steps until then", name, r.run.Iterations)
	}
}

// writePartial calls write as soon as the context of a run of several processes ends, until end is called: their
// launcher may kill them soon after the signal, mpirun of Open MPI 5 after a quarter of a second. A pipe gets one
// record, at the end.
func (j *solverRun) writePartial(ctx context.Context, write func() string) (end func()) {
	info, err := os.Stat(j.config.Output.Record)
	if j.Place.Processes.IsAlone() || err == nil && !info.Mode().IsRegular() {
		return func() {}
	}
	written := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		write()
		close(written)
	})
	return func() {
		if !stop() {
			<-written
		}
	}
}
