package scheme

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// randomStep is a step of random stages, over integers, so that sums are exact in any order, and its
// computation on one array with plain loops.
type randomStep struct {
	grid      domain.Grid
	variables []randomVariable
	stages    []randomStage
	group     int // steps between two exchanges
}

type randomVariable struct {
	levels int
	width  domain.Radius
	faces  boundary.Faces
}

// randomStage writes a weighted sum of everything that it reads.
type randomStage struct{ reads, writes []randomAccess }

type randomAccess struct {
	variable, level int
	around          stencil.Footprint
}

func newRandomStep(t testing.TB, r *rand.Rand) *randomStep {
	s := &randomStep{}
	size := []int{5 + r.IntN(5), 5 + r.IntN(4), 4 + r.IntN(6)}[:2+r.IntN(2)]
	periodic := [3]bool{r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0}
	for a := len(size); a < 3; a++ {
		periodic[a] = false
	}
	s.grid = must(domain.NewGrid(size, periodic[:len(size)]))(t)
	for range 1 + r.IntN(3) {
		s.variables = append(s.variables, s.newVariable(r))
	}
	for range 1 + r.IntN(3) {
		s.stages = append(s.stages, s.newStage(r))
	}
	return s
}

func (s *randomStep) newVariable(r *rand.Rand) (v randomVariable) {
	v.levels = 1 + r.IntN(3)
	for a := range s.grid.Dims {
		v.width.Minus[a], v.width.Plus[a] = r.IntN(3), r.IntN(3)
	}
	for i := range v.faces {
		switch c := &v.faces[i]; r.IntN(3) {
		case 0:
			c.Kind, c.Values = boundary.Dirichlet, []float64{float64(r.IntN(100))}
		case 1:
			c.Kind = boundary.Neumann
		default:
			c.Kind = boundary.Outflow
		}
	}
	return v
}

// newStage reads any existing levels, around points if it does not write them.
func (s *randomStep) newStage(r *rand.Rand) (st randomStage) {
	written := map[[2]int]bool{} // variable and slot
	for range 1 + r.IntN(2) {
		v := r.IntN(len(s.variables))
		if key := [2]int{v, 1 % s.variables[v].levels}; !written[key] {
			written[key] = true
			st.writes = append(st.writes, randomAccess{variable: v, level: 1})
		}
	}
	read := map[[2]int]bool{}
	for range 1 + r.IntN(3) {
		v := r.IntN(len(s.variables))
		a := randomAccess{variable: v, level: 1 - r.IntN(s.variables[v].levels+1)}
		if a.level < 1-s.variables[v].levels {
			a.level = 0
		}
		key := s.key(a)
		if read[key] {
			continue
		}
		read[key] = true
		if !written[key] {
			along := r.IntN(2 * s.grid.Dims) // one axis, or all
			for range 1 + r.IntN(4) {
				o := s.offset(r, s.variables[v].width)
				if along < s.grid.Dims {
					one := o[along]
					o = domain.Vec{}
					o[along] = one
				}
				a.around = append(a.around, o)
			}
		}
		st.reads = append(st.reads, a)
	}
	return st
}

// key identifies the field of an access in steps of one phase.
func (s *randomStep) key(a randomAccess) [2]int {
	n := s.variables[a.variable].levels
	return [2]int{a.variable, ((a.level % n) + n) % n}
}

func (s *randomStep) offset(r *rand.Rand, w domain.Radius) (o domain.Vec) {
	for a := range s.grid.Dims {
		o[a] = r.IntN(w.Minus[a]+w.Plus[a]+1) - w.Minus[a]
	}
	return o
}

// widthOf returns the width of the ghosts of a variable: the radius of its reads or, in groups of steps, the
// total radius of all stages times the group.
func (s *randomStep) widthOf(v randomVariable) (w domain.Radius) {
	if s.group < 2 {
		return v.width
	}
	for _, st := range s.stages {
		var reach domain.Radius
		for _, a := range st.reads {
			for _, o := range a.around {
				for axis, d := range o {
					reach.Minus[axis], reach.Plus[axis] = max(reach.Minus[axis], -d), max(reach.Plus[axis], d)
				}
			}
		}
		for axis := range 3 {
			w.Minus[axis] += s.group * reach.Minus[axis]
			w.Plus[axis] += s.group * reach.Plus[axis]
		}
	}
	return w
}

// offsets returns the offsets read around a point.
func (a randomAccess) offsets() []domain.Vec {
	if len(a.around) == 0 {
		return []domain.Vec{{}}
	}
	return a.around
}

// mix is the computation of a stage from the values that it reads, in order.
func mix(sum, v int64) int64 { return sum*31 + v }

// start is the value of a point at a level before the first step.
func start(variable, level int, at domain.Vec) int64 {
	return int64(1000*variable+100*level) + int64(at[0]+7*at[1]+53*at[2])
}

// reference computes the step with plain loops.
type reference struct {
	*randomStep
	values [][]map[domain.Vec]int64 // by variable and slot
}

// newReference computes a number of steps.
func newReference(s *randomStep, steps int64) *reference {
	ref := &reference{randomStep: s}
	for i, v := range s.variables {
		var levels []map[domain.Vec]int64
		for slot := range v.levels {
			values := map[domain.Vec]int64{}
			s.each(func(at domain.Vec) { values[at] = start(i, slot, at) })
			levels = append(levels, values)
		}
		ref.values = append(ref.values, levels)
	}
	for n := range steps {
		ref.step(n + 1)
	}
	return ref
}

func (s *randomStep) each(f func(at domain.Vec)) {
	n := s.grid.Size
	for z := range n[2] {
		for y := range n[1] {
			for x := range n[0] {
				f(domain.Vec{x, y, z})
			}
		}
	}
}

// at returns the value of a point, possibly outside of the grid.
func (r *reference) at(variable, slot int, at domain.Vec) int64 {
	var number *boundary.Condition
	for a, n := range r.grid.Size {
		if at[a] >= 0 && at[a] < n {
			continue
		}
		if r.grid.Periodic[a] {
			at[a] = (at[a] + n) % n
			continue
		}
		face := 2 * a
		if at[a] >= n {
			face++
		}
		switch c := &r.variables[variable].faces[face]; c.Kind {
		case boundary.Dirichlet:
			number = c
		case boundary.Neumann:
			at[a] = max(-1-at[a], min(at[a], 2*n-1-at[a]))
		case boundary.Outflow:
			at[a] = min(max(at[a], 0), n-1)
		}
	}
	if number != nil {
		return int64(number.Values[0])
	}
	return r.values[variable][slot][at]
}

func (r *reference) slot(a randomAccess, n int64) int {
	levels := int64(r.variables[a.variable].levels)
	return int((((n - 1 + int64(a.level)) % levels) + levels) % levels)
}

func (r *reference) step(n int64) {
	for _, st := range r.stages {
		made := map[domain.Vec]int64{}
		r.each(func(at domain.Vec) {
			sum := n
			for _, a := range st.reads {
				for _, o := range a.offsets() {
					sum = mix(sum, r.at(a.variable, r.slot(a, n), at.Add(o)))
				}
			}
			made[at] = sum
		})
		for i, w := range st.writes {
			for at, v := range made {
				r.values[w.variable][r.slot(w, n)][at] = v + int64(i)
			}
		}
	}
}

// make returns the step with its variables on a placement, with stages as user kernels or as point functions.
func (s *randomStep) make(t testing.TB, p *halo.Placement, points bool) (*Step, []*Variable) {
	t.Helper()
	var all []*Variable
	for i, v := range s.variables {
		u, err := NewVariable(p, halo.Spec{
			Name: fmt.Sprint("v", i), Element: halo.Int64, Width: s.widthOf(v), Connectivity: halo.Corners,
		}, v.levels)
		if err != nil {
			t.Skipf("SKIPPED: %v", err) // a subdomain owns too few layers
		}
		t.Cleanup(func() { u.Close() })
		u.Boundary = v.faces
		for slot := range v.levels {
			poison := func(at domain.Vec) int64 {
				if !p.Grid.Box().Contains(at) {
					return -1 << 60
				}
				return start(i, slot, at)
			}
			succeeds(t, halo.FillPoints(u.Level(int64(slot)), poison))
		}
		all = append(all, u)
	}
	step := &Step{Group: s.group}
	for _, st := range s.stages {
		stage := Stage{Name: "random"}
		reads, writes := s.names(st)
		for i, a := range st.reads {
			stage.Reads = append(stage.Reads, all[a.variable].At(a.level, a.around).Named(reads[i]))
		}
		for i, a := range st.writes {
			stage.Writes = append(stage.Writes, all[a.variable].At(a.level, nil).Named(writes[i]))
		}
		if points {
			stage.Point = s.point(st)
		} else {
			stage.Kernels, stage.Changing = st.kernel, true
		}
		step.Stages = append(step.Stages, stage)
	}
	return step, all
}

// names returns the names of a stage's reads and writes; a variable updated in place has one.
func (s *randomStep) names(st randomStage) (reads, writes []string) {
	at := map[[2]int]string{}
	for i, a := range st.reads {
		reads = append(reads, fmt.Sprint("r", i))
		at[s.key(a)] = reads[i]
	}
	for i, a := range st.writes {
		name, ok := at[s.key(a)]
		if !ok {
			name = fmt.Sprint("w", i)
		}
		writes = append(writes, name)
	}
	return reads, writes
}

// point returns the stage as a point function.
func (s *randomStep) point(st randomStage) *sweep.Point {
	reads, writes := s.names(st)
	var b strings.Builder
	b.WriteString("template <typename P> __device__ __forceinline__ void mixed(P &p) {\n\tunsigned long long sum = (unsigned long long)p.step();\n")
	b.WriteString("#ifdef LATE\n\tif (threadIdx.x == 0) for (const i64 begun = nanoseconds(); nanoseconds() - begun < LATE;) __nanosleep(1000);\n#endif\n")
	for i, a := range st.reads {
		for _, o := range a.offsets() {
			fmt.Fprintf(&b, "\tsum = sum * 31 + (unsigned long long)p.at(%s, %d, %d, %d);\n", reads[i], o[0], o[1], o[2])
		}
	}
	for i, name := range writes {
		fmt.Fprintf(&b, "\tp.set(%s, (long long)(sum + %d));\n", name, i)
	}
	b.WriteString("}\n")
	return &sweep.Point{Name: "mixed", Dims: s.grid.Dims, CUDA: b.String(), Go: func(r *sweep.Row) {
		var in, out [][]int64
		for i, a := range st.reads {
			for _, o := range a.offsets() {
				in = append(in, sweep.At[int64](r, reads[i], o[0], o[1], o[2]))
			}
		}
		for _, name := range writes {
			out = append(out, sweep.At[int64](r, name, 0, 0, 0))
		}
		for x := range r.N {
			sum := r.Step()
			for _, v := range in {
				sum = mix(sum, v[x])
			}
			for i, v := range out {
				v[x] = sum + int64(i)
			}
		}
	}}
}

// kernel sweeps a region, late for some regions.
func (st randomStage) kernel(r Region) (Launch, error) {
	var reads, writes []kernels.Values[int64]
	var arrays []kernels.Array
	for _, f := range r.Reads {
		reads, arrays = append(reads, kernels.ValuesOf[int64](f.Parts[r.Rank])), append(arrays, f.Parts[r.Rank])
	}
	for _, f := range r.Writes {
		writes, arrays = append(writes, kernels.ValuesOf[int64](f.Parts[r.Rank])), append(arrays, f.Parts[r.Rank])
	}
	var step int64
	row := func(x0, x1, y, z int) {
		if y == r.Boxes[0].Lo[1] && (step+int64(r.Rank))%3 == 0 {
			time.Sleep(20 * time.Microsecond)
		}
		for x := x0; x < x1; x++ {
			sum := step
			for i, a := range st.reads {
				for _, o := range a.offsets() {
					sum = mix(sum, reads[i].Data[reads[i].Index(x+o[0], y+o[1], z+o[2])])
				}
			}
			for i, w := range writes {
				w.Data[w.Index(x, y, z)] = sum + int64(i)
			}
		}
	}
	steps := make(chan int64, 1<<12) // a launch may be queued long before it runs
	k, err := kernels.Points(r.Device, kernels.PointSpec[struct{ _ int64 }]{Name: r.Name, Arrays: arrays, Boxes: r.Boxes, Row: row})
	if err != nil {
		return nil, err
	}
	begin, err := kernels.Launch(r.Device, kernels.LaunchSpec[struct{ _ int64 }]{Name: "begin", Host: func() { step = <-steps }})
	if err != nil {
		return nil, err
	}
	return func(s *streams.Stream, n int64, _ float64) error {
		steps <- n
		if err := s.Launch(begin); err != nil {
			return err
		}
		return s.Launch(k)
	}, nil
}

// Steps of any stages, over variables of any levels, widths and boundaries, are bitwise identical to plain
// loops on one array, for every scheme, order, path and decomposition: with user kernels on CPU devices, and
// as point functions.
func TestStagesAreBitwiseIdentical(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	t.Run("stages=kernels", func(t *testing.T) { eachRandomStep(t, testdevices.Host(t, 4), false) })
	t.Run("stages=points", func(t *testing.T) {
		testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) { eachRandomStep(t, set, true) })
	})
}

// A stage is followed only by messages along the axes, to the sides and for the components that stages read
// before they write the level again.
func TestMessagesOfNextReads(t *testing.T) {
	set := testdevices.Host(t, 4)
	place := placed(t, set.Devices, []int{8, 8}, [3]bool{true, true}, domain.Vec{2, 2, 1})
	along := func(a, d int) stencil.Footprint {
		var o domain.Vec
		o[a] = d
		return stencil.Footprint{{}, o}
	}
	spec := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 2), Components: 2, SoA: true}
	u, old := newVariable(t, place, spec, 1), newVariable(t, place, spec, 3)
	kernels := func(Region) (Launch, error) { return nil, nil }
	at := func(v *Variable, level int, reads ...stencil.Footprint) Access {
		return v.At(level, nil).ByComponent(reads)
	}
	step := &Step{Stages: []Stage{
		{Name: "rewritten before it is read", Writes: []Access{at(u, 1)}, Kernels: kernels},
		{Name: "along y, in component 1", Reads: []Access{at(old, -1, along(0, 2), nil)}, Writes: []Access{at(u, 1)}, Kernels: kernels},
		{Name: "two steps later along x", Reads: []Access{at(u, 1, nil, along(1, -1))}, Writes: []Access{at(old, 1)}, Kernels: kernels},
		{Name: "read at the point", Reads: []Access{at(old, 1)}, Writes: []Access{at(u, 1)}, Kernels: kernels},
	}}
	want := []string{"", "1 y+ 1", "0 x- 2", ""}
	for i, p := range must(step.Plan(set.Links, p2p.Direct))(t).Stages {
		got := ""
		if p != nil {
			for _, m := range p.Messages {
				if m.From == 0 {
					for _, part := range m.Parts {
						got += fmt.Sprint(part.Component, " ", part.Dir, " ", part.Send.Points()/4)
					}
				}
			}
		}
		if got != want[i] {
			t.Errorf("after the stage %q component, direction and layers are %q, want %q", step.Stages[i].Name, got, want[i])
		}
	}
}

func eachRandomStep(t *testing.T, set *testdevices.Set, points bool) {
	c := cases{steps: 5, cuts: cuts, paths: []p2p.Path{p2p.Staged, p2p.Direct}, points: points, options: []Options{
		{Scheme: Baseline}, {Scheme: TwoStream}, {Scheme: TwoStream, Order: Pairwise}, {Scheme: Assisted}, {Scheme: Assisted, Order: Serial}, {Scheme: Fused},
	}}
	for _, seed := range testdevices.Again(3, testdevices.Some(10, testdevices.Numbers(24))) {
		c.try(t, set, newRandomStep(t, rand.New(rand.NewPCG(uint64(seed), 2))), seed)
	}
}

// cuts are the decompositions that random steps are tested with.
var cuts = []domain.Vec{{1, 1, 1}, {2, 1, 1}, {1, 3, 1}, {2, 2, 1}, {1, 1, 2}}

// cases are all ways in which a random step is tested, and how often each scheme ran it.
type cases struct {
	steps   int64
	cuts    []domain.Vec
	options []Options
	paths   []p2p.Path
	points  bool // as point functions instead of user kernels
	made    map[Scheme]int
}

// try compares the step with plain loops in each way that the devices allow.
func (c *cases) try(t *testing.T, set *testdevices.Set, s *randomStep, seed int) {
	ref, turn := newReference(s, c.steps), seed
	for _, parts := range c.cuts {
		if parts[2] > s.grid.Size[2] || int(parts.Product()) > len(set.Devices) {
			continue
		}
		for _, o := range c.options {
			for _, path := range c.paths {
				if o.Scheme.Needs().CheckPath(o.Scheme, path) != nil || stores(o.Scheme) && !c.points {
					continue
				}
				rare := s.group > 1 && (stores(o.Scheme) || o.Scheme == untuned) // they support few steps
				if turn++; !rare && !testdevices.Turn(turn, 1, 3) {
					continue
				}
				name := fmt.Sprintf("seed=%d/group=%d/stages=%d/scheme=%s/order=%s/path=%s/parts=%v", seed, s.group, len(s.stages), o.Scheme, o.Order, path, parts)
				t.Run(strings.ReplaceAll(name, " ", "x"), func(t *testing.T) {
					s.check(t, set, ref, parts, path, o, c)
					if c.made != nil {
						c.made[o.Scheme]++
					}
				})
			}
		}
	}
}

// check compares two consecutive runs. It skips the test if the scheme does not suit the step.
func (s *randomStep) check(t *testing.T, set *testdevices.Set, ref *reference, parts domain.Vec, path p2p.Path, o Options, c *cases) {
	place := placed(t, set.Devices, s.grid.Size[:s.grid.Dims], s.grid.Periodic, parts)
	err := s.compare(t, place, set.Links, set.Compiler, path, o, ref, []int64{2, c.steps - 2}, c.points)
	if err != nil {
		says := func(text string) bool { return strings.Contains(err.Error(), text) }
		if says("to mirror them") || s.group > 1 && stores(o.Scheme) &&
			(says("the last stage must write") || says("the fields cannot stay on the multiprocessors")) {
			t.Skipf("SKIPPED: %v", err)
		}
		t.Fatal(err)
	}
}

// compare runs the step as often as runs says, and compares all levels with the reference, on rank 0.
func (s *randomStep) compare(
	t testing.TB, place *halo.Placement, links *p2p.Links, compiler *kernels.Compiler, path p2p.Path, o Options, ref *reference, runs []int64, points bool,
) error {
	step, variables := s.make(t, place, points)
	plan, err := step.Plan(links, path)
	if err != nil {
		return err
	}
	x, err := NewRunner(t.Context(), step, plan, compiler)
	if err != nil {
		return err
	}
	t.Cleanup(func() { x.Close() })
	o.Limit = testLimit
	for _, o.Steps = range runs {
		if _, err := x.Run(t.Context(), o); err != nil {
			return err
		}
	}
	if err := x.Close(); err != nil {
		return err
	}
	for i, v := range variables {
		for slot := range v.Levels() {
			if o.Scheme == untuned && v.Levels() > 1 && v.Level(int64(slot)) != v.Level(x.Done()) {
				continue // a pass keeps only the last level
			}
			got := make([]int64, s.grid.Points())
			if err := halo.Gather(t.Context(), got, v.Level(int64(slot)), s.grid.Box(), 0); err != nil {
				return err
			}
			next := 0
			ref.each(func(at domain.Vec) {
				if want := ref.values[i][slot][at]; got[next] != want && err == nil && place.Processes.Rank == 0 {
					err = fmt.Errorf("variable %d, field %d, at %v: %d, not %d", i, slot, at, got[next], want)
				}
				next++
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// The values of a boundary are those of the time of what a stage writes.
func TestTimeOfStages(t *testing.T) {
	set := testdevices.Host(t, 2)
	place := placed(t, set.Devices, []int{8, 6}, [3]bool{}, domain.Vec{1, 2, 1})
	point, accesses, err := sweep.Linear(must(stencil.HeatOf(stencil.Kinds(2)[0], []float64{1, 1}, 1, 0.1))(t), domain.Float64)
	test.Check(t, err)
	spec := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}
	for _, name := range []Scheme{Baseline, TwoStream, Assisted, Fused} {
		u, half := newVariable(t, place, spec, 2), newVariable(t, place, spec, 2)
		var mu sync.Mutex
		times := map[*Variable]map[float64]bool{u: {}, half: {}}
		for v, seen := range times {
			v.Boundary = boundary.All(boundary.Condition{Kind: boundary.Flux, Spacing: 1, Profile: func() boundary.Profile {
				return func(values []float64, _ domain.Vec, at float64) {
					mu.Lock()
					defer mu.Unlock()
					seen[at] = true
					clear(values)
				}
			}})
		}
		stage := func(from, to *Variable, level int, at float64) Stage {
			return Stage{
				Point: &point, Reads: []Access{from.At(level, stencil.Star(2, 1)).Named(accesses[0].Name)},
				Writes: []Access{to.At(1, nil).Named(accesses[1].Name)}, Time: at,
			}
		}
		step := &Step{Stages: []Stage{stage(u, half, 0, 0.25), stage(half, u, 1, 0)}, Length: 2}
		must(runnerFor(t, set, step, name).Run(t.Context(), Options{Scheme: name, Order: LeftRight, Steps: 3}))(t)
		if !maps.Equal(times[half], map[float64]bool{0.5: true, 2.5: true, 4.5: true}) || !maps.Equal(times[u], map[float64]bool{0: true, 2: true, 4: true, 6: true}) {
			t.Errorf("%s: times %v", name, times)
		}
	}
}
