package kernels

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/streams"
)

// Tuning is what a sweeper knows about the fastest shape for sweeps of a size.
type Tuning struct {
	Key     string        `json:"key"` // of which GPU, stencil, type and size
	Shape   Shape         `json:"shape"`
	Sweep   time.Duration `json:"sweep_ns"`   // the time of a sweep in this shape
	Default time.Duration `json:"default_ns"` // and in the one that halox takes untried
	Tried   int           `json:"tried"`      // shapes that were timed within the budget
	Took    time.Duration `json:"-"`          // the time of this call; next to nothing where it was known before
}

// tuner keeps what was learnt, in memory and in a folder.
type tuner struct {
	mu    sync.Mutex
	known map[string]Tuning
}

// Tune finds out on the GPU in which shape sweeps of large boxes are fastest there, by
// sweeps of the box from src to dst, and makes the sweeper use it for all launches that it
// makes ready from then on. It takes no longer than the budget and one sweep more. What it
// found is kept in the cache, for GPUs of this name, stencils that read the same points,
// and sizes within the same powers of two, and is not measured again. A shape changes no
// bit of any sweep. On a host device, and for boxes too thin to have a shape, there is
// nothing to tune.
func (s *Sweeper) Tune(dst, src Array, box domain.Box, budget time.Duration) (Tuning, error) {
	begin := time.Now()
	t := Tuning{Shape: s.shape}
	if err := s.check(dst, src, []domain.Box{box}); err != nil {
		return t, err
	}
	if k := s.launchOf(dst, src, []domain.Box{box}, s.shape); s.device.Backend == streams.Host || k.thinKernel() {
		return t, nil
	}
	s.tuner.mu.Lock()
	defer s.tuner.mu.Unlock()
	key, err := s.tuningKey(box)
	if err != nil {
		return t, err
	}
	t, known := s.tuner.known[key]
	if !known {
		t, known = readTuning(s.tuningEntry(key), key, s.form.shapes)
	}
	if !known {
		if t, err = s.tryShapes(dst, src, box, budget); err != nil {
			return t, err
		}
		t.Key = key
		writeTuning(s.tuningEntry(key), t)
	}
	s.tuner.known[key], s.shape = t, t.Shape
	t.Took = time.Since(begin)
	if known {
		t.Tried = 0
	}
	return t, nil
}

// thinKernel reports whether the launch is one for thin boxes, which has no shape.
func (k *sweepLaunch) thinKernel() bool {
	return k.kernel == "sweep_flat" || k.kernel == "sweep_points"
}

// tuningKey names all that decides which shape is the fastest, and the kernels, so that
// what was learnt of others is not used.
func (s *Sweeper) tuningKey(box domain.Box) (string, error) {
	source, err := sweepProgram(s.stencil.Shape(), s.real).source()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Append(nil, source))
	var class [3]int
	for a, n := range box.Size() {
		class[a] = bits.Len(uint(n))
	}
	return fmt.Sprintf("%s %s, %d points in %d dimensions, %s, kernels %x, up to 2^%v", s.device.Name, s.device.Arch,
		s.stencil.Points(), s.stencil.Dims, s.real, sum[:8], class), nil
}

func (s *Sweeper) tuningEntry(key string) cache.Entry {
	sum := sha256.Sum256([]byte(key))
	return s.cache.Entry(fmt.Sprintf("sweep-%x.json", sum[:8]))
}

// readTuning returns what the entry says, if it is whole, of this key, of a shape that
// there is, and of times that can be.
func readTuning(e cache.Entry, key string, shapes []Shape) (t Tuning, ok bool) {
	text, err := e.Read()
	if err != nil || json.Unmarshal(text, &t) != nil {
		return Tuning{}, false
	}
	return t, t.Key == key && slices.Contains(shapes, t.Shape) && 0 < t.Sweep && t.Sweep <= t.Default
}

// writeTuning keeps what was learnt where that is possible: else it is measured again.
func writeTuning(e cache.Entry, t Tuning) {
	if text, err := json.MarshalIndent(t, "", "\t"); err == nil {
		_ = e.Write(text, []byte{'\n'})
	}
}

// worthwhile is how much faster than the default a shape must be to be chosen: less may be
// noise.
const worthwhile = 0.995

// tryShapes times the shapes until the budget is spent.
func (s *Sweeper) tryShapes(dst, src Array, box domain.Box, budget time.Duration) (t Tuning, err error) {
	w, err := newWatch(s.device)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	end := time.Now().Add(budget)
	for i, shape := range s.form.shapes {
		if i > 0 && time.Now().After(end) {
			break
		}
		took, err := s.timeShape(w, dst, src, box, shape, end)
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

// timeShape returns the time of a sweep in a shape: the least of some, after one that warms
// up, but no more of them than the budget has time for.
func (s *Sweeper) timeShape(w *watch, dst, src Array, box domain.Box, shape Shape, end time.Time) (time.Duration, error) {
	spec := streams.KernelSpec{Name: "sweep to tune", Work: streams.Sweep, Uses: []streams.Span{dst.Data, src.Data}}
	s.launchOf(dst, src, []domain.Box{box}, shape).fill(s, &spec, "")
	k, err := newKernel(s.device, spec)
	if err != nil {
		return 0, err
	}
	const most = 4
	best := time.Duration(0)
	for i := range most {
		if i > 1 && time.Now().After(end) {
			break
		}
		took, err := w.time(k)
		if err != nil {
			return 0, errors.Join(err, k.Close())
		}
		if i == 1 || (i > 1 && took < best) {
			best = took
		}
	}
	return cmp.Or(best, 1), k.Close()
}

// watch times launches on a stream of its own.
type watch struct {
	resources  streams.Resources
	stream     *streams.Stream
	start, end *streams.Event
}

// tuneLimit is how long a sweep may take before the device counts as stuck.
const tuneLimit = 30 * time.Second

func newWatch(d *streams.Device) (w *watch, err error) {
	w = &watch{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if w.stream, err = d.NewStream(streams.Normal); err != nil {
		return w, err
	}
	w.resources.Add(w.stream)
	for _, e := range []**streams.Event{&w.start, &w.end} {
		if *e, err = d.NewTimedEvent(); err != nil {
			return w, err
		}
		w.resources.Add(*e)
	}
	return w, nil
}

// time returns how long the device takes for one launch.
func (w *watch) time(k *streams.Kernel) (time.Duration, error) {
	err := w.stream.Record(w.start)
	if err == nil {
		err = w.stream.Launch(k)
	}
	if err == nil {
		err = w.stream.Record(w.end)
	}
	if err == nil {
		err = w.end.Sync(tuneLimit)
	}
	if err != nil {
		return 0, err
	}
	return w.end.Since(w.start)
}

// Close frees what it holds. Closing twice is no error.
func (w *watch) Close() error { return w.resources.Close() }
