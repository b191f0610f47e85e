package boundary

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// movingFace is a Dirichlet face of one array whose values change with time. The host
// evaluates them anew for every step, into pinned memory; the device copies and unpacks them
// into the first layer of ghosts. Further layers follow by reflection.
type movingFace struct {
	what, field string // for errors

	ghosts     domain.Box
	grid       domain.Grid
	single     bool // float32
	uniform    bool
	evaluators []rowEvaluator // of rows, side by side
	slots      [2]faceValues  // for even and for odd steps
}

// rowEvaluator evaluates some of the rows of a face.
type rowEvaluator struct {
	profile Profile
	row     []float64
}

// pointsEach is how many points of a face are worth a goroutine.
const pointsEach = 1 << 13

// faceValues is the way of a face's values into the ghosts.
type faceValues struct {
	host, device *streams.Memory
	unpack       *pack.Copies
	used         *streams.Event // the values have been copied: host may change
}

// ask gets the profile of a condition, for each goroutine that evaluates rows.
func (m *movingFace) ask(c *Condition) (err error) {
	defer streams.Caught(&err, m.what, m.field)
	n := 1
	if m.uniform = c.Uniform; !m.uniform {
		n = max(1, min(runtime.GOMAXPROCS(0), int(m.ghosts.Points()/pointsEach)))
	}
	for range n {
		profile := c.Profile()
		if profile == nil {
			return fmt.Errorf("%s %q returned no profile (nil)", m.what, m.field)
		}
		m.evaluators = append(m.evaluators, rowEvaluator{profile, make([]float64, m.ghosts.Size()[0])})
	}
	return nil
}

// queue sets the ghosts to the values at time t.
func (m *movingFace) queue(s *streams.Stream, step int64, t float64) error {
	v := &m.slots[step&1]
	if err := v.used.Sync(profileLimit); err != nil {
		return err
	}
	if err := m.evaluateInto(v.host.Bytes(), t); err != nil {
		return err
	}
	if err := s.CopyAs(streams.OtherWork, v.device.All(), v.host.All()); err != nil {
		return err
	}
	if err := s.Record(v.used); err != nil {
		return err
	}
	return s.Launch(v.unpack.Kernel)
}

// evaluateInto fills bytes with the values of the face at time t.
func (m *movingFace) evaluateInto(bytes []byte, t float64) error {
	rows := int(m.ghosts.Points()) / len(m.evaluators[0].row)
	if len(m.evaluators) == 1 {
		return m.evaluateRows(&m.evaluators[0], bytes, 0, rows, t)
	}
	var all sync.WaitGroup
	errs := make([]error, len(m.evaluators))
	for i := range m.evaluators {
		first, end := rows*i/len(m.evaluators), rows*(i+1)/len(m.evaluators)
		all.Go(func() { errs[i] = m.evaluateRows(&m.evaluators[i], bytes, first, end, t) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// evaluateRows evaluates the rows from the first to before the end.
func (m *movingFace) evaluateRows(s *rowEvaluator, bytes []byte, first, end int, t float64) (err error) {
	defer streams.Caught(&err, m.what, m.field)
	if m.single {
		evaluate(m, s, streams.View[float32](bytes), first, end, t)
	} else {
		evaluate(m, s, streams.View[float64](bytes), first, end, t)
	}
	return nil
}

// evaluate sets values to some rows of the face, x fastest.
func evaluate[T float32 | float64](m *movingFace, s *rowEvaluator, values []T, first, end int, t float64) {
	size := m.ghosts.Size()
	if m.uniform {
		m.setRow(rowEvaluator{s.profile, s.row[:1]}, m.ghosts.Lo, t)
		v := T(s.row[0])
		for i := range values {
			values[i] = v
		}
		return
	}
	for row := first; row < end; row++ {
		m.setRow(*s, m.ghosts.Lo.Add(domain.Vec{0, row % size[1], row / size[1]}), t)
		into := values[row*len(s.row):][:len(s.row)]
		for i, v := range s.row {
			into[i] = T(v)
		}
	}
}

// setRow sets the row of an evaluator to the values from a ghost on. Ghosts beyond the ends of periodic axes have those of the
// points that they stand for.
func (m *movingFace) setRow(s rowEvaluator, from domain.Vec, t float64) {
	for done := 0; done < len(s.row); {
		at, n := from.Add(domain.Vec{done}), len(s.row)-done
		for a, size := range m.grid.Size {
			if m.grid.Periodic[a] {
				at[a] = ((at[a] % size) + size) % size
			}
		}
		if m.grid.Periodic[0] {
			n = min(n, m.grid.Size[0]-at[0])
		}
		s.profile(s.row[done:][:n], at, t)
		done += n
	}
}

// profileLimit is how long a device may take to take the values of a profile.
const profileLimit = 60 * time.Second
