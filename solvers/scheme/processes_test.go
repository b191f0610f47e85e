package scheme

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

func TestMain(m *testing.M) {
	testmpi.Main(m, map[string]func() error{
		"stages":     inProcesses(stagesAmong),
		"reductions": inProcesses(reductionsAmong),
		"overlap":    inProcesses(overlapAmong),
		"auto":       launched(chooseAmong),
		"one errs":   inProcesses(oneErrs),
		"one fails":  inProcesses(oneFails),
	})
}

// Steps of any stages over several processes equal plain loops on one array, and so do reductions.
func TestStagesOfProcesses(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for program, ranks := range map[string][]int{"stages": {3, 2}, "reductions": {2}, "overlap": {2, 3}, "auto": {2, 3}, "one errs": {3}, "one fails": {2}} {
			for _, n := range testdevices.Some(1, ranks) {
				t.Run(fmt.Sprintf("%s/%d", program, n), func(t *testing.T) {
					job := testmpi.Job{Program: program, Ranks: n}
					if program != "one fails" {
						in.Done(t, job)
						return
					}
					// After a failure no process calls MPI_Finalize, which some launchers report as an error
					// of the program.
					if r := in.Run(t, job); r.Late || len(r.Left) > 0 || strings.Count(r.Out, " of 2 done") != n {
						t.Errorf("late %t, left %v:\n%s", r.Late, r.Left, r.Out)
					}
				})
			}
		}
	})
}

// inProcesses runs a program as one of several processes, with two CPU devices each.
func inProcesses(program func(*halo.Session, *mpi.Processes) error) func() error {
	return launched(func(p *mpi.Processes) error {
		s, err := halo.Open(context.Background(), halo.Devices{Backend: streams.Host, Count: 2, Processes: p})
		if err == nil {
			err = program(s, p)
		}
		if err != nil {
			return err
		}
		return s.Close()
	})
}

func launched(program func(*mpi.Processes) error) func() error {
	return testmpi.AsOne(mpi.Options{Limit: testLimit, Piece: 200}, program)
}

// inProgram replaces the test of helpers in a program.
type inProgram struct {
	testing.TB
	closers []func()
}

// skipped is the panic of a helper that has nothing to test.
type skipped struct{}

func (*inProgram) Helper()              {}
func (*inProgram) Fatal(args ...any)    { panic(fmt.Sprint(args...)) }
func (*inProgram) Skipf(string, ...any) { panic(skipped{}) }
func (*inProgram) Skip(...any)          { panic(skipped{}) }
func (*inProgram) Error(args ...any)    { panic(fmt.Sprint(args...)) }
func (*inProgram) Logf(string, ...any)  {}
func (*inProgram) Errorf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
func (*inProgram) Name() string { return "a program" }
func (*inProgram) Context() context.Context {
	return context.Background()
}
func (t *inProgram) Cleanup(f func()) { t.closers = append(t.closers, f) }
func (t *inProgram) TempDir() string {
	dir := must(os.MkdirTemp("", "program"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// run executes a case. ran is false if it was skipped.
func (t *inProgram) run(one func() error) (ran bool, err error) {
	defer func() {
		for _, f := range slices.Backward(t.closers) {
			f()
		}
		if p := recover(); p != nil && p != any(skipped{}) {
			panic(p)
		}
	}()
	if err = one(); err != nil && (strings.Contains(err.Error(), "to mirror them") || errors.Is(err, ErrUnsuited)) {
		return false, nil
	}
	return true, err
}

// placedAmong assigns subdomains to processes in an order drawn from a seed, and to their devices cyclically.
func placedAmong(s *halo.Session, p *mpi.Processes, grid domain.Grid, parts domain.Vec, seed uint64) (*halo.Placement, error) {
	cut, err := domain.Decompose(grid, parts)
	if err != nil {
		return nil, err
	}
	owners, devices, mine := make([]int, len(cut.Subdomains)), make([]*streams.Device, len(cut.Subdomains)), 0
	for rank := range owners {
		owners[rank] = rank % p.Size()
	}
	rand.New(rand.NewPCG(seed, 6)).Shuffle(len(owners), func(i, j int) { owners[i], owners[j] = owners[j], owners[i] })
	for rank, owner := range owners {
		if owner == p.Rank {
			devices[rank] = s.Devices[mine%len(s.Devices)]
			mine++
		}
	}
	return halo.PlaceShared(p, cut, owners, devices)
}

// stagesAmong executes random steps, some of them in groups.
func stagesAmong(s *halo.Session, p *mpi.Processes) error {
	ran := map[Scheme]int{}
	for seed := range uint64(12) {
		for i, parts := range []domain.Vec{{1, 3, 1}, {2, 2, 1}, {3, 1, 1}} {
			for j, o := range []Options{{Scheme: Baseline}, {Scheme: TwoStream, Order: Pairwise}, {Scheme: Assisted}, {Scheme: Assisted, Order: Serial}, {Scheme: Fused}} {
				if !testdevices.Turn(int(seed)+i+j, 4, 4) {
					continue
				}
				t := &inProgram{}
				once, err := t.run(func() error { return stepsAmong(t, s, p, seed, parts, o) })
				if err != nil {
					return fmt.Errorf("seed %d, parts %v, scheme %s: %w", seed, parts, o.Scheme, err)
				}
				if once {
					ran[o.Scheme]++
				}
			}
		}
	}
	least := 3
	if testdevices.Long() {
		least = 15
	}
	for name, runs := range ran {
		if runs < least {
			return fmt.Errorf("only %d runs of %s", runs, name)
		}
	}
	return nil
}

// stepsAmong executes one random step, and compares on rank 0.
func stepsAmong(t *inProgram, s *halo.Session, p *mpi.Processes, seed uint64, parts domain.Vec, o Options) error {
	random := newRandomStep(t, rand.New(rand.NewPCG(seed, 2)))
	if seed%3 == 2 {
		random.group = 2
		for a := range random.grid.Dims {
			random.grid.Size[a] += 7
		}
	}
	return random.among(t, s, p, seed, parts, o, []int64{2, 3})
}

// overlapAmong executes steps of scheme blocked that overlap exchanges with the interior: decomposed along y,
// with constant boundary values.
func overlapAmong(s *halo.Session, p *mpi.Processes) error {
	beside := 0
	for seed := range uint64(4) {
		t := &inProgram{}
		_, err := t.run(func() error {
			counted := addUntuned(t)
			defer func() { beside += counted.overlapped }()
			r := rand.New(rand.NewPCG(seed, 5))
			random := newBlockedStep(t, r, false)
			random.grid.Periodic = [3]bool{false, seed%2 == 0, false}
			random.grid.Size[1] = 24*random.group + r.IntN(5) // 3 subdomains of at least 4 times the radius of a group, which is 2 per step
			for i := range random.variables {
				for face := range random.variables[i].faces {
					random.variables[i].faces[face] = boundary.Condition{Kind: boundary.Dirichlet, Values: []float64{float64(r.IntN(100))}}
				}
			}
			return random.among(t, s, p, seed, domain.Vec{1, 3, 1}, Options{Scheme: untuned}, []int64{3, 8})
		})
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	if beside == 0 {
		return errors.New("no subdomain has overlapped an exchange with its interior")
	}
	return nil
}

// among executes the step over processes, in runs of the given numbers of steps, and compares.
func (random *randomStep) among(t *inProgram, s *halo.Session, p *mpi.Processes, seed uint64, parts domain.Vec, o Options, runs []int64) error {
	place, err := placedAmong(s, p, random.grid, parts, seed)
	if err != nil {
		return err
	}
	steps, path := int64(0), p2p.Staged
	for _, n := range runs {
		steps += n
	}
	if o.Scheme == Fused {
		path = p2p.Direct
	}
	return random.compare(t, place, s.Links, s.Compiler, path, o, newReference(random, steps), runs, o.Scheme == Fused || o.Scheme == untuned)
}

// reductionsAmong takes the reductions of a point function that counts steps, through New.
func reductionsAmong(s *halo.Session, p *mpi.Processes) error {
	t := &inProgram{}
	step, u := counting(t, s, boundary.Faces{})
	x := must(New(t.Context(), s, step, Options{CheckEvery: 2, History: true}))(t)
	counts(t, must(x.Steps(t.Context(), 7))(t), Options{Steps: 7, CheckEvery: 2}, 12*10*9)
	succeeds(t, x.Close())
	for _, name := range []Scheme{Baseline, TwoStream, Assisted, Fused} { // lengths depend on the points of all
		fillLevels(t, u, 1)
		succeeds(t, u.SetNewest(0))
		if p.Rank == 0 {
			fillLevels(t, u, 3)
		}
		paced := *step
		paced.Stages = []Stage{reducedAlone(u)[0], {Point: &peak, Reads: []Access{u.At(1, nil).Named("next")}}}
		paced.Pace = func(now float64, reduced []float64) (float64, error) { return min(1/reduced[0], 0.7-now), nil }
		x = must(New(t.Context(), s, &paced, Options{Scheme: name}))(t)
		third := 1.0 / 3
		for _, want := range []float64{third + 0.25, 0.7} {
			if r := must(x.Steps(t.Context(), 2))(t); r.Time != want || r.Reduced[0] != float64(3+r.Steps) && want < 0.7 {
				return fmt.Errorf("%s: %d steps to time %v, want %v; reduced %v", name, r.Steps, r.Time, want, r.Reduced)
			}
		}
		succeeds(t, x.Close())
	}
	// a run that diverges only on rank 0 ends on all
	step.Measured = []*Variable{u}
	if p.Rank == 0 {
		fillLevels(t, u, math.NaN())
	}
	for _, name := range []Scheme{TwoStream, Blocked, Fused} {
		x = must(New(t.Context(), s, step, Options{Scheme: name, lookTime: 1}))(t)
		if r := must(x.Steps(t.Context(), 1<<40))(t); r.Stopped != StoppedDiverged || r.Steps < lookSteps {
			return fmt.Errorf("%s: %d steps, stopped: %s", name, r.Steps, r.Stopped)
		}
		succeeds(t, x.Close())
	}
	return nil
}

// chooseAmong makes processes choose a scheme on devices where schemes can be tried: the same on all, among
// those that support several processes, cached by rank 0 for all. If the context of one ends, all end.
func chooseAmong(p *mpi.Processes) error {
	t := &inProgram{}
	os.Setenv("HALOX_CACHE", t.TempDir()) // separate: only the cache of rank 0 counts
	_, err := t.run(func() error { return choose(p, testdevices.CPU(t, 1)) })
	return err
}

func choose(p *mpi.Processes, set *testdevices.Set) error {
	t := &inProgram{}
	grid := must(domain.NewGrid([]int{8, 8, 6 * p.Size()}, nil))(t)
	cut := must(domain.Decompose(grid, domain.Vec{1, 1, p.Size()}))(t)
	devices := make([]*streams.Device, p.Size())
	devices[p.Rank] = set.Devices[0]
	place := must(halo.PlaceShared(p, cut, testdevices.Numbers(p.Size()), devices))(t)
	u := must(NewVariable(place, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}, 2))(t)
	defer u.Close()
	step := countingOn(u)
	search := Search{Links: set.Links, Compiler: set.Compiler, clock: noTime}
	ended, end := context.WithCancel(context.Background())
	if p.Rank == 1 {
		end()
	}
	defer end()
	if _, _, err := Fastest(ended, step, search, Options{}); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("after an end of rank 1: %w", err)
	}
	first, known, err := Fastest(context.Background(), step, search, Options{})
	if err != nil || known || len(first) == 0 {
		return fmt.Errorf("trials %v, known %t: %w", first, known, err)
	}
	for _, trial := range first {
		if !trial.Scheme.Needs().Processes {
			return fmt.Errorf("tried %v", trial)
		}
	}
	if !slices.ContainsFunc(first, func(t Trial) bool { return t.Scheme == Fused && t.Path == p2p.Direct }) {
		return fmt.Errorf("tried %v, and not fused", first)
	}
	all, err := mpi.Gather(context.Background(), p, "trials", fmt.Sprint(first))
	if err != nil {
		return err
	}
	for rank, text := range all {
		if text != all[0] {
			return fmt.Errorf("rank %d has %s, rank 0 %s", rank, text, all[0])
		}
	}
	again, known, err := Fastest(context.Background(), step, search, Options{})
	if err != nil || !known || !slices.Equal(first, again) {
		return fmt.Errorf("trials %v, known %t; cached are %v: %w", again, known, first, err)
	}
	fmt.Println("chosen:", first)
	return nil
}
