package sweep

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// maxArgument is how large the argument of a launch may be.
const maxArgument = 4096

// ErrImpossible says that stages and their arrays are right, and no kernel of whole stages can make them.
var ErrImpossible = errors.New("sweep: no kernel can make these stages")

// shape returns in which shape the interior of the arrays is swept by kernels of whole stages.
func (r StageRank) shape(arrays []kernels.Array) (Shape, error) {
	s := r.Sweeper
	shape := s.shape
	if !r.Interior.Empty() && !s.plan.grouped(arrays, r.Interior) {
		shape = s.form.single(shape)
	}
	if shape.Single && s.form.layered {
		return shape, fmt.Errorf("%w: a stage of arrays that are not aligned", ErrImpossible)
	}
	return shape, nil
}

// load returns a kernel of whole stages. Where they depend on the shape of sweeps, and a dry run does not know it,
// they are not compiled: another shape may be found.
func (s *Sweeper) load(d *streams.Device, p kernels.Program, kernel string) (function, error) {
	if s.untuned && s.form.way != streaming {
		return streams.DryFunction(), nil
	}
	found, err := s.compiler.LoadSteps(d, p, kernel)
	if err != nil {
		return nil, s.plan.explain(err)
	}
	return found[0], nil
}

// fusedShape returns the shape of a fused stage.
func (r StageRank) fusedShape(arrays []kernels.Array) (Shape, error) {
	shape, err := r.shape(arrays)
	bounds, _ := r.Sweeper.form.boundsOfStages(shape.Single)
	return shape.within(bounds), err
}

// share gives slabs their blocks of a fused stage.
func (r StageRank) share(slabs []slab) error {
	shape, err := r.fusedShape(slices.Concat(r.Arrays...))
	if err == nil {
		shareAll(slabs, int64(shape.Block[0]*shape.Block[1]), int64(r.Sweeper.device.Cores))
	}
	return err
}

// swept returns the rank with sweeps in another shape.
func (r StageRank) swept(shape Shape) StageRank {
	s := *r.Sweeper
	s.shape, r.Sweeper = shape, &s
	return r
}

// boundsOfStages returns the launch bounds of a fused stage, without and with what it measures: those of
// sweeps, but for the threads of a block, unless fused stages have their own.
func (f form) boundsOfStages(single bool) (plain, measured launchBounds) {
	if f.fused != (fusedBounds{}) && !single {
		return f.fused.bounds, f.fused.measured
	}
	plain, measured = f.boundsOf(single)
	return plain, launchBounds{plain.threads, max(1, measured.threads*measured.blocks/plain.threads)}
}

// storing says what stage.cuh has to store: for how many targets the argument of a launch has room, see
// targets, whether points are reflected on their way, and whether some are of the interior.
type storing struct {
	room            int
	reflects, inner bool
}

// storing returns what a rank has to store.
func (r StageRank) storing(room int) storing { return storing{room, r.reflects(), r.storesInside()} }

// stageOptions are those of stage.cuh and swept.cuh. Threads that stream are told at a launch how many
// layers they take.
func stageOptions(f form, s Shape, prefetch, phases int, to storing) string {
	layers := s.Layers
	if f.way == streaming {
		layers = 1
	}
	text := fmt.Sprintf("enum { STAGE_SINGLE = %t, STAGE_LAYERS = %d, STAGE_MEASURED_LAYERS = %d, STAGE_PREFETCH = %d, PHASES = %d };\n",
		s.Single, layers, f.measuredLayers(layers), prefetch, phases)
	text += fmt.Sprintf("#define TARGETS %d\n", to.room)
	if to.reflects {
		text += "#define REFLECTS\n"
	}
	if to.inner {
		text += "#define INNER_STORES\n"
	}
	return text
}
