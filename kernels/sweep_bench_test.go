package kernels_test

import (
	"bytes"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// swept is a grid to time sweeps over: n points along each axis.
type swept struct {
	dims, n int
	real    kernels.Real
}

func (s swept) String() string {
	return fmt.Sprintf("dims=%d/equal=true/type=%s/size=%d", s.dims, s.real, s.n)
}

// BenchmarkSweep times one sweep on one core: with testdata/sweep.c compiled
// for this machine, by a host device that sweeps the whole box, and by one that
// sweeps the boundary region and then the interior, as overlapping schemes do.
// It reports the fastest sweep of many as ns/op and Mpoint/s, and for a host
// device also how many times as fast as C it was.
func BenchmarkSweep(b *testing.B) {
	for _, s := range []swept{
		{3, 256, kernels.Float64}, {3, 256, kernels.Float32},
		{2, 4096, kernels.Float64}, {2, 4096, kernels.Float32},
	} {
		inC := 0.0
		run := func(impl string, time func(b *testing.B) float64) (took float64) {
			b.Run("impl="+impl+"/"+s.String(), func(b *testing.B) {
				took = time(b)
				report(b, took, cube(s.dims, s.n).Points())
				if inC > 0 {
					b.ReportMetric(inC/took, "of-C")
				}
			})
			return took
		}
		inC = run("c", s.inC)
		run("host", func(b *testing.B) float64 { return s.onHost(b, cube(s.dims, s.n)) })
		run("host-split", func(b *testing.B) float64 {
			interior, boundary := domain.Split(cube(s.dims, s.n), domain.UniformRadius(s.dims, 1))
			return s.onHost(b, append(boundary, interior)...)
		})
	}
}

// onHost times a sweep of the boxes: one launch for the last of them and one
// for those before it. A step is two sweeps, there and back, as in a solver.
func (s swept) onHost(b *testing.B, boxes ...domain.Box) float64 {
	d := newBed(b)
	sweeper := ready(d.compiler.NewSweeper(d.device, isotropic(s.dims), s.real))(b)
	one, other := d.array(cube(s.dims, s.n), s.dims, s.real), d.array(cube(s.dims, s.n), s.dims, s.real)
	var launches []*streams.Kernel
	for _, way := range [][2]kernels.Array{{one, other}, {other, one}} {
		last := len(boxes) - 1
		for _, part := range [][]domain.Box{boxes[:last], boxes[last:]} {
			if len(part) > 0 {
				launches = append(launches, ready(sweeper.Sweep(way[0], way[1], part...))(b))
			}
		}
	}
	return d.fastest(launches...) / 2
}

// inC builds the C program for the type and times it.
func (s swept) inC(b *testing.B) float64 {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		b.Skip("no C compiler:", err)
	}
	kind := map[kernels.Real]string{kernels.Float32: "float", kernels.Float64: "double"}[s.real]
	program := filepath.Join(b.TempDir(), "sweep")
	build := exec.Command(compiler, "-O3", "-march=native", "-DFLOAT="+kind, "-o", program,
		filepath.Join("testdata", "sweep.c"))
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %v\n%s", build, err, out)
	}
	best := math.Inf(1)
	for b.Loop() {
		best = min(best, s.runC(b, program))
	}
	return best
}

// runC runs the program for a number of sweeps and returns the time it prints.
func (s swept) runC(b *testing.B, program string) float64 {
	var problem bytes.Buffer
	run := exec.Command(program, strconv.Itoa(s.dims), strconv.Itoa(s.n), "41")
	run.Stderr = &problem
	out, err := run.Output()
	if err != nil {
		b.Fatalf("%v: %v\n%s", run, err, &problem)
	}
	fastest, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		b.Fatal(err)
	}
	return fastest
}
