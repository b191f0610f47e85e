package boundary

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// movingFace is a Dirichlet face of one array whose values change with time. The host
// evaluates them anew for every step, into pinned memory; the device copies and unpacks them
// into the first layer of ghosts. Further layers follow by reflection.
type movingFace struct {
	ghosts  domain.Box
	profile Profile
	single  bool // float32
	row     []float64
	slots   [2]faceValues // for even and for odd steps
}

// faceValues is the way of a face's values into the ghosts.
type faceValues struct {
	host, device *streams.Memory
	unpack       *kernels.Copies
	used         *streams.Event // the values have been copied: host may change
}

// addMoving makes the faces with profiles ready.
func (g *Ghosts) addMoving(s *subdomain, rank int, mover *kernels.BoxCopier) error {
	for _, side := range g.sidesOf(rank, (*Condition).moves) {
		for component := range g.arrays() {
			m, err := g.newMoving(rank, g.field.Array(rank, component), side, mover)
			if err != nil {
				return err
			}
			s.moves = append(s.moves, m)
		}
	}
	return nil
}

func (g *Ghosts) newMoving(rank int, a kernels.Array, side domain.Direction, mover *kernels.BoxCopier) (*movingFace, error) {
	ghosts := domain.GhostBox(a.Layout.Owned, side, domain.UniformRadius(g.field.Cut.Grid.Dims, 1))
	m := &movingFace{
		ghosts: ghosts, profile: g.faces.At(side).Profile(), single: g.field.Spec.Element == halo.Float32,
		row: make([]float64, ghosts.Size()[0]),
	}
	device, bytes := g.field.Placement.Devices[rank], ghosts.Points()*int64(a.Layout.ElementSize)
	for i := range m.slots {
		v := &m.slots[i]
		var err error
		if v.host, err = device.AllocPinned(bytes); err != nil {
			return nil, err
		}
		g.resources.Add(v.host)
		if v.device, err = device.Alloc(bytes); err != nil {
			return nil, err
		}
		g.resources.Add(v.device)
		if v.used, err = device.NewEvent(); err != nil {
			return nil, err
		}
		g.resources.Add(v.used)
		if v.unpack, err = mover.Copies("boundary", kernels.Unpack(a, ghosts, v.device.All())); err != nil {
			return nil, err
		}
		g.resources.Add(v.unpack)
	}
	return m, nil
}

// queue sets the ghosts to the values at time t.
func (m *movingFace) queue(s *streams.Stream, step int64, t float64) error {
	v := &m.slots[step&1]
	if err := v.used.Sync(profileLimit); err != nil {
		return err
	}
	if m.single {
		evaluate[float32](m, v.host.Bytes(), t)
	} else {
		evaluate[float64](m, v.host.Bytes(), t)
	}
	if err := s.CopyAs(streams.OtherWork, v.device.All(), v.host.All()); err != nil {
		return err
	}
	if err := s.Record(v.used); err != nil {
		return err
	}
	return s.Launch(v.unpack.Kernel)
}

// evaluate fills bytes with the values of the face, x fastest.
func evaluate[T float32 | float64](m *movingFace, bytes []byte, t float64) {
	values := streams.View[T](bytes)
	for k := m.ghosts.Lo[2]; k < m.ghosts.Hi[2]; k++ {
		for j := m.ghosts.Lo[1]; j < m.ghosts.Hi[1]; j++ {
			m.profile(m.row, domain.Vec{m.ghosts.Lo[0], j, k}, t)
			for i, v := range m.row {
				values[i] = T(v)
			}
			values = values[len(m.row):]
		}
	}
}
