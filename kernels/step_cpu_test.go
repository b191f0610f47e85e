package kernels

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// What stands before and after step.cu to run it on the CPU.
var (
	//go:embed testdata/step_on_cpu.h
	flagsOnCPU string
	//go:embed testdata/step_on_cpu.cc
	stepOnCPU string
)

// stepTorus is a grid that is cut for some devices, periodic along x and between walls along
// the other axes: low ones that mirror, and high ones that fields are odd about where the
// stencil reaches two points.
type stepTorus struct {
	t       *testing.T
	stencil stencil.Stencil
	real    Real
	cut     *domain.Decomposition
	devices []*streams.Device
	in      io.Writer // of the kernels
	out     io.Reader
}

func newStepTorus(t *testing.T, s stencil.Stencil, r Real, size []int, parts domain.Vec) *stepTorus {
	t.Helper()
	g, err := domain.NewGrid(size, [3]bool{true})
	if err != nil {
		t.Fatal(err)
	}
	c := &stepTorus{t: t, stencil: s, real: r}
	if c.cut, err = domain.Decompose(g, parts); err != nil {
		t.Fatal(err)
	}
	if c.devices, err = streams.HostPlatform(len(c.cut.Subdomains)).Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { streams.CloseAll(c.devices) })
	return c
}

// ranks returns what the devices do, with fields that an allocator places.
func (c *stepTorus) ranks(shape Shape, alloc func(d *streams.Device, bytes int64) streams.Span) (ranks []StepRank) {
	c.t.Helper()
	w := c.stencil.Radius()
	for _, sub := range c.cut.Subdomains {
		e := StepRank{Device: c.devices[sub.Rank], Shape: shape}
		for f := range e.Fields {
			l, err := domain.NewLayout(sub.Box, w, c.real.Size())
			if err != nil {
				c.t.Fatal(err)
			}
			e.Fields[f] = Array{Data: alloc(e.Device, l.Bytes()), Layout: l}
		}
		e.Interior, e.Boundary = domain.Split(sub.Box, w)
		for _, dir := range domain.Directions(c.cut.Grid.Dims) {
			if to, ok := c.cut.Neighbour(sub.Rank, dir); ok && c.reads(dir) {
				ghost := domain.GhostBox(c.cut.Subdomains[to].Box, dir.Opposite(), w)
				e.Stores = append(e.Stores, GhostStore{Send: domain.SendBox(sub.Box, dir, w), Ghost: ghost, To: to})
			} else if a := dir.Axis(); !ok && a >= 0 {
				e.Stores = append(e.Stores, c.wall(sub, dir, a)...)
			}
		}
		ranks = append(ranks, e)
	}
	return ranks
}

// reads reports whether the stencil has points in a direction.
func (c *stepTorus) reads(dir domain.Direction) bool {
	return slices.ContainsFunc(c.stencil.Offsets(), func(o domain.Vec) bool {
		for a := range o {
			if (o[a] == 0) != (dir[a] == 0) || o[a]*dir[a] < 0 {
				return false
			}
		}
		return true
	})
}

// wall returns the stores behind a wall.
func (c *stepTorus) wall(sub domain.Subdomain, side domain.Direction, axis int) (all []GhostStore) {
	reach := c.stencil.AxisRadius(axis)
	ghost := domain.GhostBox(sub.Box, side, c.stencil.Radius())
	for n := range reach { // layers, from the wall
		send, to := sub.Box, ghost
		if side.Positive() {
			send.Lo[axis], to.Lo[axis] = sub.Box.Hi[axis]-1-n, ghost.Lo[axis]+n
		} else {
			send.Lo[axis], to.Lo[axis] = sub.Box.Lo[axis]+n, ghost.Hi[axis]-1-n
		}
		send.Hi[axis], to.Hi[axis] = send.Lo[axis]+1, to.Lo[axis]+1
		st := GhostStore{Send: send, Ghost: to, To: sub.Rank}
		if side.Positive() && reach == 2 {
			if n == 1 { // the first layer is the wall's
				continue
			}
			st.Ghost, st.Odd = to.Shift(domain.Vec(side)), []domain.Vec{domain.Vec(side)}
		}
		all = append(all, st)
	}
	return all
}

// The kernels of step.cu, run on the CPU by one device after the other, leave in all memory
// what the host's version leaves there, for every stencil, and count what neighbours expect.
func TestStepKernelsOnCPU(t *testing.T) {
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("SKIPPED: no C++ compiler: ", err)
	}
	for _, s := range everyStencil() {
		for _, r := range []Real{Float64, Float32} {
			t.Run(fmt.Sprintf("dims=%d/points=%d/groups=%d/%s", s.Dims, s.Points(), len(s.Groups), r), func(t *testing.T) {
				t.Parallel()
				size, parts := []int{75, 41}, domain.Vec{2, 2, 1}
				if s.Dims == 3 {
					size, parts = []int{37, 12, 11}, domain.Vec{1, 2, 2}
				}
				c := newStepTorus(t, s, r, size, parts)
				c.start(compiler)
				before, after := c.onHost()
				shapes := formOf(s, r).shapes
				for _, shape := range []Shape{{}, shapes[1], shapes[len(shapes)-1]} {
					c.onCPU(FusedStep, shape, before, after)
				}
				c.onCPU(ResidentSteps, Shape{}, before, after)
			})
		}
	}
}

// start starts the kernels of a GPU.
func (c *stepTorus) start(compiler string) {
	c.t.Helper()
	p := stepProgram(c.stencil, c.real)
	p.Defines = append(p.Defines, "READ_ONLY") // which looks whether words are aligned
	names := []string{"resident"}
	for _, large := range formOf(c.stencil, c.real).kernels() {
		names = append(names, "fused_"+large, "fused_"+large+withNorms)
	}
	change := map[string]func(string) string{
		"flags.cuh": func(string) string { return flagsOnCPU },
		"step.cu": func(text string) string {
			return strings.Replace(text, "#include \"neighbour.cuh\"\n", "#include \"neighbour.cuh\"\n"+
				"static void no_reduction(const NormSum &, NormSum *) {}\n#define reduce_block no_reduction\n", 1)
		},
	}
	c.in, c.out = startOnCPU(c.t, compiler, p, change, kernelTable("Step", names)+stepOnCPU)
}

const stepsOnCPU = 3

// onHost fills the fields, makes some steps, and returns what all fields held before and after.
func (c *stepTorus) onHost() (before, after []byte) {
	c.t.Helper()
	var spans []streams.Span
	ranks := c.ranks(Shape{}, func(d *streams.Device, n int64) streams.Span {
		m, err := d.Alloc(n)
		if err != nil {
			c.t.Fatal(err)
		}
		for i := range n / int64(c.real.Size()) {
			if v := rand.NormFloat64(); c.real == Float64 {
				view[float64](m.All())[i] = v
			} else {
				view[float32](m.All())[i] = float32(v)
			}
		}
		spans = append(spans, m.All())
		return m.All()
	})
	read := func() (all []byte) {
		for _, s := range spans {
			all = append(all, s.Memory.Bytes()[s.Offset:s.Offset+s.Length]...)
		}
		return all
	}
	before = read()
	for _, d := range c.devices {
		for _, other := range c.devices {
			if d != other {
				if err := d.EnablePeer(other); err != nil {
					c.t.Fatal(err)
				}
			}
		}
	}
	all, err := NewCompiler(Options{}).Steppers(FusedStep, c.stencil, c.real, ranks, time.Minute)
	if err != nil {
		c.t.Fatal(err)
	}
	var queues []*streams.Stream
	for i, s := range all {
		stream, err := c.devices[i].NewStream(streams.Normal)
		if err != nil {
			c.t.Fatal(err)
		}
		queues = append(queues, stream)
		for range stepsOnCPU {
			if err := s.Queue(stream, 1); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	for i, q := range queues {
		if err := q.Sync(time.Minute); err != nil || all[i].Err() != nil {
			c.t.Fatal(err, all[i].Err())
		}
	}
	return before, read()
}

// onCPU makes the same steps with the kernels, from what the fields held before.
func (c *stepTorus) onCPU(kind StepKind, shape Shape, before, after []byte) {
	c.t.Helper()
	arena, err := c.devices[0].Alloc(int64(len(before)))
	if err != nil {
		c.t.Fatal(err)
	}
	copy(arena.Bytes(), before)
	offset := int64(0)
	ranks := c.ranks(shape, func(_ *streams.Device, bytes int64) streams.Span {
		offset += bytes
		return arena.Span(offset-bytes, bytes)
	})
	n, err := newStepGroup(kind, c.stencil, c.real, ranks, time.Second)
	if err != nil {
		c.t.Fatal(err)
	}
	regions := []*streams.Memory{arena}
	for i := range ranks {
		s := &Stepper{device: ranks[i].Device}
		if err := s.allocate(n, i); err != nil {
			c.t.Fatal(err)
		}
		regions = append(regions, n.flags.Memory(i))
	}
	c.put(n, regions)
	for i, m := range regions {
		if _, err := io.ReadFull(c.out, m.Bytes()); err != nil {
			c.t.Fatal(err)
		}
		if i == 0 {
			c.compare(ranks, kind, shape, m.Bytes(), after)
			continue
		}
		for at, other := range n.flags.Neighbours(i - 1) {
			if got, want := *flags.Word(m, int64(at)*flags.LineBytes), uint64(stepsOnCPU*n.expected(other, i-1)); got != want || want == 0 {
				c.t.Fatalf("%s, shape %v: rank %d counted %d blocks of rank %d, not %d", kind, shape, i-1, got, other, want)
			}
		}
	}
}

// put writes the memory and the launches, all ranks' of one step before the next.
func (c *stepTorus) put(n *stepGroup, regions []*streams.Memory) {
	var b bytes.Buffer
	write := func(v any) { binary.Write(&b, binary.NativeEndian, v) }
	write([]int64{int64(len(regions)), int64(stepsOnCPU * len(n.ranks))})
	for _, m := range regions {
		write(int64(len(m.Bytes())))
	}
	for _, m := range regions {
		b.Write(m.Bytes())
	}
	for step := range int64(stepsOnCPU) {
		for i := range n.ranks {
			variant := ""
			if n.kind == FusedStep && step == 1 {
				variant = withNorms
			}
			k, err := n.launch(i, n.flags.Memory(i), variant)
			if err != nil {
				c.t.Error(err)
			}
			k.arg.span = stepSpan{first: step + 1, count: 1, launch: step}
			var name [32]byte
			copy(name[:], k.kernel)
			b.Write(name[:])
			for _, v := range [][3]int{k.grid, {k.block[0], k.block[1], 1}} {
				write([3]int32{int32(v[0]), int32(v[1]), int32(v[2])})
			}
			var others [32]int64
			for at, other := range n.flags.Neighbours(i) {
				others[at] = int64(other)
			}
			write(int64(i))
			write(others)
			argument := k.argument(maxStores(c.stencil))
			if len(argument) > 4096 {
				c.t.Errorf("an argument of %d bytes", len(argument))
			}
			write(int64(len(argument)))
			b.Write(argument)
		}
	}
	c.in.Write(b.Bytes())
}

func (c *stepTorus) compare(ranks []StepRank, kind StepKind, shape Shape, got, want []byte) {
	c.t.Helper()
	offset := int64(0)
	for i, e := range ranks {
		for f, a := range e.Fields {
			for at := range a.Layout.Length {
				o, size := offset+at*int64(c.real.Size()), int64(c.real.Size())
				if !bytes.Equal(got[o:o+size], want[o:o+size]) {
					c.t.Fatalf("%s, shape %v: field %d of rank %d at %v is %x, not %x", kind, shape, f, i, pointAt(a.Layout, at), got[o:o+size], want[o:o+size])
				}
			}
			offset += a.Layout.Bytes()
		}
	}
}
