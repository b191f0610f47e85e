package solvers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// Several processes make the steps, and come to the norms, of one, to the bit.
func TestProcesses(t *testing.T) {
	testdevices.InTurn(t, 0, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, tc := range []struct {
			program string
			ranks   []int
			some    int // how many of these unless tests are long
		}{
			{"schemes", []int{4, 2, 3}, 1},
			{"tolerance", []int{3, 2}, 1},
			{"interrupt", []int{2, 3}, 1},
			{"intervals", []int{3}, 1},
			{"refusals", []int{3}, 1},
		} {
			for _, ranks := range testdevices.Again(1, testdevices.Some(tc.some, tc.ranks)) {
				t.Run(fmt.Sprintf("%s/%d", tc.program, ranks), func(t *testing.T) {
					r := in.Run(t, testmpi.Job{Program: tc.program, Ranks: ranks, Limit: 200 * time.Second})
					r.Succeeds(t)
					if n := strings.Count(r.Out, fmt.Sprintf(" of %d done", ranks)); n != ranks {
						t.Errorf("%d ranks are done:\n%s", n, r.Out)
					}
				})
			}
		}
	})
}

// A process that is lost in mid-run, or fails, ends the others in time, which name it.
func TestProcessesNameWhoIsLost(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		says := map[string]string{"one stops": "has said nothing for 2s", "one is gone": "has said nothing for 2s", "one fails": "the disk is full"}
		for _, program := range testdevices.Some(3, []string{ // a scheme with assistants or fused, unless tests are long
			"one stops", "one is gone", "one is gone in fused", "one stops in fused", "one fails", "one fails in fused",
		}) {
			t.Run(program, func(t *testing.T) {
				job := testmpi.Job{Program: program, Ranks: 3, Limit: 60 * time.Second}
				words := []string{"<rank 0 after ", "rank 2 on host ", says[strings.TrimSuffix(program, " in fused")]}
				gone := strings.HasPrefix(program, "one is gone")
				if gone && in.Hydra {
					job.Args = []string{"-disable-auto-cleanup"}
				}
				r := in.Run(t, job)
				if gone && !strings.Contains(r.Out, words[0]) {
					words = nil // the launcher has ended all before anybody missed it
				}
				r.Fails(t, words...)
			})
		}
	})
}

// programs are what processes that a test has launched carry out.
func programs() map[string]func() error {
	all := map[string]func() error{
		"schemes":   amongProcesses(testLimit, schemesAmong),
		"tolerance": amongProcesses(testLimit, toleranceAmong),
		"interrupt": amongProcesses(testLimit, interruptAmong),
		"intervals": amongProcesses(testLimit, intervalsAmong),
		"refusals":  amongProcesses(testLimit, refusalsAmong),
	}
	for in, name := range map[string]scheme.Scheme{"": scheme.Assisted, " in fused": scheme.Fused} {
		for what, last := range map[string]func(){
			"one stops":   func() { receives(syscall.SIGSTOP) },
			"one is gone": func() { receives(syscall.SIGKILL) },
			"one fails":   func() { panic("the disk is full") },
		} {
			all[what+in] = amongProcesses(4*time.Second, func(p *among) error { return p.endless(name, last) })
		}
	}
	return all
}

// among is one process in a test with the session that it shares.
type among struct {
	*mpi.Processes
	session *halo.Session
}

// amongProcesses runs a program as one of several processes: rank 1 has two host devices, and all others one, or, where they
// are even in number, all two. One that fails ends all.
func amongProcesses(limit time.Duration, program func(*among) error) func() error {
	return func() error {
		ctx := context.Background()
		joined, err := mpi.Join(ctx, mpi.Options{Limit: limit, Piece: 500})
		if err != nil || joined.IsAlone() {
			return fmt.Errorf("alone: %w", err)
		}
		p := &among{Processes: joined}
		devices := 1
		if p.Size() == 2 || p.Rank == 1 {
			devices = 2
		}
		began := time.Now()
		if p.session, err = halo.Open(ctx, halo.Devices{Backend: streams.Host, Count: devices, Processes: joined}); err == nil {
			err = program(p)
		}
		if err == nil {
			err = errors.Join(p.session.Close(), p.Close())
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "<rank %d after %v: %v>\n", p.Rank, time.Since(began).Round(time.Second), err)
			err = errors.Join(p.Fail(err), p.Close())
			p.Abort(3)
			return err
		}
		fmt.Printf("rank %d of %d done\n", p.Rank, p.Size())
		return nil
	}
}

// inProgram stands for the test of helpers, in a process that carries out a program.
type inProgram struct{ testing.TB }

func (inProgram) Helper()           {}
func (inProgram) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// solver cuts the grid over all devices and makes the problem ready.
func (p *among) solver(of *Problem, path p2p.Path) (*Solver, error) {
	ctx := context.Background()
	place, err := p.session.Cut(ctx, halo.Cutting{
		Size: of.Grid.Size[:of.Grid.Dims], Periodic: of.Grid.Periodic, Fields: []halo.Spec{of.Field()}, Path: path,
	})
	if err != nil {
		return nil, err
	}
	plan, err := of.NewPlan(place, p.session.Links, path)
	if err != nil {
		return nil, err
	}
	return New(ctx, of, plan, p.session.Compiler)
}

// agrees returns an error unless the solver is at a step with the field and the norms of the reference.
func (p *among) agrees(s *Solver, res Result, steps int) error {
	if int(res.Steps) != steps {
		return fmt.Errorf("%d steps, not %d", res.Steps, steps)
	}
	r := newOracle(s.problem)
	norms, _ := r.run(scheme.Options{Steps: int64(steps), CheckEvery: int64(steps)})
	if want := norms[0]; res.Norms != want {
		return fmt.Errorf("norms %+v, not %+v", res.Norms, want)
	}
	want := r.values()
	got := make([]float64, len(want))
	if err := s.Gather(context.Background(), got, s.problem.Grid.Box()); err != nil || p.Rank > 0 {
		return err
	}
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			return fmt.Errorf("point %d: %v, not %v", i, got[i], want[i])
		}
	}
	return nil
}

// run solves a problem and compares.
func (p *among) run(of *Problem, path p2p.Path, o scheme.Options, steps int) error {
	s, err := p.solver(of, path)
	if err != nil {
		return err
	}
	res, err := s.Run(context.Background(), o)
	if err == nil {
		err = p.agrees(s, res, steps)
	}
	return errors.Join(err, s.Close())
}

// pathFor returns the path that a scheme takes where the choice is left to it. The fastest of this machine, which is what
// p2p.Auto takes, need not be one that the scheme has.
func pathFor(name scheme.Scheme) p2p.Path {
	return cmp.Or(name.Needs().Path, p2p.Auto)
}

// schemesAmong runs steps of several problems by all schemes that several processes can have.
func schemesAmong(p *among) error {
	t := inProgram{}
	for i, of := range []*Problem{
		problem(t, []int{13, 9, 11}, kernels.Float64, "pppppp"),
		problem(t, []int{7, 15, 10}, kernels.Float32, "dtnndd"),
		problem(t, []int{12, 5, 17}, kernels.Float64, "nnppdt"),
		problem(t, []int{23, 17}, kernels.Float32, "ppdt"),
		inGroupsOf(problem(t, []int{19, 21, 22}, kernels.Float64, "ppdtnn"), 2),
		inGroupsOf(problem(t, []int{19, 21, 22}, kernels.Float64, "ppddnn"), 4),
	} {
		for j, h := range ways() {
			if !h.scheme.Needs().Processes || !testdevices.Turn(i+j, 3, 3) {
				continue
			}
			o := h.options(scheme.Options{Steps: 9, CheckEvery: int64(1 + i)})
			if err := p.run(of, h.path, o, 9); err != nil {
				return fmt.Errorf("problem %d, %v: %w", i, h, err)
			}
		}
	}
	return nil
}

// suiting returns the problem with as many steps between two exchanges as passes of scheme blocked have, which end where others do not.
func suiting(of *Problem, name scheme.Scheme) *Problem {
	if name != scheme.Blocked {
		return of
	}
	return inGroupsOf(of, 3)
}

// toleranceAmong ends runs with the step whose change is small enough.
func toleranceAmong(p *among) error {
	of := problem(inProgram{}, []int{7, 6, 13}, kernels.Float64, "dddddd")
	const aim = 20
	for i, norm := range []scheme.Norm{scheme.MaxNorm, scheme.L2Norm} {
		for j, every := range []int64{1, 7} {
			for k, name := range []scheme.Scheme{scheme.Baseline, scheme.TwoStream, scheme.Assisted, scheme.Fused, scheme.Blocked} {
				if !testdevices.Turn(i+j+k, 2, 3) {
					continue
				}
				o := scheme.Options{Scheme: name, Steps: 60, Norm: norm, CheckEvery: every, Tolerance: toleranceAt(of, aim, norm)}
				if err := p.run(suiting(of, name), pathFor(name), o, int((aim+every-1)/every*every)); err != nil {
					return fmt.Errorf("%s, norm %s every %d: %w", name, norm, every, err)
				}
			}
		}
	}
	return nil
}

// interruptAmong has the context of the last process alone end: all stop at one step.
func interruptAmong(p *among) error {
	for _, name := range []scheme.Scheme{scheme.Baseline, scheme.TwoStream, scheme.Assisted, scheme.Fused, scheme.Blocked} {
		s, err := p.solver(suiting(problem(inProgram{}, []int{7, 6, 13}, kernels.Float64, "ppdddd"), name), pathFor(name))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(context.Background())
		o := scheme.Options{Scheme: name, Steps: 1 << 40, CheckEvery: 1 << 30}
		if p.Rank == p.Size()-1 {
			o.Progress = func(n int64) {
				if n > 50 {
					cancel()
				}
			}
		}
		res, err := s.Run(ctx, o)
		cancel()
		if err != nil || res.Stopped != scheme.StoppedInterrupted || res.Steps <= 50 {
			return fmt.Errorf("%s stopped by %s at %d: %w", name, res.Stopped, res.Steps, err)
		}
		if err := errors.Join(p.agrees(s, res, int(res.Steps)), s.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// intervalsAmong has every process ask for intervals of its own: those of rank 0 count.
func intervalsAmong(p *among) error {
	asked, seen := []int64{3, 5, 1, 0}, []int64{}
	o := scheme.Options{Scheme: scheme.Assisted, Steps: 1000, Interval: func(steps int64, _ time.Duration) int64 {
		seen = append(seen, steps)
		return asked[len(seen)-1] * int64(p.Rank+1)
	}}
	if err := p.run(problem(inProgram{}, []int{7, 6, 11}, kernels.Float64, "ppdddd"), p2p.Auto, o, 10); err != nil {
		return err
	}
	if fmt.Sprint(seen) != "[0 3 5 1]" {
		return fmt.Errorf("intervals of %v steps", seen)
	}
	return nil
}

// refusalsAmong asks for what cannot be, and goes on with what can.
func refusalsAmong(p *among) error {
	of := problem(inProgram{}, []int{7, 6, 11}, kernels.Float64, "ppdddd")
	s, err := p.solver(of, p2p.Auto)
	if err != nil {
		return err
	}
	for _, name := range []scheme.Scheme{scheme.Graph, scheme.Ranks, scheme.Resident} {
		_, err := s.Run(context.Background(), scheme.Options{Scheme: name, Steps: 3})
		if !errors.Is(err, scheme.ErrUnsuited) || !strings.Contains(err.Error(), fmt.Sprintf("and %d processes share the grid", p.Size())) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	_, err = s.Run(context.Background(), scheme.Options{Scheme: scheme.TwoStream, Steps: int64(3 + p.Rank)})
	if err == nil || !strings.Contains(err.Error(), "all give the same options") {
		return fmt.Errorf("different steps: %w", err)
	}
	if err := p.oneErrs(of, &scheme.Plan{Stages: s.Plans()}); err != nil {
		return err
	}
	res, err := s.Run(context.Background(), scheme.Options{Steps: 3})
	if err != nil || res.Scheme != scheme.TwoStream {
		return fmt.Errorf("scheme %s: %w", res.Scheme, err)
	}
	return errors.Join(p.agrees(s, res, 3), s.Close())
}

// oneErrs has rank 1 alone ask for what cannot be.
func (p *among) oneErrs(of *Problem, plan *scheme.Plan) error {
	ctx, wrong := context.Background(), *of
	if p.Rank == 1 {
		wrong.Spacing = nil
	}
	_, err := New(ctx, &wrong, plan, p.session.Compiler)
	_, _, failed := Fastest(ctx, &wrong, plan.Stages[0].Placement, scheme.Search{Links: p.session.Links, Compiler: p.session.Compiler}, scheme.Options{})
	for _, err := range []error{err, failed} {
		if err == nil || !strings.Contains(err.Error(), "with 0 spacings") || p.Rank != 1 && !strings.Contains(err.Error(), p.Name(1)) {
			return fmt.Errorf("rank 1 has no spacings: %w", err)
		}
	}
	return p.Err()
}

// endless runs steps by a scheme without end, and calls at in the last process after 50.
func (p *among) endless(name scheme.Scheme, at func()) error {
	s, err := p.solver(problem(inProgram{}, []int{7, 6, 11}, kernels.Float64, "ppdddd"), pathFor(name))
	if err != nil {
		return err
	}
	o := scheme.Options{Scheme: name, Steps: 1 << 40, CheckEvery: 10}
	if p.Rank == p.Size()-1 {
		o.Progress = func(n int64) {
			if n > 50 {
				at()
			}
		}
	}
	res, err := s.Run(context.Background(), o)
	return errors.Join(fmt.Errorf("stopped at %d", res.Steps), err)
}

// receives sends a signal to this process.
func receives(signal syscall.Signal) {
	_ = syscall.Kill(os.Getpid(), signal)
	time.Sleep(10 * time.Minute) // other threads may stop a little later
}
