package sweep

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
)

// Tuning is the result of tuning the shape of sweeps of a size.
type Tuning struct {
	Shape   Shape         `json:"shape"`      // the fastest shape
	Sweep   time.Duration `json:"sweep_ns"`   // time of a sweep in this shape, of a part of a very large box
	Default time.Duration `json:"default_ns"` // time of a sweep in the default shape
	Tried   int           `json:"tried"`      // number of shapes timed within the budget
	Took    time.Duration `json:"-"`          // time of this call; close to 0 if the result was cached
}

// Tune measures on the GPU in which shape sweeps of large boxes are fastest, by sweeps of the box or of its first
// layers, which overwrite the destination. The sweeper uses that shape for all launches prepared afterwards. Tune
// takes at most the budget and one additional sweep, once the kernels are compiled. The result is kept in the
// cache, for GPUs of this name, point functions of this source and sizes that are equal under flags.Alike, and is
// not measured again. A shape does not change the written bits. On a CPU device, and for boxes too thin to have a
// shape, there is nothing to tune, and in a dry run nothing is measured.
func (s *Sweeper) Tune(arrays Arrays, box domain.Box, budget time.Duration) (t Tuning, err error) {
	begin := time.Now()
	t.Shape = s.shape
	if err := s.check(arrays, []domain.Box{box}); err != nil || s.device.GoKernels {
		return t, err
	}
	all := slices.Concat(arrays...)
	k := s.plan.newLaunchPlan(s.form, all, []domain.Box{box}, s.shape)
	if k.isSmall() {
		return t, nil
	}
	key := s.tuningKey(k.classes, box)
	valid := func(t Tuning) bool { return t.isOf(s.form.shapes) }
	found, known, err := kernels.Remember(s.compiler, "shape", key, valid, func() (Tuning, error) {
		if s.device.IsDry() {
			return Tuning{}, errUnknown
		}
		return s.tryShapes(arrays, s.plan.timedBox(box), budget)
	})
	if s.untuned = errors.Is(err, errUnknown); s.untuned {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	if t = found; known {
		t.Tried = 0
	}
	s.shape, t.Took = t.Shape, time.Since(begin)
	return t, nil
}

var errUnknown = errors.New("sweep: not tuned yet")

// isOf reports whether the tuning may be a measurement of these shapes.
func (t Tuning) isOf(shapes []Shape) bool {
	return slices.Contains(shapes, t.Shape) && 0 < t.Sweep && t.Sweep <= t.Default
}

// tuningKey identifies everything that determines the fastest shape, which excludes the weights of a linear
// stencil.
func (s *Sweeper) tuningKey(c classes, box domain.Box) string {
	n := *s.plan
	if n.point.linear != nil {
		shape := n.point.linear.Shape()
		n.point.linear, n.point.CUDA = &shape, linearSource(shape, n.writes[0].element)
	}
	sum := sha256.Sum256([]byte(n.source(c, s.form)))
	return fmt.Sprintf("%s %s, point function %s, source %x, size %v", s.device.Name, s.device.Arch, n.point.Name,
		sum[:8], flags.Alike(box.Size()))
}

// timedBox returns the part of a box that is swept to time shapes: whole layers, few enough that the budget
// suffices for all shapes. The number of layers in the caches is then the same as for the box.
func (n *plan) timedBox(box domain.Box) domain.Box {
	const points, layers = 1 << 26, 64
	last, size := n.point.Dims-1, box.Size()
	each := box.Points() / int64(size[last])
	box.Hi[last] = box.Lo[last] + int(min(int64(size[last]), max(layers, points/each)))
	return box
}

// worthwhile is the relative time below which a shape is preferred to the default: smaller differences may be
// noise.
const worthwhile = 0.995

// tryShapes times the shapes until the budget is spent.
func (s *Sweeper) tryShapes(arrays Arrays, box domain.Box, budget time.Duration) (t Tuning, err error) {
	w, err := flags.NewTimer(s.device, 30*time.Second)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	p := s.plan.newLaunchPlan(s.form, slices.Concat(arrays...), []domain.Box{box}, s.shape)
	if _, err := s.functions(p.classes); err != nil { // compile time is not part of the budget
		return t, err
	}
	end := time.Now().Add(budget)
	for i, shape := range s.form.shapes {
		if i > 0 && time.Now().After(end) {
			break
		}
		took, err := s.timeShape(w, arrays, box, shape, end)
		if err != nil {
			return t, err
		}
		t.Tried++
		if i == 0 {
			t.Shape, t.Sweep, t.Default = shape, took, took
		}
		if took < t.Sweep && float64(took) < worthwhile*float64(t.Default) {
			t.Shape, t.Sweep = shape, took
		}
	}
	return t, nil
}

// timeShape returns the time of a sweep in a shape, see flags.Timer.Least.
func (s *Sweeper) timeShape(
	w *flags.Timer, arrays Arrays, box domain.Box, shape Shape, end time.Time,
) (took time.Duration, err error) {
	p := s.plan.newLaunchPlan(s.form, slices.Concat(arrays...), []domain.Box{box}, shape)
	k, err := s.launchPlan("sweep to tune", &p, "")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	return w.Least(k.Kernel, end)
}
