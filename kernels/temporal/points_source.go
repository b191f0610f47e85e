package temporal

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// pointsForm is how pass_points.cu is compiled.
type pointsForm struct {
	depth, wide, high, turn, rows, threads, blocks int
}

// maxArgument is how many bytes a launch may be given.
const maxArgument = 4096

// ringOf is how many layers a ring has: those of a turn that the level before stores meanwhile, those that are read, and ghosts behind the last.
func (p *Points) ringOf(turn int) int {
	minus, plus := p.radius.Minus[p.dims-1], p.radius.Plus[p.dims-1]
	return max(2*turn, turn+plus) + minus + plus
}

// area returns the columns of a tile at level 0.
func (p *Points) area(f pointsForm) int {
	x := f.wide + f.depth*(p.radius.Minus[0]+p.radius.Plus[0])
	if p.dims == 2 {
		return x
	}
	return x * (f.high + f.depth*(p.radius.Minus[1]+p.radius.Plus[1]))
}

// rings returns where the rings of each field begin in shared memory, and the bytes of all.
func (p *Points) rings(f pointsForm) (begin []int, bytes int) {
	for _, one := range p.fields {
		begin = append(begin, bytes)
		bytes += ceil(f.depth*p.ringOf(f.turn)*p.area(f)*p.arrays[one.to].Element.Size(), 16) * 16
	}
	return begin, bytes
}

// levelsSource returns levels.cuh, see pass_points.cu.
func (p *Points) levelsSource(f pointsForm, argument int) string {
	var b strings.Builder
	b.WriteString("// The fields that a pass of a point function steps, as points_source.go of kernels/temporal writes them.\n#pragma once\n\n// clang-format off\n")
	fmt.Fprintf(&b, "enum { DEPTH = %d, WIDE = %d, HIGH = %d, TURN = %d, ROWS = %d, THREADS = %d, BLOCKS = %d };\n", f.depth, f.wide, f.high, f.turn, f.rows, f.threads, f.blocks)
	r := p.byLayers(p.radius)
	fmt.Fprintf(&b, "enum { LOW_X = %d, HIGH_X = %d, LOW_Y = %d, HIGH_Y = %d, LOW_L = %d, HIGH_L = %d, RING = %d };\n",
		r.Minus[0], r.Plus[0], r.Minus[1], r.Plus[1], r.Minus[2], r.Plus[2], p.ringOf(f.turn))
	fmt.Fprintf(&b, "enum { FIELD_COUNT = %d, PASS_BYTES = %d };\n", len(p.fields), argument)
	b.WriteString("#define FIELDS(X)")
	for i := range p.fields {
		fmt.Fprintf(&b, " X(%d)", i)
	}
	b.WriteString("\ntemplate <int F> struct Field;\ntemplate <int R> struct Held { enum { FIELD = -1 }; };\n")
	begin, _ := p.rings(f)
	for i, one := range p.fields {
		r := p.byLayers(one.radius)
		fmt.Fprintf(&b, "template <> struct Field<%d> {\n\ttypedef %s T;\n\tenum { FROM = %d, TO = %d, BEGIN = %d, LOW = %s, HIGH = %s };\n};\n",
			i, p.arrays[one.from].Element.C(), p.arrays[one.from].Read, p.arrays[one.to].Written, begin[i], inFours(r.Minus), inFours(r.Plus))
		for _, read := range one.reads {
			fmt.Fprintf(&b, "template <> struct Held<%d> { enum { FIELD = %d }; };\n", p.arrays[read].Read, i)
		}
	}
	return b.String()
}

// byLayers returns a radius along x, y and layers: in two dimensions, whose layers are rows, there is none along y.
func (p *Points) byLayers(r domain.Radius) domain.Radius {
	if p.dims == 2 {
		for _, v := range []*domain.Vec{&r.Minus, &r.Plus} {
			v[1], v[2] = 0, v[1]
		}
	}
	return r
}

// inFours packs numbers of 4 bits.
func inFours(v domain.Vec) string { return fmt.Sprintf("%d | %d << 4 | %d << 8", v[0], v[1], v[2]) }

// newGPU finds the kernels that shared memory has room for.
func (p *Points) newGPU(c *kernels.Compiler) (*gpu, error) {
	argument, _ := p.argument(p.like, domain.Box{}, make([]Sides, len(p.like)), 0)
	if len(argument) > maxArgument {
		return nil, fmt.Errorf("temporal: %w: the arrays and parameters of the point function take %d bytes of %d that a launch may be given", ErrImpossible, len(argument), maxArgument)
	}
	g := &gpu{compiler: c, device: p.device, loaded: map[string]streams.Function{}}
	for _, depth := range []int{4, 3, 2} {
		for _, f := range p.forms(depth, int(p.device.Shared)) {
			g.candidates = append(g.candidates, p.shapeOf(f, len(argument)))
		}
	}
	if len(g.candidates) == 0 {
		return nil, fmt.Errorf("temporal: %w: shared memory has no room for several levels of the %d arrays that are stepped", ErrImpossible, len(p.fields))
	}
	for _, s := range g.candidates {
		if !slices.ContainsFunc(g.shapes, func(t shape) bool { return t.depth == s.depth }) {
			g.shapes = append(g.shapes, s)
		}
	}
	return g, nil
}

// reserved is how many bytes of shared memory a block has beside its own.
const reserved = 1 << 10

// forms returns those of a depth to be tried: one block of a multiprocessor, and two, one of which computes while the other waits.
func (p *Points) forms(depth, shared int) (all []pointsForm) {
	f := pointsForm{depth: depth, turn: 1, rows: 2, threads: 512, blocks: 1}
	if p.dims == 2 {
		f.turn, f.rows = 4, 1
	}
	if len(p.fields) > 2 {
		f.rows = 1
	}
	if len(p.arrays) > 6 {
		f.threads = 256 // each has twice the registers
	}
	if f, ok := p.largest(f, shared); ok {
		all = append(all, f)
	}
	f.threads, f.blocks = 256, 2
	if f, ok := p.largest(f, shared/2-reserved); ok && len(p.arrays) <= 6 {
		all = append(all, f)
	}
	return all
}

// largest returns the form with the tile of which the most is kept that shared memory has room for.
func (p *Points) largest(f pointsForm, shared int) (best pointsForm, ok bool) {
	wide, high := []int{64, 32, 16}, []int{64, 56, 48, 40, 32, 24, 16, 8}
	if p.dims == 2 {
		wide, high = []int{512, 256, 128, 64, 32}, []int{1}
	}
	most := 0.0
	for _, f.wide = range wide {
		for _, f.high = range high {
			_, bytes := p.rings(f)
			if kept := float64(f.wide*f.high) / float64(p.area(f)); bytes <= shared && kept > 0.3 && kept > 1.05*most {
				best, most, ok = f, kept, true
			}
		}
	}
	return best, ok
}

// shapeOf returns the kernel of a form.
func (p *Points) shapeOf(f pointsForm, argument int) shape {
	_, shared := p.rings(f)
	axis := p.dims - 1
	return shape{
		depth: f.depth, cost: 1 + 0.8*float64(f.depth-1), name: "pass_points", threads: f.threads, shared: shared, tile: [3]int{f.wide, f.high, 0}, axis: axis,
		warmUp: f.depth * (p.radius.Minus[axis] + p.radius.Plus[axis] + f.turn), vector: 1, beside: f.blocks,
		program: p.body.Program("pass_points.cu", p.like, kernels.Header{Name: "levels.cuh", Text: p.levelsSource(f, argument)}),
	}
}

// argument returns struct PointPass of pass_points.cu, and where its frame begins.
func (p *Points) argument(arrays sweep.Arrays, box domain.Box, sides []Sides, chunk int) (bytes []byte, frame int) {
	bytes = p.body.ArraysArgument(arrays)
	size := box.Size()
	for _, n := range slices.Concat(box.Lo[:], size[:], []int{chunk}) {
		bytes = binary.NativeEndian.AppendUint64(bytes, uint64(n))
	}
	for _, f := range p.fields {
		for _, side := range p.sidesOf(sides, f) {
			bytes = binary.NativeEndian.AppendUint32(bytes, uint32(side))
		}
	}
	return append(bytes, p.body.FrameArgument()...), len(bytes)
}

// onGPU makes a pass ready on a GPU.
func (p *Points) onGPU(name string, s shape, arrays sweep.Arrays, box domain.Box, sides []Sides) (*sweep.Launch, error) {
	if err := checkLength(box.Size()); err != nil {
		return nil, err
	}
	if !p.body.Alike(arrays, p.like) {
		return nil, fmt.Errorf("temporal: a pass between arrays whose rows and planes lie otherwise than those of NewPoints")
	}
	grid, chunk, err := s.grid(box.Size(), 0, p.device.Cores*max(1, s.beside))
	if err != nil {
		return nil, err
	}
	spec := p.spec(name, arrays)
	if spec.Function, err = p.gpu.function(s); err != nil {
		return nil, p.body.Explain(err)
	}
	spec.Grid, spec.Block, spec.Shared = grid, [3]int{s.threads, 1, 1}, s.shared
	var frame int
	spec.Argument, frame = p.argument(arrays, box, sides, chunk)
	k, err := p.device.NewKernel(spec)
	if err != nil {
		return nil, err
	}
	return p.body.Launch(k, frame), nil
}
