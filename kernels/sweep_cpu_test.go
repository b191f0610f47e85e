package kernels

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

//go:embed testdata/sweep_on_cpu.cc
var sweepOnCPU string // the main program after sweep.cu

// onCPU is sweep.cu for one stencil, compiled for the CPU.
type onCPU[T rows.Float] struct {
	t       *testing.T
	sweeper Sweeper
	memory  *streams.Memory // for its address, which is aligned
	in      io.Writer
	out     io.Reader
}

// newOnCPU compiles the source that a GPU would run, and starts it.
func newOnCPU[T rows.Float](t *testing.T, s stencil.Stencil, r Real) *onCPU[T] {
	t.Helper()
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("SKIPPED: no C++ compiler: ", err)
	}
	p := sweepProgram(s, r)
	in, out := startOnCPU(t, compiler, p, map[string]func(string) string{"sweep.cu": func(text string) string {
		return strings.Replace(text, "#include \"large.cuh\"\n", "#define reduce_block reduce_block_on_gpu\n#include \"large.cuh\"\n#undef reduce_block\n"+
			"static NormSum block_total;\nstatic void reduce_block(const NormSum &f, NormSum *result) { block_total.add(f), *result = block_total; }\n", 1)
	}}, kernelTable("Sweep", sweepNames(formOf(s, r)))+sweepOnCPU)
	devices, err := streams.HostPlatform(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { streams.CloseAll(devices) })
	memory, err := devices[0].Alloc(8)
	if err != nil {
		t.Fatal(err)
	}
	form := formOf(s, r)
	return &onCPU[T]{t, Sweeper{stencil: s, real: r, form: form, shape: form.shapes[0]}, memory, in, out}
}

// kernelTable is C++ for a table of kernels by name.
func kernelTable(argument string, names []string) string {
	table := "\nstatic const struct { const char *name; void (*run)(" + argument + "); } kernels[] = {\n"
	for _, name := range names {
		table += fmt.Sprintf("{%q, %s},\n", name, name)
	}
	return table + "};\n"
}

// writeSources writes the sources of a program, of which some files are changed, and what stands for CUDA,
// to a folder.
func writeSources(t *testing.T, p Program, change map[string]func(string) string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	files, err := p.source()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, sourcesForCPU); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "cu")
	for _, file := range append(files.Headers, nvrtc.Header{Name: p.File, Text: files.Text}) {
		if f := change[file.Name]; f != nil {
			file.Text = f(file.Text)
		}
		if err := os.WriteFile(filepath.Join(dir, file.Name), []byte(file.Text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// startOnCPU compiles a program, of which some files are changed, with a main program behind it, and
// starts what came of it.
func startOnCPU(t *testing.T, compiler string, p Program, change map[string]func(string) string, main string) (io.Writer, io.Reader) {
	t.Helper()
	dir := writeSources(t, p, change)
	main = "#include \"cpu/cuda.h\"\n#include \"" + p.File + "\"\n" + main
	if err := os.WriteFile(filepath.Join(dir, "main.cc"), []byte(main), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"-std=c++17", "-O1", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-o", filepath.Join(dir, "kernels"), filepath.Join(dir, "main.cc")}
	for _, d := range p.Defines {
		args = append(args, "-D"+d)
	}
	build := exec.Command(compiler, args...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	run := exec.Command(filepath.Join(dir, "kernels"))
	run.Stderr = os.Stderr
	in, _ := run.StdinPipe()
	out, _ := run.StdoutPipe()
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := run.Wait(); err != nil {
			t.Error(err)
		}
	})
	return in, out
}

// launch runs one launch on arrays of these values and returns what dst then holds, and
// the norms.
func (c *onCPU[T]) launch(k sweepLaunch, variant string, src, dst []T) ([]T, []Norms) {
	c.t.Helper()
	var b bytes.Buffer
	var name [32]byte
	copy(name[:], k.kernel+variant)
	b.Write(name[:])
	for _, v := range [][3]int{k.grid, k.block} {
		binary.Write(&b, binary.NativeEndian, [3]int32{int32(v[0]), int32(v[1]), int32(v[2])})
	}
	slots := int64(0)
	if variant != "" {
		slots = k.blocks()
	}
	binary.Write(&b, binary.NativeEndian, []int64{int64(len(src)), slots})
	b.Write(argument(&k.arg))
	binary.Write(&b, binary.NativeEndian, src)
	binary.Write(&b, binary.NativeEndian, dst)
	go c.in.Write(b.Bytes())
	got, norms := make([]T, len(dst)), make([]Norms, slots)
	if err := binary.Read(c.out, binary.NativeEndian, got); err != nil {
		c.t.Fatal(err)
	}
	for i := range norms {
		var v [4]float64
		if err := binary.Read(c.out, binary.NativeEndian, &v); err != nil {
			c.t.Fatal(err)
		}
		norms[i] = Norms{MaxChange: v[0], SumChange2: v[1], Max: v[2], Sum2: v[3]}
	}
	return got, norms
}

// PlainSum is the stencil at one point, as stencil.Stencil defines it; for tests from outside too.
func PlainSum[T rows.Float](s stencil.Stencil, l domain.Layout, v []T, p domain.Vec) T {
	u := T(T(s.Centre) * v[l.Offset(p)])
	for _, g := range s.Groups {
		var sum T
		for i, part := range g.Parts {
			one := v[l.Offset(p.Add(part[0]))]
			for _, o := range part[1:] {
				one += v[l.Offset(p.Add(o))]
			}
			if i == 0 {
				sum = one
			} else {
				sum += one
			}
		}
		u += T(T(g.Weight) * sum)
	}
	return u
}

// check runs a launch over the boxes, without and with norms, and compares with plain
// loops. Nothing but the boxes changes.
func (c *onCPU[T]) check(l domain.Layout, boxes []domain.Box, shape Shape) {
	c.t.Helper()
	src, dst := randoms[T](l.Length), randoms[T](l.Length)
	a := Array{Data: c.memory.All(), Layout: l}
	k := c.sweeper.launchOf(a, a, boxes, shape)
	want, sum := append([]T(nil), dst...), Norms{}
	for _, b := range boxes {
		eachRow(l, b, func(first int64) {
			for i := range int64(b.Size()[0]) {
				p := pointAt(l, first+i)
				u := PlainSum(c.sweeper.stencil, l, src, p)
				want[first+i] = u
				d := float64(u) - float64(src[first+i])
				sum.Add(Norms{MaxChange: math.Abs(d), SumChange2: d * d, Max: math.Abs(float64(u)), Sum2: float64(u) * float64(u)})
			}
		})
	}
	for _, variant := range []string{"", withNorms} {
		if variant == withNorms {
			k = c.sweeper.launchOf(a, a, boxes, c.sweeper.form.measured(shape))
		}
		got, norms := c.launch(k, variant, src, dst)
		for i := range want {
			if got[i] != want[i] && (got[i] == got[i] || want[i] == want[i]) {
				c.t.Fatalf("%s%s, boxes %v, shape %v: element %d (point %v) is %v, not %v", k.kernel, variant, boxes, shape,
					i, pointAt(l, int64(i)), got[i], want[i])
			}
		}
		if variant == "" {
			continue
		}
		var total Norms
		for _, n := range norms {
			total.Add(n)
		}
		if total.MaxChange != sum.MaxChange || total.Max != sum.Max || math.Abs(total.SumChange2-sum.SumChange2) > 1e-12*sum.SumChange2 ||
			math.Abs(total.Sum2-sum.Sum2) > 1e-12*sum.Sum2 {
			c.t.Fatalf("%s, boxes %v, shape %v: norms %+v, not %+v", k.kernel, boxes, shape, total, sum)
		}
	}
}

// pointAt is the inverse of Layout.Offset.
func pointAt(l domain.Layout, o int64) domain.Vec {
	o -= l.Offset(l.Owned.Lo) - int64(l.Width.Minus[2])*l.Plane - int64(l.Width.Minus[1])*l.Pitch - int64(l.Width.Minus[0])
	p := domain.Vec{int(o % l.Pitch), int(o % l.Plane / l.Pitch), int(o / l.Plane)}
	return p.Add(l.Owned.Lo).Sub(l.Width.Minus)
}

func randoms[T rows.Float](n int64) []T {
	v := make([]T, n)
	for i := range v {
		v[i] = T(rand.NormFloat64())
	}
	return v
}

// The kernels of sweep.cu, run on the CPU, give the bits of plain loops for every stencil,
// over boxes that begin and end anywhere, and touch nothing else.
func TestSweepKernelsOnCPU(t *testing.T) {
	for _, s := range everyStencil() {
		name := fmt.Sprintf("dims=%d/points=%d/groups=%d", s.Dims, s.Points(), len(s.Groups))
		t.Run(name+"/float64", func(t *testing.T) { sweepsOnCPU(t, newOnCPU[float64](t, s, Float64)) })
		t.Run(name+"/float32", func(t *testing.T) { sweepsOnCPU(t, newOnCPU[float32](t, s, Float32)) })
	}
}

func sweepsOnCPU[T rows.Float](t *testing.T, c *onCPU[T]) {
	t.Parallel()
	dims, reach := c.sweeper.stencil.Dims, c.sweeper.stencil.Radius()
	layout := func(n domain.Vec) domain.Layout {
		if dims == 2 {
			n[1], n[2] = n[1]*n[2], 1
		}
		l, err := domain.NewLayout(domain.Box{Hi: n}, reach, c.sweeper.real.Size())
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for width := 1; width <= 40; width++ { // large boxes and thin ones
		l := layout(domain.Vec{40, 3, 9})
		for _, from := range []int{0, 1, 2, 3, 7} {
			b := l.Owned
			b.Lo[0], b.Hi[0] = from, min(40, from+width)
			c.check(l, []domain.Box{b}, c.sweeper.shape)
		}
	}
	l := layout(domain.Vec{37, 5, 11})
	for _, shape := range c.sweeper.form.shapes {
		c.check(l, []domain.Box{l.Owned}, shape)
	}
	inner, slabs := domain.Split(l.Owned, reach)
	c.check(l, slabs, c.sweeper.shape)
	c.check(l, []domain.Box{inner}, c.sweeper.shape)
	for _, n := range []domain.Vec{{400, 2, 60}, {20, 37, 9}, {40, 1, 16}} { // several blocks along x and along y; one row
		l = layout(n)
		c.check(l, []domain.Box{l.Owned}, c.sweeper.shape)
	}
	strided, err := domain.NewStridedLayout(domain.Box{Hi: domain.Vec{21, 9, 1}}, reach, c.sweeper.real.Size(), 1801, 37, 37*19)
	if err != nil {
		t.Fatal(err)
	}
	c.check(strided, []domain.Box{strided.Owned}, c.sweeper.shape)
}
