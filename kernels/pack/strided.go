package pack

import (
	"fmt"

	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// Strided is a block of Length bytes that is copied from Src to Dst, repeated over
// up to four dimensions, innermost first.
type Strided struct {
	Dst, Src Point
	Length   int64
	Dims     []Dim
}

// Point is a place in memory: Offset bytes after the start of Data.
type Point struct {
	Data   streams.Span
	Offset int64
}

// Strided makes one launch ready that makes all the copies. What is read may lie in the
// memory of a peer too. The rest is as for Copies. Long blocks that are not aligned are
// copied in the words that each of them allows, with a prologue and an epilogue, unless
// the options ask for a loop.
func (m *BoxCopier) Strided(name string, o StridedOptions, copies ...Strided) (*Copies, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("%w (%s)", err, name)
	}
	w := work{spec: streams.KernelSpec{Name: name}, options: o}
	for _, c := range copies {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("%w (%s)", err, name)
		}
		w.runs = append(w.runs, c.run())
		w.spec.Reaches = append(w.spec.Reaches, c.Dst.Data, c.Src.Data)
	}
	w.spec.Run = func() { copyStrided(copies) }
	w.strided = stridedCopies(w.runs, o.Loop == NoLoop)
	return m.copies(w)
}

// check returns an error unless all that is read and written lies in its memory.
func (c Strided) check() error {
	if c.Length < 1 || len(c.Dims) > maxDims {
		return fmt.Errorf("pack: blocks of %d bytes over %d dimensions; up to %d are possible", c.Length, len(c.Dims), maxDims)
	}
	for _, side := range []struct {
		at   Point
		step func(d Dim) int64
	}{{c.Dst, func(d Dim) int64 { return d.Dst }}, {c.Src, func(d Dim) int64 { return d.Src }}} {
		low, high := float64(side.at.Offset), float64(side.at.Offset)+float64(c.Length) // they may be beyond all integers
		for _, d := range c.Dims {
			if d.Count < 1 {
				return fmt.Errorf("pack: a dimension of %d blocks", d.Count)
			}
			reach := float64(d.Count-1) * float64(side.step(d))
			low, high = low+min(0, reach), high+max(0, reach)
		}
		if low < 0 || high > float64(side.at.Data.Length) {
			return fmt.Errorf("pack: blocks from byte %.0f to %.0f do not fit into %v", low, high, side.at.Data)
		}
	}
	return nil
}

// run gives the addresses.
func (c Strided) run() run {
	r := run{dst: c.Dst.Data.Address() + uint64(c.Dst.Offset), src: c.Src.Data.Address() + uint64(c.Src.Offset), length: c.Length}
	for _, d := range c.Dims {
		r.over(d)
	}
	return r
}

// copyStrided is the host version of kernel move.
func copyStrided(copies []Strided) {
	for _, c := range copies {
		copyDims(launch.Values[byte](c.Dst.Data), launch.Values[byte](c.Src.Data), c.Dst.Offset, c.Src.Offset, c.Length, c.Dims)
	}
}

// copyDims copies a block and its repetitions, the outermost dimension first.
func copyDims(dst, src []byte, to, from, length int64, dims []Dim) {
	n := len(dims) - 1
	if n < 0 {
		copy(dst[to:to+length], src[from:from+length])
		return
	}
	for range dims[n].Count {
		copyDims(dst, src, to, from, length, dims[:n])
		to, from = to+dims[n].Dst, from+dims[n].Src
	}
}
