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

func TestMain(m *testing.M) { exampletest.Main(m, "nbody.cu") }

// body is a particle of the reference.
type body struct{ at, velocity [3]float64 }

// acceleration is the sum over all others of mass over the square of the distance, softened, along the direction.
func acceleration(all []body, i int) (a [3]float64) {
	for j := range all {
		if j == i {
			continue
		}
		square := 1e-4
		for k := range 3 {
			square += math.Pow(all[j].at[k]-all[i].at[k], 2)
		}
		for k := range 3 {
			a[k] += (all[j].at[k] - all[i].at[k]) / math.Pow(square, 1.5) / float64(len(all))
		}
	}
	return a
}

// reference moves particles by velocity Verlet, which is the leapfrog method with velocities at whole steps.
func reference(n, steps int, time float64) []body {
	all, dt := make([]body, n), time/float64(steps)
	for i := range all {
		for k := range 3 {
			all[i].at[k] = example.Uniform(example.Hash(uint64(i), uint64(k)))
		}
	}
	accelerations := func() (as [][3]float64) {
		for i := range all {
			as = append(as, acceleration(all, i))
		}
		return as
	}
	before := accelerations()
	for range steps {
		for i := range all {
			for k := range 3 {
				all[i].at[k] += dt*all[i].velocity[k] + dt*dt/2*before[i][k]
			}
		}
		after := accelerations()
		for i := range all {
			for k := range 3 {
				all[i].velocity[k] += dt / 2 * (before[i][k] + after[i][k])
			}
		}
		before = after
	}
	return all
}

// The paths are those of the reference, and have the same bits on any number of devices by any engine.
func TestPaths(t *testing.T) {
	const total, steps, time = 24, 6, 0.05
	want, sums := reference(total, steps, time), map[uint32]string{}
	for devices := 1; devices <= 4; devices++ {
		for _, engine := range []string{"auto", "copies", "transform"} {
			name := fmt.Sprintf("devices=%d/engine=%s", devices, engine)
			t.Run(name, func(t *testing.T) {
				testdevices.EachKernel(t, devices, func(t *testing.T, s *testdevices.Set) {
					if len(s.Devices) < devices || testdevices.OnCPU(s.Devices[0]) && (devices != 2 || engine != "copies") {
						t.Skip("SKIPPED: too few devices, or tested with another engine")
					}
					x := &nbody{Count: total / devices, Time: time, Complex: engine != "auto"}
					x.Engine, x.Each, x.Steps, x.Path = engine, engine == "transform", steps, "staged"
					defer x.Close()
					test.Check(t, x.open(exampletest.Session(s, devices)))
					all := test.Must(x.run(io.Discard))(t)
					var paths []float64
					for i, w := range want {
						p := all[i*x.stride():]
						for k := range 3 {
							if math.Abs(p[k]-w.at[k]) > 1e-12 || math.Abs(p[velocity+k]-w.velocity[k]) > 1e-10 {
								t.Fatalf("particle %d is at %v with velocity %v, the reference has %+v", i, p[:3], p[velocity:][:3], w)
							}
						}
						paths = append(paths, p[:6]...)
					}
					if sums[example.ChecksumOf(paths)] = name; len(sums) > 1 {
						t.Errorf("the bits differ: %v", sums)
					}
				})
			})
		}
	}
}

// The energy changes by a quarter if steps are half as long: the method is of second order.
func TestEnergy(t *testing.T) {
	s := exampletest.Session(testdevices.Host(t, 2), 2)
	var changes []float64
	for _, steps := range []int{64, 128, 256} {
		x := &nbody{Count: 16, Time: 0.1}
		x.Engine, x.Steps, x.Path = "auto", steps, "auto"
		test.Check(t, x.open(s))
		before := x.energy(x.initial())
		changes = append(changes, x.energy(test.Must(x.run(io.Discard))(t))/before-1)
		test.Check(t, x.Close())
	}
	for i, change := range changes[1:] {
		if r := changes[i] / change; r < 3 || r > 5 {
			t.Errorf("energy changes by %v of it: a half step divides it by %v, not 4", changes, r)
		}
	}
}

func TestRejects(t *testing.T) {
	for flags, want := range map[string]string{
		"--particles 0": "--particles must be at least 1",
		"--time 0":      "--time above 0",
		"--steps 0":     "--steps must be at least 1",
		"--path fast":   "the path must be",
	} {
		err := newProgram().Command(t.Context(), strings.Fields("--backend host --devices 2 "+flags), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", flags, err, want)
		}
	}
}
