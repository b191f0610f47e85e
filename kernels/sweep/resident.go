package sweep

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/step"
	"github.com/halox/halox/streams"
)

// ResidentSteps are time steps of which a launch runs many without the host: one kernel per device, whose thread
// blocks wait for each other, and for those of neighbors, after each stage. All ranks must queue the same steps,
// each by one thread.
type ResidentSteps struct {
	group *stageGroup
	ranks []*ResidentRank
}

// NewResidentSteps prepares the steps of all phases: ranks by phase and stage, on different devices that reach
// each other. limit is how long a device waits for another. With checks, launches may
// compute norms before their last step, see ResidentRank.MaxChecks. When the first step is queued, the ghosts must
// be those of its start.
//
// With courant, launches may choose the lengths of their steps, see ResidentRank.QueuePaced: the first reduction of the
// last stage, which writes nothing, is the largest speed.
//
// group is the exchange interval: phases whose number is a multiple of it store into ghosts of others, and the
// number of phases is a multiple too. With more than one, GPUs run only steps of tiles, and the error is
// ErrImpossible, with the reason, if there are none. Ghosts of neighbors that the first step of a launch reads
// must be complete.
func NewResidentSteps(
	ranks [][][]StageRank, group int, limit time.Duration, checks bool, courant *Courant,
) (r *ResidentSteps, err error) {
	r = &ResidentSteps{}
	defer func() {
		if err != nil {
			r, err = nil, errors.Join(err, r.Close())
		}
	}()
	if r.group, err = newStageGroup(ranks, limit); err != nil {
		return r, err
	}
	if group < 1 || len(ranks)%group > 0 {
		return r, fmt.Errorf("sweep: number of phases must be a multiple of the exchange interval, got %d and %d",
			len(ranks), group)
	}
	if group == 1 {
		if err = r.group.checkSameBoxes(); err != nil { // those of phase 0 are used for all
			return r, err
		}
	}
	if err = r.group.onGPUs(); err != nil {
		return r, err
	}
	if r.ranks, err = r.group.onTiles(group, checks); !errors.Is(err, step.ErrNoTiles) {
		return r, err
	}
	if group > 1 {
		return r, fmt.Errorf("%w with an exchange interval of %d steps: %w", ErrImpossible, group, err)
	}
	if r.group.courant = courant; courant != nil {
		if r.group.pacers, err = newPacers(r.group.devices, &r.group.resources); err != nil {
			return r, err
		}
	}
	slabs := r.group.residentSlabs()
	for rank := range r.group.devices {
		one := &ResidentRank{group: r.group, rank: rank}
		if err = one.onGPU(slabs); err != nil {
			return r, err
		}
		r.ranks = append(r.ranks, one)
	}
	return r, nil
}

// Rank returns the steps on a rank's device.
func (r *ResidentSteps) Rank(rank int) *ResidentRank { return r.ranks[rank] }

// Close frees all resources. No queued work may still use them. Closing twice is allowed.
func (r *ResidentSteps) Close() error {
	if r.group == nil {
		return nil
	}
	return r.group.resources.Close()
}

// ResidentRank is the prepared steps on one device.
type ResidentRank struct {
	group    *stageGroup
	rank     int
	plain    *streams.Kernel
	measured *streams.Kernel // the same with norms and reductions; nil if there are none
	tiles    *step.TileSteps // instead of both, if the arrays stay on the multiprocessors
	totals   [][]*Totals     // by phase and stage; nil if there are none
	made     int64           // number of queued steps
	queued   int64           // number of steps of the last launch of QueuePaced
}

// maxSteps is the largest number of steps of a launch.
const maxSteps = step.MaxTileSteps

// Queue queues up to 2^30 steps after those queued before, the first at a moment, with norms and reductions of the
// last if measured is set and there are any. It returns an error if an earlier wait of the device timed out.
func (r *ResidentRank) Queue(at *streams.Stream, m Moment, steps int64, measured bool) error {
	if steps < 1 || steps > maxSteps {
		return fmt.Errorf("sweep: launch: number of steps must be between 1 and 2^30, got %d", steps)
	}
	if err := r.Err(); err != nil {
		return err
	}
	if r.tiles != nil {
		return r.tiles.Queue(at, m.Step, steps, measured && r.totals[0][0] != nil)
	}
	if !measured || r.measured == nil {
		return r.queue(at, r.plain, m, steps)
	}
	if steps > 1 {
		if err := r.queue(at, r.plain, m, steps-1); err != nil {
			return err
		}
		m.Step += steps - 1
	}
	return r.queue(at, r.measured, m, 1)
}

// QueuePaced is Queue for steps whose lengths the kernel chooses, except the first one, which begins at the time now.
// All steps take norms and reductions. The kernel ends early where Courant.Next returns no positive length,
// unless endless is set: then the next step has the length of the last.
func (r *ResidentRank) QueuePaced(at *streams.Stream, m Moment, now float64, steps int64, endless bool) error {
	if r.group.pacers == nil {
		return errors.New("sweep: steps were prepared without a Courant")
	}
	if err := r.Err(); err != nil {
		return err
	}
	argument := r.measured.Argument()
	numbers := argument[len(argument)-pacingBytes+16:]
	binary.NativeEndian.PutUint64(numbers, math.Float64bits(now))
	binary.NativeEndian.PutUint64(numbers[8:], 0)
	if endless {
		binary.NativeEndian.PutUint64(numbers[8:], 1)
	}
	r.queued = steps
	return r.queue(at, r.measured, m, steps)
}

// Paced must be called once such a launch is done, before another is queued.
func (r *ResidentRank) Paced() Paced {
	w := streams.View[uint64](r.group.pacers[r.rank].report.Bytes())
	p := Paced{int64(w[0]), math.Float64frombits(w[1]), math.Float64frombits(w[2])}
	r.made -= r.queued - p.Steps
	r.queued = p.Steps
	return p
}

// Checks selects the steps before the last at which a launch computes norms, and the tolerance at which it stops.
type Checks = step.Checks

// MaxChecks returns the largest number of steps before the last at which a launch may compute norms, see
// QueueChecked; 0 if unsupported.
func (r *ResidentRank) MaxChecks() int64 {
	if r.tiles == nil || r.totals[0][0] == nil || !r.tiles.CanCheck() {
		return 0
	}
	return step.MaxChecks
}

// QueueChecked is Queue with totals of the last step, and with checks of earlier steps.
func (r *ResidentRank) QueueChecked(at *streams.Stream, m Moment, steps int64, c Checks) error {
	if r.MaxChecks() == 0 {
		return errors.New("sweep: checks are not supported by these steps")
	}
	return r.tiles.QueueChecked(at, m.Step, steps, c)
}

// Checked must be called when such a launch is done, before another is queued: see step.TileSteps.
func (r *ResidentRank) Checked() (norms []rows.Norms, ended int64) { return r.tiles.Checked() }

// queue queues one launch.
func (r *ResidentRank) queue(at *streams.Stream, k *streams.Kernel, m Moment, steps int64) error {
	putSpan(k.Argument(), r.made, steps, m)
	r.made += steps
	return at.Launch(k)
}

// putSpan appends the beginning of struct Steps of point_steps.cu.
func putSpan(argument []byte, first, count int64, m Moment) {
	for i, v := range []uint64{
		uint64(first), uint64(count), uint64(m.Step), math.Float64bits(m.Start), math.Float64bits(m.Length),
	} {
		binary.NativeEndian.PutUint64(argument[8*i:], v)
	}
}

// Totals returns the totals of a stage in a measured step of a phase, or nil if there are none.
func (r *ResidentRank) Totals(phase, stage int) *Totals { return r.totals[phase][stage] }

// Err returns an error if a wait of the device for another, or of its blocks for each other, timed out.
func (r *ResidentRank) Err() error {
	if r.tiles != nil {
		return r.tiles.Err()
	}
	return r.group.flags.Err(r.rank, "a step")
}

// onTiles prepares the steps of all ranks as tiles that stay on the multiprocessors: steps of one stage that apply
// a star from one of two arrays to the other. It returns step.ErrNoTiles if that is not possible.
func (g *stageGroup) onTiles(group int, checks bool) (all []*ResidentRank, err error) {
	tiles, err := g.newTiles(group)
	if err != nil {
		return nil, err
	}
	g.resources.Add(tiles)
	if checks {
		if _, err := tiles.PrepareChecks(); err != nil {
			return nil, err
		}
	}
	for rank, d := range g.devices {
		one := &ResidentRank{group: g, rank: rank}
		var norms [2]streams.Span
		var totals [2]*Totals
		for field := range norms {
			s := g.ranks[field][0][rank].Sweeper
			if totals[field], norms[field], err = g.tileTotals(d, s, tiles.Tiles(rank)); err != nil {
				return nil, err
			}
		}
		for phase := range g.ranks {
			one.totals = append(one.totals, []*Totals{totals[phase%2]})
		}
		if one.tiles, err = tiles.Steps(rank, norms); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// newTiles divides the arrays of all ranks into tiles.
func (g *stageGroup) newTiles(group int) (*step.TileGroup, error) {
	ranks, err := g.tileRanks()
	if err != nil {
		return nil, err
	}
	s := g.ranks[0][0][0].Sweeper
	linear, real, mode := *s.plan.point.linear, s.plan.writes[0].element, s.plan.point.Sums
	return step.NewTileGroup(s.compiler, linear, real, mode, ranks, group, g.limit)
}

// tileTotals allocates the totals of the given number of tiles, and returns the memory for their norms. Without
// norms there are no totals, but the kernel still needs memory for norms.
func (g *stageGroup) tileTotals(d *streams.Device, s *Sweeper, tiles int64) (t *Totals, place streams.Span, err error) {
	if s.plan.totals() > 0 {
		if t, err = g.newTotals(d, s, tiles, tiles); err != nil {
			return nil, place, err
		}
		return t, t.slots(tiles), nil
	}
	m, err := d.Alloc(tiles * int64(normBytes))
	if err != nil {
		return nil, place, err
	}
	g.resources.Add(m)
	return nil, m.All(), nil
}

// tileRanks returns the ranks for step.TileGroup, or step.ErrNoTiles if the steps are not supported. Stores are
// those of phase 0, which ends a group.
func (g *stageGroup) tileRanks() (all []step.TileRank, err error) {
	others := fmt.Errorf(
		"%w: steps must have one stage, a linear stencil from one array to another, on GPUs",
		step.ErrNoTiles)
	if len(g.ranks)%2 > 0 || len(g.ranks[0]) != 1 {
		return nil, others
	}
	for rank, d := range g.devices {
		one := step.TileRank{Device: d}
		for phase, stages := range g.ranks {
			r := stages[0][rank]
			n := r.Sweeper.plan
			if n.point.linear == nil || len(n.point.Reductions) > 0 {
				return nil, others
			}
			if phase < 2 {
				one.Fields[phase] = r.Arrays[1][0]
			}
		}
		for phase, stages := range g.ranks {
			if a := stages[0][rank].Arrays; a[1][0] != one.Fields[phase%2] || a[0][0] != one.Fields[1-phase%2] {
				return nil, others
			}
		}
		for _, s := range g.ranks[0][0][rank].Stores {
			one.Stores = append(one.Stores, s.GhostStore)
		}
		all = append(all, one)
	}
	return all, nil
}

// onGPU prepares the launches of a rank.
func (r *ResidentRank) onGPU(slabs [][][]slab) error {
	g := r.group
	p := residentPlan{threads: g.residentThreads(r.rank, false), paced: g.courant != nil}
	p.blocks = int64(g.devices[r.rank].Cores)
	for stage := range slabs {
		needed := blocksOf(slabs[stage][r.rank])
		if !g.ranks[0][stage][r.rank].Interior.Empty() {
			needed++
		}
		p.blocks = max(p.blocks, needed)
	}
	for stage := range slabs {
		s, err := r.planStage(stage, slabs[stage][r.rank])
		if err != nil {
			return err
		}
		p.stages = append(p.stages, s)
	}
	if err := r.placeTargets(&p); err != nil {
		return err
	}
	measures, err := r.takeTotals(&p)
	if err != nil {
		return err
	}
	var before []int64
	for _, some := range g.blocksBefore(r.rank, slabs) {
		before = append(before, append(some, make([]int64, maxNeighbors-len(some))...)...)
	}
	table, err := streams.Upload(g.devices[r.rank], before)
	if err != nil {
		return err
	}
	g.resources.Add(table)
	p.before = table.All()
	all := before[len(slabs)*maxNeighbors:]
	if !p.paced {
		if r.plain, err = r.kernel(&p, all); err != nil || !measures {
			return err
		}
	}
	p.measured, p.threads = true, g.residentThreads(r.rank, true)
	r.measured, err = r.kernel(&p, all)
	return err
}

// planStage creates the tables of a stage.
func (r *ResidentRank) planStage(stage int, slabs []slab) (s residentStagePlan, err error) {
	g := r.group
	first := g.ranks[0][stage][r.rank]
	s = residentStagePlan{
		plan: first.Sweeper.plan, form: first.Sweeper.form, slabs: slabs, interior: first.Interior, core: first.core,
	}
	s.single = s.form.scarce() // for any shape of sweeps: threadsFor depends on it
	for _, phase := range g.ranks {
		one := phase[stage][r.rank]
		arrays := slices.Concat(one.Arrays...)
		c, strides := classesOf(arrays)
		if len(s.arrays) > 0 && (!slices.Equal(c, s.classes) || !slices.Equal(strides, s.strides)) {
			return s, fmt.Errorf("%w: the arrays of an access must have the same strides in all phases", ErrImpossible)
		}
		shape, err := one.shape(arrays)
		if err != nil {
			return s, err
		}
		s.classes, s.strides = c, strides
		s.single = s.single || shape.Single
		s.to.reflects, s.to.inner = s.to.reflects || one.reflects(), one.storesInside()
		s.to.affine = s.to.affine || one.affine()
		targets, err := newTargets(one, slabs, &g.resources)
		if err != nil {
			return s, err
		}
		s.arrays, s.targets = append(s.arrays, arrays), append(s.targets, targets)
	}
	return s, nil
}

// placeTargets stores the targets of all stages in the argument of launches, if they fit, or else in device
// memory.
func (r *ResidentRank) placeTargets(p *residentPlan) error {
	room := true
	for i := range p.stages {
		s := &p.stages[i]
		for phase := range s.targets {
			here := s.targets[phase].room()
			s.to.room, room = max(s.to.room, here), room && here > 0
		}
	}
	if _, bytes := p.program(); room && bytes <= maxArgument {
		return nil
	}
	for i := range p.stages {
		s := &p.stages[i]
		s.to.room = 0
		for phase := range s.targets {
			if err := s.targets[phase].upload(r.group.devices[r.rank], &r.group.resources); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeTotals creates the totals of all stages. It reports whether there are any.
func (r *ResidentRank) takeTotals(p *residentPlan) (measures bool, err error) {
	g := r.group
	for phase := range g.ranks {
		totals := make([]*Totals, len(p.stages))
		for i := range p.stages {
			s := &p.stages[i]
			if s.plan.totals() == 0 {
				s.totals = append(s.totals, 0)
				continue
			}
			measures = true
			sweeper := g.ranks[phase][i][r.rank].Sweeper
			if totals[i], err = g.newTotals(g.devices[r.rank], sweeper, p.blocks, p.blocks); err != nil {
				return false, err
			}
			s.totals = append(s.totals, totals[i].slot(0).Address())
		}
		r.totals = append(r.totals, totals)
	}
	return measures, nil
}

// kernel prepares one launch; all is the number of blocks of each neighbor that finish stages of a step.
func (r *ResidentRank) kernel(p *residentPlan, all []int64) (*streams.Kernel, error) {
	g := r.group
	for i := range p.stages {
		s := &p.stages[i]
		s.prefetch = prefetchFor(s.plan, p.threads, p.measured)
		s.cut(s.interior, p.threads, p.blocks-blocksOf(s.slabs))
		if terms := s.warpTerms(p.blocks - blocksOf(s.slabs)); p.measured && terms > maxWarpTerms {
			return nil, fmt.Errorf("%w: resident steps of %v points: got %d points per warp, must be at most %d",
				ErrImpossible, s.interior.Size(), terms, maxWarpTerms)
		}
	}
	program, bytes := p.program()
	if bytes > maxArgument {
		return nil, fmt.Errorf("%w: resident steps of %d stages: argument of %d bytes, must be at most %d",
			ErrImpossible, len(p.stages), bytes, maxArgument)
	}
	sweeper := g.ranks[0][0][r.rank].Sweeper
	function, err := sweeper.load(g.devices[r.rank], program, "steps")
	if err != nil {
		return nil, err
	}
	block := blockOf(p.threads)
	spec := streams.KernelSpec{
		Name: "resident", Work: streams.Sweep, Function: function, Grid: [3]int{int(p.blocks), 1, 1},
		Block:   [3]int{block[0], block[1], 1},
		Uses:    []streams.Span{g.flags.Memory(r.rank).All(), g.flags.Report(r.rank).All(), p.before},
		Reaches: g.reaches(r.rank), Argument: r.argument(p, all), Cooperative: true,
	}
	for i, s := range p.stages {
		spec.Uses = append(spec.Uses, s.plan.uses()...)
		for phase, arrays := range s.arrays {
			spec.Uses = append(append(spec.Uses, spansOf(arrays)...), s.targets[phase].uses()...)
			spec.Reaches = append(spec.Reaches, g.ranks[phase][i][r.rank].reaches(r.rank)...)
		}
		for phase := range g.ranks {
			if t := r.totals[phase][i]; t != nil {
				spec.Uses = append(spec.Uses, t.device.All())
			}
		}
	}
	uses, reaches := pacerSpans(g.pacers, r.rank)
	spec.Uses, spec.Reaches = append(spec.Uses, uses...), append(spec.Reaches, reaches...)
	k, err := g.devices[r.rank].NewKernel(spec)
	if err == nil {
		g.resources.Add(k)
	}
	return k, err
}

// argument returns struct Steps of point_steps.cu.
func (r *ResidentRank) argument(p *residentPlan, all []int64) (w words) {
	g := r.group
	w.put(make([]int64, spanBytes/8)...)
	w.put(int64(len(g.flags.Neighbors(r.rank))), g.limit.Nanoseconds())
	w.put(int64(g.flags.Report(r.rank).Address()), int64(g.flags.OwnLine(r.rank, 0).Address()),
		int64(p.before.Address()))
	w.putNeighbors(g, r.rank, all)
	for _, s := range p.stages {
		w.putBoundary(s.slabs, s.core)
	}
	for _, s := range p.stages {
		for _, arrays := range s.arrays {
			w.putArrays(arrays, s.strides)
		}
		for _, t := range s.targets {
			w.putTargets(t, s.to.room, len(s.plan.writes))
		}
		for _, t := range s.totals {
			w.put(int64(t))
		}
		w.put(s.layers, s.tiles[0], s.tiles[1], s.tiles[2])
		w.putPart(s.part, s.strides)
		w = append(w, s.plan.given()...)
	}
	if p.paced {
		w.putPacing(*g.courant, g.pacers, r.rank)
	}
	return w
}
