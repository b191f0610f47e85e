package temporal

import (
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
)

// generalShape returns that of pass.cu, if shared memory has room for its levels.
func generalShape(s stencil.Stencil, real kernels.Real, depth, shared int, o Options) (one shape, ok bool) {
	var r [3]int
	for a := range s.Dims {
		r[a] = s.AxisRadius(a)
	}
	along, turn, rows, threads := r[2], 1, 4, 512
	const many = 16 // terms of float64
	switch {        // they take registers, and so do norms
	case o.Norms > 1:
		threads = 256
	case o.Norms > 0, real.Size() == 8 && len(s.Footprint()) > many:
		threads = 384
	}
	wide, high := []int{64, 32, 16}, []int{64, 56, 48, 40, 32, 24, 16, 8}
	if s.Dims == 2 {
		along, turn, rows, threads = r[1], 4, 1, 256
		wide, high = []int{512, 256, 128, 64}, []int{1}
	}
	for _, w := range wide {
		for _, h := range high {
			ex, ey := w+2*depth*r[0], 1
			if s.Dims == 3 {
				ey = h + 2*depth*r[1]
			}
			bytes := depth * 2 * (turn + along) * ex * ey * real.Size()
			kept := float64(w*h) / float64(ex*ey)
			if bytes > shared || kept < 0.3 {
				continue
			}
			if ok && kept < 1.05*float64(one.tile[0]*one.tile[1])/float64((one.tile[0]+2*depth*r[0])*max(1, one.tile[1]+2*depth*r[1])) {
				continue
			}
			ok = true
			one = shape{
				depth: depth, cost: 1 + 0.8*float64(depth-1), name: "pass", threads: threads, shared: bytes, tile: [3]int{w, h, 0}, axis: s.Dims - 1,
				warmUp: depth * (2*along + turn), vector: 1,
			}
			ry := r[1]
			if s.Dims == 2 {
				ry = 0
			}
			one.program = withOptions(o, programOf("pass.cu", s, real,
				option("DEPTH", depth), option("RX", r[0]), option("RY", ry), option("RL", along), option("WIDE", w), option("HIGH", h),
				option("TURN", turn), option("ROWS", rows), option("THREADS", threads)))
		}
	}
	return one, ok
}
