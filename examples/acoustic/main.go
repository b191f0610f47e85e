// Acoustic sends a clap of sound through a room with rigid walls, on all GPUs of
// the machine or on host devices where there is none. Pressure lies at the cells,
// each velocity between two cells of its axis: three fields with ghosts on one
// side each, and two exchanges a step.
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

//go:embed acoustic.cu
var text string
var source = kernels.Source{Name: "acoustic.cu", Text: text}
var sound = halo.Spec{Name: "sound", Element: halo.Float64, Width: domain.UniformRadius(2, 1)} // what cells need of each other

// arguments is struct Sound of acoustic.cu.
type arguments struct {
	P, VX, VY kernels.View
	Courant   float64
}

const courant = 0.5 // c dt/h; the scheme is stable up to 1/sqrt(2)

// room is the pressure p and the velocities vx and vy.
type room struct{ p, vx, vy *halo.Field }

// newRoom returns a room with a clap in it. A cell needs the pressure of the cells
// before it, and the velocities at the faces behind it.
func newRoom(place *halo.Placement) (room, error) {
	p, err1 := halo.NewField(place, halo.Spec{Name: "p", Element: halo.Float64, Width: domain.Radius{Minus: domain.Vec{1, 1}}})
	vx, err2 := halo.NewField(place, halo.Spec{Name: "vx", Element: halo.Float64, Width: domain.Radius{Plus: domain.Vec{1, 0}}, Stagger: [3]bool{0: true}})
	vy, err3 := halo.NewField(place, halo.Spec{Name: "vy", Element: halo.Float64, Width: domain.Radius{Plus: domain.Vec{0, 1}}, Stagger: [3]bool{1: true}})
	if err := errors.Join(err1, err2, err3); err != nil {
		return room{}, err
	}
	still := func(domain.Vec) float64 { return 0 }
	clap := func(at domain.Vec) float64 {
		dx, dy := float64(at[0]-place.Grid.Size[0]/3), float64(at[1]-place.Grid.Size[1]/3)
		return math.Exp(-(dx*dx + dy*dy) / 16)
	}
	return room{p, vx, vy}, errors.Join(halo.FillPoints(p, clap), halo.FillPoints(vx, still), halo.FillPoints(vy, still))
}

// newUpdate makes half a step ready: a kernel of acoustic.cu, with its host version,
// and the exchange of what it changes, of which neighbours need so many layers.
func newUpdate(ctx context.Context, session *halo.Session, r room, name string, host func(p, vx, vy values, x0, x1, y int), layers domain.Radius, changes ...*halo.Field) (func(at halo.Streams) error, error) {
	place := r.p.Placement
	boundary, interior, err1 := place.Kernels(layers, func(rank int, boxes []domain.Box) (*streams.Kernel, error) {
		f, err := session.Compiler.Functions(place.Devices[rank], source, name)
		if err != nil {
			return nil, err
		}
		a := []kernels.Array{r.p.Parts[rank], r.vx.Parts[rank], r.vy.Parts[rank]}
		p, vx, vy := kernels.ValuesOf[float64](a[0]), kernels.ValuesOf[float64](a[1]), kernels.ValuesOf[float64](a[2])
		return kernels.Points(place.Devices[rank], kernels.PointSpec[arguments]{
			Name: name, Arrays: a, Boxes: boxes,
			Function: f[0], Argument: arguments{a[0].View(), a[1].View(), a[2].View(), courant},
			Row: func(x0, x1, y, _ int) { host(p, vx, vy, x0, x1, y) },
		})
	})
	exchange, err2 := session.NewExchanger(ctx, changes...)
	return func(at halo.Streams) error {
		return errors.Join(at.Launch(boundary), exchange.Start(at), at.Launch(interior), exchange.Wait(at))
	}, errors.Join(err1, err2)
}

type values = kernels.Values[float64]

func velocity(p, vx, vy values, x0, x1, y int) {
	for x := x0; x < x1; x++ {
		i := p.Index(x, y, 0)
		if x > 0 {
			vx.Data[vx.Index(x, y, 0)] -= courant * (p.Data[i] - p.Data[i-1])
		}
		if y > 0 {
			vy.Data[vy.Index(x, y, 0)] -= courant * (p.Data[i] - p.Data[i-p.Pitch])
		}
	}
}

func pressure(p, vx, vy values, x0, x1, y int) {
	for x := x0; x < x1; x++ {
		i, j := vx.Index(x, y, 0), vy.Index(x, y, 0)
		p.Data[p.Index(x, y, 0)] -= courant * (vx.Data[i+1] - vx.Data[i] + vy.Data[j+vy.Pitch] - vy.Data[j])
	}
}

// run makes the given number of steps in a room of nx x ny cells, and returns it.
func run(ctx context.Context, session *halo.Session, nx, ny, steps int) (room, error) {
	place, err := session.Cut(ctx, halo.Cutting{Size: []int{nx, ny}, Fields: []halo.Spec{sound}})
	if err != nil {
		return room{}, err
	}
	r, err := newRoom(place)
	if err != nil {
		return room{}, err
	}
	at, err1 := place.NewStreams()
	v, err2 := newUpdate(ctx, session, r, "velocity", velocity, domain.Radius{Minus: domain.Vec{1, 1}}, r.vx, r.vy)
	p, err3 := newUpdate(ctx, session, r, "pressure", pressure, domain.Radius{Plus: domain.Vec{1, 1}}, r.p)
	if err := errors.Join(err1, err2, err3); err != nil {
		return room{}, err
	}
	for range steps {
		if err := errors.Join(v(at), p(at)); err != nil {
			return room{}, err
		}
	}
	return r, at.Sync(time.Minute)
}

// mean returns what a closed room keeps.
func mean(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}

func main() {
	devices, steps := flag.Int("devices", 0, "how many devices; 0 for all"), flag.Int("steps", 1000, "steps")
	flag.Parse()
	session, err := halo.Open(context.Background(), halo.Devices{Count: *devices})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	r, err := run(context.Background(), session, 300, 200, *steps)
	if err != nil {
		log.Fatal(err)
	}
	p, err := halo.ReadAll[float64](r.p)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("acoustic: %d steps in 300 x 200 cells, %v: the mean pressure is %.12f\n", *steps, session, mean(p))
}
