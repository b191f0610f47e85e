package series

import (
	"context"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
)

// A selection is the points of a series: in a box of the grid, every n-th along each axis. Boxes of a selection count
// its points from 0.
type selection struct {
	lo     domain.Vec // first point, in the grid
	size   domain.Vec // points
	stride domain.Vec // distance between two points, in the grid
}

// box returns all points.
func (s *selection) box() domain.Box { return domain.Box{Hi: s.size} }

// inGrid returns the smallest box of the grid that holds the points of a box.
func (s *selection) inGrid(box domain.Box) (g domain.Box) {
	for a := range 3 {
		g.Lo[a], g.Hi[a] = s.lo[a]+box.Lo[a]*s.stride[a], s.lo[a]+(box.Hi[a]-1)*s.stride[a]+1
	}
	return g
}

// in returns the points of the selection that are in a box of the grid.
func (s *selection) in(g domain.Box) (box domain.Box) {
	up := func(n, d int) int { return max(0, (n+d-1)/d) }
	for a := range 3 {
		box.Lo[a] = up(g.Lo[a]-s.lo[a], s.stride[a])
		box.Hi[a] = min(s.size[a], up(g.Hi[a]-s.lo[a], s.stride[a]))
	}
	return box
}

// gather sets dst, on the root only, to the values of a box of a field, as the machine stores them, x fastest. All
// processes of the field call it.
func (s *selection) gather(ctx context.Context, dst []byte, f *halo.Field, box domain.Box, root int) error {
	if s.stride == (domain.Vec{1, 1, 1}) {
		return halo.Gather(ctx, dst, f, s.inGrid(box), root)
	}
	mine, n := f.Placement.Processes.Rank == root, f.Spec.Element.Size()
	var plane []byte
	for k := box.Lo[2]; k < box.Hi[2]; k++ { // whole planes: many rows would be many messages
		one := box
		one.Lo[2], one.Hi[2] = k, k+1
		g := s.inGrid(one)
		if mine && plane == nil {
			plane = make([]byte, g.Points()*int64(n))
		}
		if err := halo.Gather(ctx, plane, f, g, root); err != nil {
			return err
		}
		width := g.Size()[0]
		for j := range box.Size()[1] {
			for i := 0; mine && i < box.Size()[0]; i++ {
				copy(dst[:n], plane[(j*s.stride[1]*width+i*s.stride[0])*n:])
				dst = dst[n:]
			}
		}
	}
	return nil
}

// slabBytes is the size of the parts in which files are written, in bytes.
const slabBytes = 32 << 20

// slabs divides a box into parts that follow each other in memory, of about slabBytes.
func slabs(box domain.Box, element int) (all []domain.Box) {
	n := box.Size()
	layers, axis := max(1, slabBytes/(n[0]*n[1]*element)), 2
	if n[2] == 1 {
		layers, axis = max(1, slabBytes/(n[0]*element)), 1
	}
	for lo := box.Lo[axis]; lo < box.Hi[axis]; lo += layers {
		one := box
		one.Lo[axis], one.Hi[axis] = lo, min(lo+layers, box.Hi[axis])
		all = append(all, one)
	}
	return all
}

// viewOf returns the numbers in bytes.
func viewOf[T float32 | float64](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

// bytesOf returns the bytes of numbers.
func bytesOf[T float32 | float64 | int64](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}

// converted returns values of one element as another.
func converted(values []byte, from, to domain.Element) []byte {
	switch {
	case from == to:
		return values
	case to == domain.Float32:
		return bytesOf(cast[float32](viewOf[float64](values)))
	}
	return bytesOf(cast[float64](viewOf[float32](values)))
}

func cast[T, U float32 | float64](values []U) []T {
	all := make([]T, len(values))
	for i, v := range values {
		all[i] = T(v)
	}
	return all
}
