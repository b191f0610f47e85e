package scheme_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

func TestMain(m *testing.M) {
	testmpi.Main(m, map[string]func() error{
		"stages":     amongProcesses(stagesAmong),
		"reductions": amongProcesses(reductionsAmong),
	})
}

// Steps of any stages over several processes give the values of plain loops on one array, and reductions the same numbers.
func TestStagesOfProcesses(t *testing.T) {
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for program, ranks := range map[string][]int{"stages": {3, 2}, "reductions": {2}} {
			for _, n := range testdevices.Few(1, ranks) {
				t.Run(fmt.Sprintf("%s/%d", program, n), func(t *testing.T) {
					r := in.Run(t, testmpi.Job{Program: program, Ranks: n, Limit: 200 * time.Second})
					r.Succeeds(t)
					if done := strings.Count(r.Out, fmt.Sprintf(" of %d done", n)); done != n {
						t.Errorf("%d ranks are done:\n%s", done, r.Out)
					}
				})
			}
		}
	})
}

// amongProcesses runs a program as one of several processes, with two host devices each.
func amongProcesses(program func(*halo.Session, *mpi.Processes) error) func() error {
	return func() error {
		p, err := mpi.Join(context.Background(), mpi.Options{Limit: 20 * time.Second, Piece: 200})
		if err != nil || p == nil {
			return fmt.Errorf("alone: %w", err)
		}
		s, err := halo.Open(context.Background(), halo.Devices{Backend: streams.Host, Count: 2, Processes: p})
		if err == nil {
			err = program(s, p)
		}
		if err == nil {
			err = errors.Join(s.Close(), p.Close())
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "<rank %d: %v>\n", p.Rank, err)
			err = errors.Join(p.Fail(err), p.Close())
			p.Abort(3)
			return err
		}
		fmt.Printf("rank %d of %d done\n", p.Rank, p.Size())
		return nil
	}
}

// inProgram stands for the test of helpers in a program.
type inProgram struct {
	testing.TB
	closers []func()
}

// skipped is the panic of a helper that finds nothing to test.
type skipped struct{}

func (*inProgram) Helper()              {}
func (*inProgram) Fatal(args ...any)    { panic(fmt.Sprint(args...)) }
func (*inProgram) Skipf(string, ...any) { panic(skipped{}) }
func (t *inProgram) Cleanup(f func())   { t.closers = append(t.closers, f) }

// run carries out a case. ran is false where it was skipped.
func (t *inProgram) run(one func() error) (ran bool, err error) {
	defer func() {
		for _, f := range slices.Backward(t.closers) {
			f()
		}
		if p := recover(); p != nil && p != any(skipped{}) {
			panic(p)
		}
	}()
	if err = one(); err != nil && strings.Contains(err.Error(), "would mirror") {
		return false, nil
	}
	return true, err
}

// placed gives subdomains to processes and devices in turns.
func placed(s *halo.Session, p *mpi.Processes, grid domain.Grid, parts domain.Vec) (*halo.Placement, error) {
	cut, err := domain.Decompose(grid, parts)
	if err != nil {
		return nil, err
	}
	owners, devices := make([]int, len(cut.Subdomains)), make([]*streams.Device, len(cut.Subdomains))
	for rank := range owners {
		if owners[rank] = rank % p.Size(); owners[rank] == p.Rank {
			devices[rank] = s.Devices[rank/p.Size()%len(s.Devices)]
		}
	}
	return halo.PlaceAmong(p, cut, owners, devices)
}

// stagesAmong carries out random steps.
func stagesAmong(s *halo.Session, p *mpi.Processes) error {
	ran := 0
	for seed := range uint64(12) {
		for _, parts := range []domain.Vec{{1, 3, 1}, {2, 2, 1}, {3, 1, 1}} {
			for _, o := range []scheme.Options{{Scheme: scheme.Baseline}, {Scheme: scheme.TwoStream, Order: scheme.Pairwise}, {Scheme: scheme.Assisted}} {
				t := &inProgram{}
				once, err := t.run(func() error { return stepsAmong(t, s, p, seed, parts, o) })
				if err != nil {
					return fmt.Errorf("seed %d, parts %v, scheme %s: %w", seed, parts, o.Scheme, err)
				}
				if once {
					ran++
				}
			}
		}
	}
	if ran < 50 {
		return fmt.Errorf("only %d runs were possible", ran)
	}
	return nil
}

// stepsAmong carries out one random step, and compares on rank 0.
func stepsAmong(t *inProgram, s *halo.Session, p *mpi.Processes, seed uint64, parts domain.Vec, o scheme.Options) error {
	random, ctx := newRandomStep(t, rand.New(rand.NewPCG(seed, 2))), context.Background()
	place, err := placed(s, p, random.grid, parts)
	if err != nil {
		return err
	}
	step, variables := random.make(t, place, false)
	plan, err := step.Plan(s.Links, p2p.Staged)
	if err != nil {
		return err
	}
	x, err := scheme.NewRunner(ctx, step, plan, s.Compiler)
	if err != nil {
		return err
	}
	t.Cleanup(func() { x.Close() })
	for _, o.Steps = range []int64{2, 3} {
		if _, err := x.Run(ctx, o); err != nil {
			return err
		}
	}
	ref := newReference(random)
	for n := range int64(5) {
		ref.step(n + 1)
	}
	for i, v := range variables {
		for slot := range v.Levels() {
			if err := ref.compare(v, i, slot, p.Rank == 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare brings a field to rank 0, which compares it.
func (r *reference) compare(v *scheme.Variable, variable, slot int, here bool) error {
	got := make([]int64, r.grid.Points())
	if err := halo.Gather(context.Background(), got, v.Level(int64(slot)), r.grid.Box(), 0); err != nil || !here {
		return err
	}
	var wrong error
	r.each(func(at domain.Vec) {
		place := at[0] + r.grid.Size[0]*(at[1]+r.grid.Size[1]*at[2])
		if want := r.values[variable][slot][at]; got[place] != want && wrong == nil {
			wrong = fmt.Errorf("variable %d, field %d, at %v: %d, not %d", variable, slot, at, got[place], want)
		}
	})
	return wrong
}

// reductionsAmong takes those of a point function, which counts steps, through scheme.New.
func reductionsAmong(s *halo.Session, p *mpi.Processes) error {
	ctx, spec := context.Background(), halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}
	place, err := s.Cut(ctx, halo.Cutting{Size: []int{12, 10, 9}, Fields: []halo.Spec{spec}})
	if err != nil {
		return err
	}
	u, err := scheme.NewVariable(place, spec, 2)
	if err != nil {
		return err
	}
	if err := errors.Join(halo.FillPoints(u.Level(0), func(domain.Vec) float64 { return 0 }), u.SetAll()); err != nil {
		return err
	}
	step := &scheme.Step{Stages: []scheme.Stage{{
		Name: "count", Point: scheme.CountingPoint(),
		Reads: []scheme.Access{u.At(0, stencil.Star(3, 1)).Named("u")}, Writes: []scheme.Access{u.At(1, nil).Named("next")},
	}}}
	x, err := scheme.New(ctx, s, step, scheme.Options{CheckEvery: 2, History: true})
	if err != nil {
		return err
	}
	res, err := x.Steps(ctx, 7)
	if err != nil {
		return err
	}
	for _, check := range append(res.History, res.Check) {
		if want := []float64{float64(check.Step) * 12 * 10 * 9, float64(check.Step)}; !slices.Equal(check.Reduced, want) {
			return fmt.Errorf("after step %d: %v, not %v", check.Step, check.Reduced, want)
		}
	}
	return x.Close()
}
