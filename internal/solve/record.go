package solve

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// Version is the release that the next one follows; CHANGELOG.md has a section for it.
const Version = "0.3.0"

// Program returns the version, and the commit from the build info.
func Program() results.Program {
	p := results.Program{Version: Version, Commit: "unknown commit"}
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return p
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			p.Commit = s.Value[:min(8, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			p.Commit += " with changes"
		}
	}
	return p
}

// BeginRecord begins a record with the command line of a context.
func BeginRecord(ctx context.Context, kind results.Kind, settings any) *results.Record {
	return &results.Record{Kind: kind, Halox: Program(), Command: command.Of(ctx).Args, Started: time.Now(),
		Settings: settings}
}

// newRecord describes a run before it begins. If processes share the grid all call it.
func (s *Run) newRecord(ctx context.Context, begin time.Time) (*results.Record, error) {
	run := &results.Run{Scheme: string(s.Scheme), Path: s.solver.Plan().Path(), Decomposition: s.Place.Parts,
		Origin: s.Problem.First(), Spacing: s.Problem.Spacing, IgnoredTerms: s.Problem.Ignored}
	if stable := s.Problem.Stable; stable > 0 && s.config.Solver != configs.SolverLaplace {
		run.StableDT = results.Number(stable)
	}
	if s.from != nil {
		run.RestartStep = &s.from.Step
	}
	if s.child != nil {
		run.Faults = s.child.Faults
	}
	if s.Problem.Group > 1 {
		run.StepsPerExchange = s.Problem.Group
	}
	if len(s.Scheme.Needs().Orders) > 0 {
		run.Order = string(s.Scheme.Order(scheme.Order(s.config.Exchange.Order)))
	}
	if all := s.solver.Tuning(); len(all) > 0 { // of the only stage
		run.Sweep = &results.Sweep{Block: all[0].Block, Layers: all[0].Layers,
			TuningSeconds: results.Number(all[0].Took.Seconds())}
	}
	for _, t := range s.Trials {
		one := results.Trial{Scheme: string(t.Scheme), Path: string(t.Path), StepSeconds: t.Step.Seconds()}
		if t.Group > 1 {
			one.StepsPerExchange = t.Group
		}
		run.Trials = append(run.Trials, one)
	}
	r := BeginRecord(ctx, results.KindRun, s.config)
	r.Started, r.Run = begin, run
	paths := map[[2]*streams.Device]string{}
	for _, m := range s.solver.Plan().Messages {
		if s.Place.IsLocal(m.From) && s.Place.IsLocal(m.To) {
			paths[[2]*streams.Device{s.Place.Devices[m.From], s.Place.Devices[m.To]}] = string(m.Path)
		}
	}
	if err := bench.Describe(r, s.Session, s.Place.Processes, s.ownDevices(), s.Session.Links, paths); err != nil {
		return nil, err
	}
	var own []int // the numbers of this process's devices, by rank of the subdomain
	for _, d := range s.Place.Devices {
		id := 0
		if d != nil {
			id = d.ID
		}
		own = append(own, id)
	}
	all, err := mpi.Gather(context.Background(), s.Place.Processes, "describe the subdomains", own)
	if err != nil {
		return nil, err
	}
	for rank, d := range s.Place.Subdomains {
		owner := s.Place.Owners[rank]
		run.Subdomains = append(run.Subdomains, results.Subdomain{Lo: d.Box.Lo, Hi: d.Box.Hi, Device: all[owner][rank],
			Process: owner})
	}
	if !s.Place.Processes.IsAlone() {
		run.Processes = s.Place.Processes.Size()
	}
	return r, nil
}

// addResult adds the result of the run to a record.
func (s *Run) addResult(r *results.Record, res scheme.Result, setup time.Duration) {
	run := r.Run
	run.Iterations = int(s.solver.Done())
	run.Stopped = results.Stop(res.Stopped)
	r.Interrupted = res.Stopped == scheme.StoppedInterrupted
	run.BytesExchanged = res.Bytes
	paced := s.paced()
	if len(res.Norms) > 0 {
		run.Norms = norms(res.Check)
		scale := s.Problem.ResidualScale()
		if paced {
			scale = 1 / res.Length
		}
		run.Residual = results.Number(together(res.Check).MaxChange * scale)
	}
	if s.config.Output.History {
		run.History = s.history(res.History)
	}
	loop := res.Loop.Seconds()
	run.SetupSeconds, run.LoopSeconds = results.Number(setup.Seconds()), results.Number(loop)
	run.UpdatesPerSecond = results.Number(float64(res.Steps) * float64(s.Problem.Grid.Points()) / loop)
	if dt := s.Problem.TimeStep; dt > 0 && s.config.TimeStep() > 0 {
		run.DT, run.Time = results.Number(dt), results.Number(float64(run.Iterations)*dt)
	} else if paced {
		run.DT, run.Time = results.Number(res.Length), results.Number(s.solver.Time())
	}
	if s.diverges(run) {
		run.Warnings = append(run.Warnings, fmt.Sprintf("the last step changed the field by %.3g, and its maximum is %.3g: "+
			"the run probably diverges; use a smaller time step", *run.MaxChange, *run.MaxNorm))
	}
}

// diverges reports whether an integrated field is large and changes as much in a step, as it does where its sign
// alternates from step to step.
func (s *Run) diverges(r *results.Run) bool {
	integrates := s.config.Heat != nil || s.config.Time != nil && s.config.Time.Integrator != ""
	return integrates && r.MaxNorm != nil && r.MaxChange != nil && *r.MaxNorm > 1e6 && *r.MaxChange > *r.MaxNorm/2
}

// together returns the norms of all fields.
func together(c scheme.Check) (all scheme.Norms) {
	for _, n := range c.Norms {
		all.MaxChange, all.Max = max(all.MaxChange, n.MaxChange), max(all.Max, n.Max)
		all.L2Change, all.L2 = math.Hypot(all.L2Change, n.L2Change), math.Hypot(all.L2, n.L2)
	}
	return all
}

func norms(c scheme.Check) results.Norms {
	all := together(c)
	return results.Norms{
		MaxChange: results.Number(all.MaxChange), L2Change: results.Number(all.L2Change),
		L2Norm: results.Number(all.L2), MaxNorm: results.Number(all.Max),
	}
}

// recordWriter returns a function that writes the record of a run as it is now, marked as interrupted, if a record is
// requested, and returns a text that describes it. complete adds missing parts of the record; it may be nil.
func (s *Run) recordWriter(r *results.Record, complete func(run *results.Run)) func() string {
	now, run := *r, *r.Run
	return func() string {
		name := s.config.Output.Record
		if name == "" || !s.writes() {
			return ""
		}
		part, run := now, run
		part.Run, part.Interrupted = &run, true
		if complete != nil {
			complete(&run)
		}
		part.Add(part.RunRow())
		if err := part.Write(name); err != nil {
			return fmt.Sprintf("; there is no record: %v", err)
		}
		return fmt.Sprintf("; %s records the %d steps completed", name, run.Iterations)
	}
}

// writePartial calls write as soon as the context of a run of several processes ends, until end is called: their
// launcher may kill them soon after the signal, mpirun of Open MPI 5 after a quarter of a second.
func (s *Run) writePartial(ctx context.Context, write func() string) (end func()) {
	if s.Place.Processes.IsAlone() {
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

// paced reports whether the length of steps depends on the fields.
func (s *Run) paced() bool { return s.config.Time != nil && s.config.TimeStep() == 0 }

// history returns the checks of a run, also those before a restart. measured are measures by check.
func (s *Run) history(all []scheme.Check) (checks []results.Check) {
	checks = slices.DeleteFunc(slices.Clone(s.earlier), func(c results.Check) bool {
		return c.Iteration%s.config.Stop.CheckEvery != 0 // at the end of an earlier part
	})
	for _, n := range all {
		check := results.Check{Iteration: int(n.Step), Norms: norms(n)}
		if paced := s.paced(); paced || s.config.TimeStep() > 0 {
			check.Time = results.Number(n.Time)
			if paced {
				check.DT = results.Number(n.Length)
			}
		}
		if s.measures != nil {
			check.Measures = s.measures(n.Step)
		}
		checks = append(checks, check)
	}
	return checks
}
