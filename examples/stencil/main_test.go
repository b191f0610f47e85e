package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/examples/internal/exampletest"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
)

func TestMain(m *testing.M) { exampletest.Main(m, "stencil.cu") }

// reference sweeps a field without boxes, with 0 outside, from the definition of the stencils.
func reference(n [3]int, steps int) []float64 {
	field := map[[3]int]float64{}
	all := func(f func(p [3]int)) {
		for z := range n[2] {
			for y := range n[1] {
				for x := range n[0] {
					f([3]int{x, y, z})
				}
			}
		}
	}
	all(func(p [3]int) { field[p] = value(p) })
	for range steps {
		next := map[[3]int]float64{}
		all(func(p [3]int) {
			x, y, z := p[0], p[1], p[2]
			sides := field[[3]int{x - 1, y, z}] + field[[3]int{x + 1, y, z}] + field[[3]int{x, y - 1, z}] + field[[3]int{x, y + 1, z}]
			corners := 0.0
			if n[2] == 1 {
				corners = field[[3]int{x - 1, y - 1, z}] + field[[3]int{x + 1, y - 1, z}] + field[[3]int{x - 1, y + 1, z}] + field[[3]int{x + 1, y + 1, z}]
			} else {
				sides += field[[3]int{x, y, z - 1}] + field[[3]int{x, y, z + 1}]
			}
			next[p] = 0.4*field[p] + 0.1*sides + 0.05*corners
		})
		field = next
	}
	var values []float64
	all(func(p [3]int) { values = append(values, field[p]) })
	return values
}

// The field has the same bits on any number of devices by any engine, and those of the reference up to rounding.
func TestStencil(t *testing.T) {
	for _, c := range []struct {
		size  string
		n     [3]int
		width int
	}{{"23x17", [3]int{23, 17, 1}, 1}, {"9x12x10", [3]int{9, 12, 10}, 2}} {
		const steps = 5
		want, sums := reference(c.n, steps), map[uint32]string{}
		for devices := 1; devices <= 4; devices++ {
			for _, engine := range []string{"auto", "copies", "transform"} {
				name := fmt.Sprintf("size=%s/devices=%d/engine=%s", c.size, devices, engine)
				t.Run(name, func(t *testing.T) {
					testdevices.EachKernel(t, devices, func(t *testing.T, s *testdevices.Set) {
						if len(s.Devices) < devices || testdevices.OnCPU(s.Devices[0]) && (devices != 2 || engine != "copies") {
							t.Skip("SKIPPED: too few devices, or tested with another engine")
						}
						x := &stencil{Size: c.size, Width: c.width}
						x.Engine, x.Each, x.Steps, x.Path = engine, engine == "transform", steps, "staged"
						defer x.Close()
						test.Check(t, x.open(exampletest.Session(s, devices)))
						field := test.Must(x.run(io.Discard))(t)
						for i := range want {
							if math.Abs(field[i]-want[i]) > 1e-12 {
								t.Fatalf("value %d is %v, the reference has %v", i, field[i], want[i])
							}
						}
						if sums[example.ChecksumOf(field)] = name; len(sums) > 1 {
							t.Errorf("the bits differ: %v", sums)
						}
					})
				})
			}
		}
	}
}

func TestRejects(t *testing.T) {
	for flags, want := range map[string]string{
		"--size 4":               "--size must be NxN or NxNxN, got 4",
		"--size 4x0":             "--size must be NxN or NxNxN, got 4x0",
		"--steps 0":              "--steps must be at least 1",
		"--width 0":              "--width must be at least 1",
		"--width 9 --size 16x16": "--width 9 is more than the points of a device along axis 1",
		"--engine fast":          `must be one of`,
	} {
		err := newProgram().Command(t.Context(), strings.Fields("--backend host --devices 2 "+flags), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", flags, err, want)
		}
	}
}
