package boundary

import (
	"fmt"
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

	ghosts  domain.Box
	grid    domain.Grid
	profile Profile
	single  bool // float32
	row     []float64
	slots   [2]faceValues // for even and for odd steps
}

// faceValues is the way of a face's values into the ghosts.
type faceValues struct {
	host, device *streams.Memory
	unpack       *pack.Copies
	used         *streams.Event // the values have been copied: host may change
}

// ask gets the profile of a condition.
func (m *movingFace) ask(c *Condition) (err error) {
	defer streams.Caught(&err, m.what, m.field)
	if m.profile = c.Profile(); m.profile == nil {
		return fmt.Errorf("%s %q returned no profile (nil)", m.what, m.field)
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
func (m *movingFace) evaluateInto(bytes []byte, t float64) (err error) {
	defer streams.Caught(&err, m.what, m.field)
	if m.single {
		evaluate[float32](m, bytes, t)
	} else {
		evaluate[float64](m, bytes, t)
	}
	return nil
}

// evaluate fills bytes with the values of the face, x fastest.
func evaluate[T float32 | float64](m *movingFace, bytes []byte, t float64) {
	values := streams.View[T](bytes)
	for k := m.ghosts.Lo[2]; k < m.ghosts.Hi[2]; k++ {
		for j := m.ghosts.Lo[1]; j < m.ghosts.Hi[1]; j++ {
			m.evaluateRow(j, k, t)
			for i, v := range m.row {
				values[i] = T(v)
			}
			values = values[len(m.row):]
		}
	}
}

// evaluateRow sets the row to the values at y = j and z = k. Ghosts beyond the ends of periodic axes have those of the
// points that they stand for.
func (m *movingFace) evaluateRow(j, k int, t float64) {
	lo, hi := m.ghosts.Lo[0], m.ghosts.Hi[0]
	for x := lo; x < hi; {
		at, n := domain.Vec{x, j, k}, hi-x
		for a, size := range m.grid.Size {
			if m.grid.Periodic[a] {
				at[a] = ((at[a] % size) + size) % size
			}
		}
		if m.grid.Periodic[0] {
			n = min(n, m.grid.Size[0]-at[0])
		}
		m.profile(m.row[x-lo:][:n], at, t)
		x += n
	}
}

// profileLimit is how long a device may take to take the values of a profile.
const profileLimit = 60 * time.Second
