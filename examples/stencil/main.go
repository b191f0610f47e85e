// Stencil is Stencil2D of the SHOC benchmarks (Danalis et al. 2010) and its form in three dimensions, with ghosts that
// are exchanged as MPI datatypes by a choice of engines: figures 13 and 14 of HAND (Shi et al. 2014), and table 3 of
// Jenkins et al. (2014). The stencil has 9 points in two dimensions, with corners, and 7 in three.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed stencil.cu
var cuda string

// sweep is struct Sweep of stencil.cu.
type sweep struct {
	To, From            uint64
	Size                [3]int64
	Pitch, Plane, First int64
	Count               int64
	Offset              [9]int64
	Weight              [9]float64
}

func source() kernels.Source {
	return kernels.Source{Name: "stencil.cu", Text: cuda, Mirrors: []kernels.Mirror{{Name: "Sweep", Value: sweep{}}}}
}

// stencil is a field in boxes of devices, each with ghosts around it. Ghosts outside of the field are 0.
type stencil struct {
	example.Typed
	Size  string
	Width int // layers of ghosts that are exchanged

	dims     int
	size     [3]int // of the field; 1 along axes that it does not have
	parts    [3]int // numbers of boxes
	boxes    []box
	sweeps   [2][]*streams.Kernel // of all devices, to field 0 and to field 1
	messages [2][]example.Message // of the ghosts of each field
}

// box is the part of a device.
type box struct {
	lo, size, padded [3]int
	fields           [2]*streams.Memory
}

// open divides the field among the devices and prepares kernels and messages.
func (x *stencil) open(s *halo.Session) error {
	if err := errors.Join(x.parse(), x.Open(s)); err != nil {
		return err
	}
	x.divide(len(s.Devices))
	for i, d := range s.Devices {
		b := x.box(i)
		for f := range b.fields {
			streams.Into(&x.Resources, &b.fields[f])(streams.Upload(d, b.initial()))
		}
		x.boxes = append(x.boxes, b)
	}
	if err := x.Err(); err != nil {
		return err
	}
	for f := range 2 {
		for i, d := range s.Devices {
			k, err := x.sweep(d, &x.boxes[i], f)
			if err != nil {
				return err
			}
			x.sweeps[f] = append(x.sweeps[f], k)
		}
		if err := x.ghosts(f); err != nil {
			return err
		}
	}
	return nil
}

func (x *stencil) parse() error {
	x.size, x.boxes, x.sweeps, x.messages = [3]int{1, 1, 1}, nil, [2][]*streams.Kernel{}, [2][]example.Message{}
	numbers := strings.Split(x.Size, "x")
	if x.dims = len(numbers); x.dims < 2 || x.dims > 3 {
		return fmt.Errorf("--size must be NxN or NxNxN, got %s", x.Size)
	}
	for a, text := range numbers {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("--size must be NxN or NxNxN, got %s", x.Size)
		}
		x.size[a] = n
	}
	if x.Width < 1 {
		return errors.New("--width must be at least 1")
	}
	return nil
}

// divide cuts the field into boxes: the number of devices by its prime factors, the largest first, each along the
// axis with the longest boxes.
func (x *stencil) divide(devices int) {
	x.parts = [3]int{1, 1, 1}
	for p := devices; p > 1; {
		if devices%p != 0 || !prime(p) {
			p--
			continue
		}
		long := 0
		for a := range x.dims {
			if x.size[a]/x.parts[a] >= x.size[long]/x.parts[long] {
				long = a
			}
		}
		x.parts[long] *= p
		devices /= p
	}
}

func prime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return true
}

// box returns the box of a device.
func (x *stencil) box(i int) (b box) {
	for a, at := range x.place(i) {
		lo, hi := example.Part(int64(x.size[a]), int64(x.parts[a]), int64(at)),
			example.Part(int64(x.size[a]), int64(x.parts[a]), int64(at+1))
		b.lo[a], b.size[a] = int(lo), int(hi-lo)
		b.padded[a] = b.size[a] + 2*x.width(a)
	}
	return b
}

func (x *stencil) place(i int) [3]int {
	return [3]int{i % x.parts[0], i / x.parts[0] % x.parts[1], i / x.parts[0] / x.parts[1]}
}

// width returns the layers of ghosts along an axis.
func (x *stencil) width(axis int) int {
	if axis < x.dims {
		return x.Width
	}
	return 0
}

// value is the initial value at a point of the field, between 0 and 1.
func value(p [3]int) float64 {
	return example.Uniform(example.Hash(uint64(p[0]), uint64(p[1])<<20+uint64(p[2])))
}

// initial returns the values of the box, with ghosts of 0.
func (b *box) initial() []float64 {
	all := make([]float64, b.padded[0]*b.padded[1]*b.padded[2])
	b.each(func(at int, p [3]int) { all[at] = value(p) })
	return all
}

// each calls f with the index and the point of the field for all points of the box.
func (b *box) each(f func(at int, p [3]int)) {
	for z := range b.size[2] {
		for y := range b.size[1] {
			for x := range b.size[0] {
				at := (z+(b.padded[2]-b.size[2])/2)*b.padded[1] + y + (b.padded[1]-b.size[1])/2
				f(at*b.padded[0]+x+(b.padded[0]-b.size[0])/2, [3]int{b.lo[0] + x, b.lo[1] + y, b.lo[2] + z})
			}
		}
	}
}

// sweep prepares the sweep of a box from the other field to the given one.
func (x *stencil) sweep(d *streams.Device, b *box, to int) (*streams.Kernel, error) {
	dst, src := b.fields[to], b.fields[1-to]
	s := sweep{To: dst.Address(), From: src.Address(), Pitch: int64(b.padded[0])}
	s.Plane = s.Pitch * int64(b.padded[1])
	for a := range s.Size {
		s.Size[a] = int64(b.size[a])
	}
	s.First = int64(x.width(0)) + int64(x.width(1))*s.Pitch + int64(x.width(2))*s.Plane
	add := func(offset int64, weight float64) {
		s.Offset[s.Count], s.Weight[s.Count] = offset, weight
		s.Count++
	}
	add(0, 0.4)
	steps := []int64{1, s.Pitch, s.Plane}[:x.dims]
	for _, step := range steps {
		add(-step, 0.1)
		add(step, 0.1)
	}
	if x.dims == 2 {
		for _, corner := range []int64{-s.Pitch - 1, -s.Pitch + 1, s.Pitch - 1, s.Pitch + 1} {
			add(corner, 0.05)
		}
	}
	return example.Kernel(&x.Typed, d, source(), "sweep", b.size[0]*b.size[1]*b.size[2], b.fields[:], s, func() {
		out, in := streams.View[float64](dst.Bytes()), streams.View[float64](src.Bytes())
		b.each(func(at int, _ [3]int) {
			sum := s.Weight[0] * in[at]
			for k := range s.Count - 1 {
				sum += float64(s.Weight[k+1] * in[at+int(s.Offset[k+1])])
			}
			out[at] = sum
		})
	})
}

// ghosts prepares the messages of a field. Axis by axis, the layers of a box include the ghosts of earlier axes, so
// that corners arrive too.
func (x *stencil) ghosts(field int) error {
	step := 1
	for axis := range x.dims {
		for i := range x.boxes {
			if x.place(i)[axis]+1 == x.parts[axis] {
				continue
			}
			lower, upper := i, i+step
			n := x.boxes[lower].size[axis]
			if min(n, x.boxes[upper].size[axis]) < x.Width {
				return fmt.Errorf("--width %d is more than the points of a device along axis %d", x.Width, axis)
			}
			for _, m := range []struct{ to, from, start, end int }{
				{upper, lower, 0, n}, {lower, upper, n + x.Width, x.Width},
			} {
				to, err := x.layers(field, m.to, axis, m.start)
				if err != nil {
					return err
				}
				from, err := x.layers(field, m.from, axis, m.end)
				if err != nil {
					return err
				}
				message, err := x.Message(to, from)
				if err != nil {
					return err
				}
				x.messages[field] = append(x.messages[field], message)
			}
		}
		step *= x.parts[axis]
	}
	return nil
}

// layers returns layers of a box along an axis, from the given layer on.
func (x *stencil) layers(field, device, axis, start int) (e example.End, err error) {
	b := &x.boxes[device]
	sizes, starts := b.padded, [3]int{}
	for a := axis; a < len(sizes); a++ {
		sizes[a], starts[a] = b.size[a], x.width(a)
	}
	sizes[axis], starts[axis] = x.Width, start
	e.Device, e.Memory = device, b.fields[field]
	e.Type, err = datatype.Subarray(b.padded[:], sizes[:], starts[:], datatype.FortranOrder, datatype.Float64)
	return e, err
}

// step exchanges the ghosts of a field and sweeps from it to the other one.
func (x *stencil) step(i int) error {
	return errors.Join(example.Exchange(x.messages[i%2]), x.Launches(x.sweeps[(i+1)%2]))
}

// run runs all steps, prints their time and returns the field, x fastest.
func (x *stencil) run(out io.Writer) ([]float64, error) {
	whole, err := x.Time(x.Steps, x.step)
	if err != nil {
		return nil, err
	}
	field := make([]float64, x.size[0]*x.size[1]*x.size[2])
	for i := range x.boxes {
		b := &x.boxes[i]
		values, err := example.Read[float64](b.fields[x.Steps%2].All())
		if err != nil {
			return nil, err
		}
		b.each(func(at int, p [3]int) { field[(p[2]*x.size[1]+p[1])*x.size[0]+p[0]] = values[at] })
	}
	exchange, err := x.Time(x.Steps, func(i int) error { return example.Exchange(x.messages[i%2]) })
	flops := 2*map[int]int{2: 9, 3: 7}[x.dims] - 1
	fmt.Fprintf(out, "stencil: %s points, %d layers, %v: %.1f us per step, %.1f us per exchange, %.1f GFLOP/s\n",
		x.Size, x.Width, &x.Typed, whole.Seconds()*1e6, exchange.Seconds()*1e6,
		float64(len(field)*flops)/whole.Seconds()/1e9)
	return field, err
}

func newProgram() example.Program {
	x := &stencil{}
	return example.Program{
		Name: "stencil",
		Flags: func(f *flag.FlagSet) {
			x.Steps = 100
			x.Typed.Flags(f)
			f.StringVar(&x.Size, "size", "1024x1024", "points along each axis, NxN or NxNxN")
			f.IntVar(&x.Width, "width", 1, "layers of ghosts that are exchanged")
		},
		Run: func(_ context.Context, s *halo.Session, out io.Writer) (sum uint32, err error) {
			defer func() { err = errors.Join(err, x.Close()) }()
			if err := x.open(s); err != nil {
				return 0, err
			}
			if err := x.step(0); err != nil { // compiled and measured; the steps begin again
				return 0, err
			}
			if err := errors.Join(x.step(1), x.reset()); err != nil {
				return 0, err
			}
			field, err := x.run(out)
			return example.ChecksumOf(field), err
		},
	}
}

// reset sets both fields to their initial content.
func (x *stencil) reset() error {
	if err := x.Wait(); err != nil {
		return err
	}
	for i, d := range x.Devices {
		b := &x.boxes[i]
		initial, err := streams.Upload(d, b.initial())
		if err != nil {
			return err
		}
		for _, f := range b.fields {
			err = errors.Join(err, example.Copy(d, f.All(), initial.All()))
		}
		if err := errors.Join(err, initial.Close()); err != nil {
			return err
		}
	}
	return nil
}

func main() { newProgram().Main() }
