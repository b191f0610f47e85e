// Grayscott grows the patterns of the Gray-Scott model on a periodic plane, on
// all GPUs of the machine or on host devices where there is none. Its two fields
// travel in one message a neighbour, and its stencil of nine points needs corners.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed grayscott.cu
var text string
var source = kernels.Source{Name: "grayscott.cu", Text: text}

// rates are what the model depends on, a step each.
type rates struct{ DiffuseU, DiffuseV, Feed, Kill float64 }

var coral = rates{DiffuseU: 0.2, DiffuseV: 0.1, Feed: 0.0545, Kill: 0.062} // grows like one

var spec = halo.Spec{Name: "share", Element: halo.Float64, Width: domain.UniformRadius(2, 1), Connectivity: halo.Corners} // u, v

// arguments is struct GrayScott of grayscott.cu.
type arguments struct {
	NextU, NextV, U, V kernels.View
	Rates              rates
}

// newField returns a field with one value in a square in the middle, another around.
func newField(place *halo.Placement, inside, around float64) (*halo.Field, error) {
	f, err := halo.NewField(place, spec)
	if err != nil {
		return nil, err
	}
	lo, hi := place.Grid.Size[0]*3/8, place.Grid.Size[0]*5/8
	return f, halo.FillPoints(f, func(at domain.Vec) float64 {
		if min(at[0], at[1]) >= lo && max(at[0], at[1]) < hi {
			return inside
		}
		return around
	})
}

// laplacian is that of grayscott.cu, at element i.
func laplacian(f kernels.Values[float64], i int) float64 {
	south, north := f.Data[i-f.Pitch-1:], f.Data[i+f.Pitch-1:]
	faces := f.Data[i-1] + f.Data[i+1] + south[1] + north[1]
	corners := south[0] + south[2] + north[0] + north[2]
	return 0.2*faces + 0.05*corners - f.Data[i]
}

// sweep makes the step from now to next, of u and v, ready on some boxes.
func sweep(session *halo.Session, next, now []*halo.Field, r rates, rank int, boxes []domain.Box) (*streams.Kernel, error) {
	device := now[0].Placement.Devices[rank]
	step, err := session.Compiler.Functions(device, source, "grayscott")
	if err != nil {
		return nil, err
	}
	a := []kernels.Array{next[0].Parts[rank], next[1].Parts[rank], now[0].Parts[rank], now[1].Parts[rank]}
	nextU, nextV := kernels.ValuesOf[float64](a[0]), kernels.ValuesOf[float64](a[1])
	u, v := kernels.ValuesOf[float64](a[2]), kernels.ValuesOf[float64](a[3])
	return kernels.Points(device, kernels.PointSpec[arguments]{
		Name: "grayscott", Arrays: a, Boxes: boxes,
		Function: step[0], Argument: arguments{a[0].View(), a[1].View(), a[2].View(), a[3].View(), r},
		Row: func(x0, x1, y, _ int) {
			for i := u.Index(x0, y, 0); i < u.Index(x1, y, 0); i++ {
				made := u.Data[i] * v.Data[i] * v.Data[i]
				nextU.Data[i] = u.Data[i] + r.DiffuseU*laplacian(u, i) - made + r.Feed*(1-u.Data[i])
				nextV.Data[i] = v.Data[i] + r.DiffuseV*laplacian(v, i) + made - (r.Feed+r.Kill)*v.Data[i]
			}
		},
	})
}

// run makes the given number of steps on n^2 points and returns u, then v.
func run(ctx context.Context, session *halo.Session, n, steps int, r rates) ([]float64, error) {
	place, err := session.Cut(ctx, halo.Cutting{Size: []int{n, n}, Periodic: [3]bool{true, true}, Fields: []halo.Spec{spec, spec}})
	if err != nil {
		return nil, err
	}
	at, err := place.NewStreams()
	if err != nil {
		return nil, err
	}

	// Two times take turns: step i writes u and v of fields[i%2].
	var fields [2][]*halo.Field
	var exchange [2]*halo.Exchanger
	for i := range fields {
		u, err1 := newField(place, 0.5, 1)
		v, err2 := newField(place, 0.25, 0)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		fields[i] = []*halo.Field{u, v}
		if exchange[i], err = session.NewExchanger(ctx, u, v); err != nil {
			return nil, err
		}
	}
	var boundary, interior [2][]*streams.Kernel
	for i := range fields {
		boundary[i], interior[i], err = place.Kernels(spec.Width, func(rank int, boxes []domain.Box) (*streams.Kernel, error) {
			return sweep(session, fields[i], fields[1-i], r, rank, boxes)
		})
		if err != nil {
			return nil, err
		}
	}

	// What neighbours need is swept first, and travels while the rest is swept.
	for step := 1; step <= steps; step++ {
		i := step % 2
		if err := errors.Join(at.Launch(boundary[i]), exchange[i].Start(at), at.Launch(interior[i]), exchange[i].Wait(at)); err != nil {
			return nil, err
		}
	}
	if err := at.Sync(time.Minute); err != nil {
		return nil, err
	}
	u, err1 := halo.ReadAll[float64](fields[steps%2][0])
	v, err2 := halo.ReadAll[float64](fields[steps%2][1])
	return append(u, v...), errors.Join(err1, err2)
}

func main() {
	devices, steps := flag.Int("devices", 0, "how many devices; 0 for all"), flag.Int("steps", 1000, "steps")
	n := flag.Int("n", 256, "points along each axis")
	flag.Parse()
	session, err := halo.Open(context.Background(), halo.Devices{Count: *devices})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	values, err := run(context.Background(), session, *n, *steps, coral)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("grayscott: %d steps on %d^2 points, %v: v is at most %.9f\n", *steps, *n, session, slices.Max(values[len(values)/2:]))
}
