package rows

import (
	"bytes"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// size is the number of points on each axis of the grids that are swept.
const size = 256

// BenchmarkSweep times one sweep of the 7-point stencil over a cube, on one
// core: with the Go loops, with Star7, and with testdata/sweep.c compiled for
// this machine. It reports the fastest sweep, because whatever else a machine
// does only ever makes one slower, as ns/op and Mpoint/s; for C also how many
// times as fast as C the rows of this package were.
func BenchmarkSweep(b *testing.B) {
	b.Run("impl=go", func(b *testing.B) { benchmarkTypes(b, goSweeps[float64](star7Loop), goSweeps[float32](star7Loop)) })
	rows := map[string]float64{}
	b.Run("impl=rows", func(b *testing.B) {
		rows = benchmarkTypes(b, goSweeps[float64](Star7), goSweeps[float32](Star7))
	})
	b.Run("impl=c", func(b *testing.B) {
		compare := func(run sweeps, name string) sweeps {
			return func(b *testing.B) float64 {
				fastest := run(b)
				if ours := rows[name]; ours > 0 {
					b.ReportMetric(fastest/ours, "rows/c")
				}
				return fastest
			}
		}
		benchmarkTypes(b, compare(cSweeps("double"), "float64"), compare(cSweeps("float"), "float32"))
	})
}

// sweeps runs sweeps and returns the time of the fastest in nanoseconds.
type sweeps func(*testing.B) float64

// benchmarkTypes runs and reports a benchmark for each type, and returns the
// times by type.
func benchmarkTypes(b *testing.B, double, single sweeps) map[string]float64 {
	times := map[string]float64{}
	for _, kind := range []struct {
		name string
		run  sweeps
	}{{"float64", double}, {"float32", single}} {
		b.Run(fmt.Sprintf("type=%s/size=%d", kind.name, size), func(b *testing.B) {
			fastest := kind.run(b)
			times[kind.name] = fastest
			b.ReportMetric(fastest, "ns/op")
			b.ReportMetric(math.Pow(size, 3)*1e3/fastest, "Mpoint/s")
		})
	}
	return times
}

// cube is a grid with one ghost layer. Point (x, y, z), counted from the first
// ghost, is points[z*plane+y*pitch+x]; x = 1 is aligned to 128 bytes.
type cube[T Float] struct {
	points       []T
	pitch, plane int
}

func newCube[T Float](n int) cube[T] {
	line := 128 / int(unsafe.Sizeof(T(0)))
	c := cube[T]{pitch: (n + 2 + line - 1) / line * line}
	c.plane = c.pitch * (n + 2)
	whole := make([]T, c.plane*(n+2)+2*line)
	skip := 0
	for uintptr(unsafe.Pointer(&whole[skip+1]))%128 != 0 {
		skip++
	}
	c.points = whole[skip : skip+c.plane*(n+2)]
	for i := range c.points {
		c.points[i] = T(i % 17)
	}
	return c
}

type star7Func[T Float] func(dst, centre, south, north, below, above []T, alpha, beta T)

// sweep applies the stencil row by row, in the order of memory.
func (c cube[T]) sweep(src cube[T], n int, star star7Func[T]) {
	at := func(first int) []T { return src.points[first:][:n] }
	for z := 1; z <= n; z++ {
		for y := 1; y <= n; y++ {
			i := z*c.plane + y*c.pitch + 1
			star(c.points[i:][:n], src.points[i-1:][:n+2], at(i-c.pitch), at(i+c.pitch),
				at(i-c.plane), at(i+c.plane), 0.1, 0.15)
		}
	}
}

func goSweeps[T Float](star star7Func[T]) sweeps {
	return func(b *testing.B) float64 {
		dst, src := newCube[T](size), newCube[T](size)
		for range 2 {
			dst.sweep(src, size, star)
			dst, src = src, dst
		}
		fastest := math.Inf(1)
		for b.Loop() {
			start := time.Now()
			dst.sweep(src, size, star)
			fastest = min(fastest, float64(time.Since(start)))
			dst, src = src, dst
		}
		return fastest
	}
}

// cSweeps builds and runs the C program for a type of C.
func cSweeps(kind string) sweeps {
	return func(b *testing.B) float64 {
		compiler, err := exec.LookPath("cc")
		if err != nil {
			b.Skip("no C compiler:", err)
		}
		program := filepath.Join(b.TempDir(), "sweep")
		build := exec.Command(compiler, "-O3", "-march=native", "-DFLOAT="+kind, "-o", program,
			filepath.Join("testdata", "sweep.c"))
		if out, err := build.CombinedOutput(); err != nil {
			b.Fatalf("%v: %v\n%s", build, err, out)
		}
		fastest := math.Inf(1)
		for b.Loop() {
			fastest = min(fastest, runC(b, program))
		}
		return fastest
	}
}

// runC runs the program for a number of sweeps and returns the time it prints.
func runC(b *testing.B, program string) float64 {
	var problem bytes.Buffer
	run := exec.Command(program, strconv.Itoa(size), "41")
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
