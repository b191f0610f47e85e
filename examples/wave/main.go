// Wave solves the wave equation in the unit cube, with walls that hold it at 0,
// on all GPUs of the machine or on host devices where there is none. The kernel
// is its own. It starts in the lowest standing wave, which the leap-frog scheme
// keeps to the last digits if it swings at the scheme's own frequency.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed wave.cu
var text string

var source = kernels.Source{Name: "wave.cu", Text: text}

// arguments is struct Wave of wave.cu.
type arguments struct {
	Next, Now kernels.View
	Courant2  float64
}

const courant = 0.5 // c dt/h; the scheme is stable up to 1/sqrt(3)

// standing is the lowest standing wave on n^3 points at the given step.
func standing(n, step int) func(p domain.Vec) float64 {
	h := math.Pi / float64(n+1)
	swing := math.Cos(2 * math.Asin(courant*math.Sqrt(3)*math.Sin(h/2)) * float64(step))
	inside := domain.Box{Hi: domain.Vec{n, n, n}}
	return func(p domain.Vec) float64 {
		if !inside.Contains(p) {
			return 0
		}
		return swing * math.Sin(h*float64(p[0]+1)) * math.Sin(h*float64(p[1]+1)) * math.Sin(h*float64(p[2]+1))
	}
}

// sweep makes the step that writes next ready, on some boxes of a subdomain.
func sweep(session *halo.Session, next, now *halo.Field, rank int, boxes []domain.Box) (*streams.Kernel, error) {
	device := next.Placement.Devices[rank]
	wave, err := session.Compiler.Functions(device, source, "wave")
	if err != nil {
		return nil, err
	}
	to, from := next.Parts[rank], now.Parts[rank]
	n, u := kernels.ValuesOf[float64](to), kernels.ValuesOf[float64](from)
	return kernels.Points(device, kernels.PointSpec[arguments]{
		Name: "wave", Arrays: []kernels.Array{to, from}, Boxes: boxes,
		Function: wave[0], Argument: arguments{to.View(), from.View(), courant * courant},
		Row: func(x0, x1, y, z int) {
			for i := u.Index(x0, y, z); i < u.Index(x1, y, z); i++ {
				sum := u.Data[i-1] + u.Data[i+1] + u.Data[i-u.Pitch] + u.Data[i+u.Pitch] + u.Data[i-u.Plane] + u.Data[i+u.Plane]
				n.Data[i] = 2*u.Data[i] - n.Data[i] + courant*courant*(sum-6*u.Data[i])
			}
		},
	})
}

// run makes the given number of steps on n^3 points and returns the field.
func run(ctx context.Context, session *halo.Session, n, steps int) ([]float64, error) {
	width := domain.UniformRadius(3, 1)
	spec := halo.Spec{Name: "u", Element: halo.Float64, Width: width}
	place, err := session.Cut(ctx, halo.Cutting{Size: []int{n, n, n}, Fields: []halo.Spec{spec}})
	if err != nil {
		return nil, err
	}
	at, err := place.NewStreams()
	if err != nil {
		return nil, err
	}

	// Two fields take turns: step i writes u[i%2], which holds step i-2 before.
	var u [2]*halo.Field
	var exchange [2]*halo.Exchanger
	for i := range u {
		if u[i], err = halo.NewField(place, spec); err != nil {
			return nil, err
		}
		if exchange[i], err = session.NewExchanger(ctx, u[i]); err != nil {
			return nil, err
		}
		if err = halo.FillPoints(u[i], standing(n, -i)); err != nil {
			return nil, err
		}
	}
	var boundary, interior [2][]*streams.Kernel
	for i := range u {
		boundary[i], interior[i], err = place.Kernels(width, func(rank int, boxes []domain.Box) (*streams.Kernel, error) {
			return sweep(session, u[i], u[1-i], rank, boxes)
		})
		if err != nil {
			return nil, err
		}
	}

	// What neighbours need is swept first, and travels while the rest is swept.
	for step := 1; step <= steps; step++ {
		i := step % 2
		err := errors.Join(at.Launch(boundary[i]), exchange[i].Start(at), at.Launch(interior[i]), exchange[i].Wait(at))
		if err != nil {
			return nil, err
		}
	}
	if err := at.Sync(time.Minute); err != nil {
		return nil, err
	}
	return halo.ReadAll[float64](u[steps%2])
}

// worst returns how far the field is off the standing wave.
func worst(values []float64, n, step int) (off float64) {
	exact := standing(n, step)
	for i, v := range values {
		off = max(off, math.Abs(v-exact(domain.Vec{i % n, i / n % n, i / n / n})))
	}
	return off
}

func main() {
	devices := flag.Int("devices", 0, "how many devices; 0 for all")
	n := flag.Int("n", 96, "points along each axis")
	steps := flag.Int("steps", 200, "steps")
	flag.Parse()
	ctx := context.Background()
	session, err := halo.Open(ctx, halo.Devices{Count: *devices})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	values, err := run(ctx, session, *n, *steps)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("wave: %d steps on %d^3 points, %v: at most %.1e off the standing wave\n", *steps, *n, session, worst(values, *n, *steps))
}
