// Diffusion runs steps of horizontal diffusion with a flux limiter on the levels of a periodic plane: the stencil case
// study of Kuster (2017). Devices follow each other along y. The device ranks of a device share its levels and rows. In
// each of the three stages of a step a device rank updates its rows, puts its edge row into the copy on a neighboring
// device, and notifies that neighbor; neighbors on one device read each other's rows.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed diffusion.cu
var cuda string

func source(threads int) kernels.Source {
	return example.Source("diffusion.cu", cuda, threads,
		kernels.Mirror{Name: "Part", Value: part{}}, kernels.Mirror{Name: "FIELDS", Value: fields},
		kernels.Mirror{Name: "FLY", Value: fieldFly}, kernels.Mirror{Name: "DIFFUSE", Value: stageDiffuse})
}

// Fields of a part, in order.
const (
	fieldU = iota // and the next: values before and after a step, alternating
	_
	fieldLap
	fieldFlx
	fieldFly
	fields
)

// Stages of a step, and tags of their notifications.
const (
	stageLaplace = iota
	stageFluxes
	stageDiffuse
)

// part is struct Part of diffusion.cu: what a device has.
type part struct {
	Values        uint64
	Nx, Ny, Nz    int64
	Steps, Done   int64
	Chunks, Slabs int64
}

// offset is the start of a row of a field, in values. Rows -1 and Ny are copies of neighboring rows.
func (p *part) offset(field int, z, y int64) int64 {
	return ((int64(field)*p.Nz+z)*(p.Ny+2) + y + 1) * p.Nx
}

// share divides the levels into chunks and the rows into slabs for the given number of device ranks, so that the
// largest share is as small as possible.
func (p *part) share(ranks int64) {
	least := int64(-1)
	for chunks := int64(1); chunks <= min(p.Nz, ranks); chunks++ {
		slabs := min(p.Ny, ranks/chunks)
		most := ((p.Nz + chunks - 1) / chunks) * ((p.Ny + slabs - 1) / slabs)
		if least < 0 || most <= least {
			least, p.Chunks, p.Slabs = most, chunks, slabs
		}
	}
}

// size is the points of a device along x, y and the levels.
type size struct{ nx, ny, nz int }

// sizes are named sizes: that of the thesis, and one that fills a GPU, with fields of 3.1 GiB.
var sizes = map[string]size{"thesis": {128, 320, 26}, "full": {1024, 1024, 80}}

// parseSize reads NXxNYxNZ, or a name.
func parseSize(text string) (n size, err error) {
	const most, mostPoints = 1 << 20, 1 << 36
	if n, named := sizes[text]; named {
		return n, nil
	}
	_, err = fmt.Sscanf(text, "%dx%dx%d", &n.nx, &n.ny, &n.nz)
	if err != nil || fmt.Sprintf("%dx%dx%d", n.nx, n.ny, n.nz) != text {
		return n, fmt.Errorf("--size must be NXxNYxNZ, thesis or full, got %q", text)
	}
	if min(n.nx, n.ny, n.nz) < 1 || max(n.nx, n.ny, n.nz) > most || n.nx > mostPoints/n.ny/n.nz {
		return n, fmt.Errorf("--size must be 1 to %d points along each axis and up to %d points, got %s",
			most, mostPoints, text)
	}
	return n, nil
}

// diffusion is the fields on some devices.
type diffusion struct {
	*example.Setup
	world         *ranks.World
	parts         []part
	memory, image []*streams.Memory // by device; image is the initial content of memory
	first         grid              // before the first step
}

func newDiffusion(s *example.Setup, n size) (x *diffusion, err error) {
	x = &diffusion{Setup: s, first: start(n.nx, n.ny*len(s.Devices), n.nz)}
	s.Options.AtMost = n.ny * n.nz
	x.world, err = s.World(ranks.Program{
		Name: "diffusion", Source: source(s.Threads), Kernel: "diffusion", Host: x.rank,
	})
	if err != nil {
		return nil, err
	}
	for i, d := range s.Devices {
		p := part{Nx: int64(n.nx), Ny: int64(n.ny), Nz: int64(n.nz)}
		p.share(int64(x.world.Ranks()))
		image, err := example.Upload(s, d, x.values(&p, i))
		if err != nil {
			return nil, err
		}
		m, err := s.Alloc(d, image.Size())
		if err != nil {
			return nil, err
		}
		p.Values = m.Address()
		x.parts, x.memory, x.image = append(x.parts, p), append(x.memory, m), append(x.image, image)
	}
	return x, nil
}

// values returns the initial values of a device, including copies of neighboring rows; all others are NaN until they
// are computed.
func (x *diffusion) values(p *part, device int) []float64 {
	all := slices.Repeat([]float64{math.NaN()}, int(p.offset(fields, 0, -1)))
	for z := range p.Nz {
		for y := int64(-1); y <= p.Ny; y++ {
			global := (device*int(p.Ny) + int(y) + x.first.ny) % x.first.ny
			copy(all[p.offset(fieldU, z, y):], x.first.row(int(z), global))
		}
	}
	return all
}

func (x *diffusion) String() string {
	return fmt.Sprintf("%d x %d x %d points by %d device ranks of %d threads per device",
		x.first.nx, x.first.ny, x.first.nz, x.world.Ranks(), x.Threads)
}

// Reset sets the values before the first step.
func (x *diffusion) Reset() (err error) {
	for i, d := range x.Devices {
		x.parts[i].Done = 0
		err = errors.Join(err, example.Copy(d, x.memory[i].All(), x.image[i].All()))
	}
	return err
}

// Run continues from the newest values.
func (x *diffusion) Run(ctx context.Context, steps int) (time.Duration, error) {
	for i := range x.parts {
		x.parts[i].Steps = int64(steps)
	}
	took, err := example.Timed(ctx, x.world, x.parts)
	for i := range x.parts {
		x.parts[i].Done += int64(steps)
	}
	return took, err
}

// Values returns the newest values of all points.
func (x *diffusion) Values(int) ([]float64, error) {
	u := newGrid(x.first.nx, x.first.ny, x.first.nz)
	for i, p := range x.parts {
		now := fieldU + int(p.Done%2)
		begin, end := p.offset(now, 0, -1), p.offset(now+1, 0, -1)
		from, err := example.Read[float64](x.memory[i].Span(8*begin, 8*(end-begin)))
		if err != nil {
			return nil, err
		}
		for z := range p.Nz {
			for y := range p.Ny {
				copy(u.row(int(z), i*int(p.Ny)+int(y)), from[p.offset(now, z, y)-begin:][:p.Nx])
			}
		}
	}
	return u.values, nil
}

// Check compares the bits with those of the reference.
func (x *diffusion) Check(values []float64, steps int) (string, error) {
	want := reference(x.first, steps)
	for i, v := range values {
		if math.Float64bits(v) != math.Float64bits(want.values[i]) {
			return "", fmt.Errorf("value %v at %d, %d, %d after %d steps, the reference has %v",
				v, i%want.nx, i/want.nx%want.ny, i/want.nx/want.ny, steps, want.values[i])
		}
	}
	return fmt.Sprintf("all %d points have the bits of the serial reference", len(values)), nil
}

// neighbor is struct Neighbor of diffusion.cu.
type neighbor struct {
	rank       int
	far        bool
	own, there int64 // rows
}

// slab is some rows of some levels of a part on a CPU device.
type slab struct {
	*part
	values     []float64
	level, row [2]int64 // half open
}

// rank is the counterpart of kernel diffusion on CPU devices.
func (x *diffusion) rank(r *ranks.Rank) {
	p := ranks.Data[part](r)
	bytes := x.memory[r.Device()].Bytes()
	w := r.CreateWindow(ranks.All, bytes)
	n, local, me, all := r.Size(ranks.Device), r.Index(ranks.Device), r.Index(ranks.All), r.Size(ranks.All)
	active := int64(local) < p.Chunks*p.Slabs // the other ranks have no work
	s := slab{part: p, values: streams.View[float64](bytes)}
	var below, above neighbor
	if active {
		chunk, at, slabs := int64(local)/p.Slabs, int64(local)%p.Slabs, int(p.Slabs)
		s.level = [2]int64{p.Nz * chunk / p.Chunks, p.Nz * (chunk + 1) / p.Chunks}
		s.row = [2]int64{p.Ny * at / p.Slabs, p.Ny * (at + 1) / p.Slabs}
		below, above = neighbor{me - 1, false, s.row[0], p.Ny}, neighbor{me + 1, false, s.row[1] - 1, -1}
		if at == 0 {
			below.rank, below.far = (me-n+slabs-1+all)%all, true
		}
		if at == p.Slabs-1 {
			above.rank, above.far = (me+n-slabs+1)%all, true
		}
	}
	tell := func(field, tag int, to ...neighbor) bool {
		for _, b := range to {
			for z := s.level[0]; b.far && z < s.level[1]; z++ {
				r.Put(w, b.rank, 8*p.offset(field, z, b.there), bytes[8*p.offset(field, z, b.own):][:8*p.Nx])
			}
			r.Notify(b.rank, ranks.All, tag)
		}
		return r.WaitNotifications(tag, uint64(len(to)))
	}
	r.StartTimer()
	for step := p.Done; active && step < p.Done+p.Steps; step++ {
		now, next := fieldU+int(step%2), fieldU+int(1-step%2)
		s.laplace(now)
		if !tell(fieldLap, stageLaplace, below) {
			return
		}
		s.fluxes(now)
		if !tell(fieldFly, stageFluxes, above) {
			return
		}
		s.diffuse(now, next)
		if !tell(next, stageDiffuse, below, above) {
			return
		}
		r.Flush(w)
	}
	r.StopTimer()
	r.FreeWindow(w)
}

// each calls f for each row of the slab; at returns a field of it, or of an adjacent row.
func (s slab) each(f func(at func(field int, dy int64) []float64)) {
	for z := s.level[0]; z < s.level[1]; z++ {
		for y := s.row[0]; y < s.row[1]; y++ {
			f(func(field int, dy int64) []float64 { return s.values[s.offset(field, z, y+dy):][:s.Nx] })
		}
	}
}

func (s slab) laplace(now int) {
	s.each(func(at func(int, int64) []float64) {
		u, south, north, lap := at(now, 0), at(now, -1), at(now, 1), at(fieldLap, 0)
		for x := range u {
			lap[x] = float64(4*u[x]) - (u[(x+len(u)-1)%len(u)] + u[(x+1)%len(u)] + south[x] + north[x])
		}
	})
}

// limited is the flux from a point to the next one: 0 if it is directed up the gradient.
func limited(ahead, here, valueAhead, value float64) float64 {
	flux := ahead - here
	if float64(flux*(valueAhead-value)) > 0 {
		return 0
	}
	return flux
}

func (s slab) fluxes(now int) {
	s.each(func(at func(int, int64) []float64) {
		u, uNorth, lap, lapNorth := at(now, 0), at(now, 1), at(fieldLap, 0), at(fieldLap, 1)
		flx, fly := at(fieldFlx, 0), at(fieldFly, 0)
		for x := range u {
			east := (x + 1) % len(u)
			flx[x] = limited(lap[east], lap[x], u[east], u[x])
			fly[x] = limited(lapNorth[x], lap[x], uNorth[x], u[x])
		}
	})
}

func (s slab) diffuse(now, next int) {
	s.each(func(at func(int, int64) []float64) {
		u, flx, fly, flySouth, out := at(now, 0), at(fieldFlx, 0), at(fieldFly, 0), at(fieldFly, -1), at(next, 0)
		for x := range u {
			out[x] = u[x] - float64(0.025*(flx[x]-flx[(x+len(u)-1)%len(u)]+fly[x]-flySouth[x]))
		}
	})
}

// grid is values on the levels of a periodic plane, x fastest, then y, then levels.
type grid struct {
	nx, ny, nz int
	values     []float64
}

func newGrid(nx, ny, nz int) grid { return grid{nx, ny, nz, make([]float64, nx*ny*nz)} }

func (g grid) row(z, y int) []float64 { return g.values[(z*g.ny+y)*g.nx:][:g.nx] }

// at is the value at a point of the periodic plane of a level.
func (g grid) at(x, y, z int) float64 { return g.row(z, (y+g.ny)%g.ny)[(x+g.nx)%g.nx] }

// filled returns a grid with the values of f.
func filled(nx, ny, nz int, f func(x, y, z int) float64) grid {
	g := newGrid(nx, ny, nz)
	for i := range g.values {
		g.values[i] = f(i%nx, i/nx%ny, i/nx/ny)
	}
	return g
}

// start is a grid with waves on each level, and noise that makes the limiter act.
func start(nx, ny, nz int) grid {
	return filled(nx, ny, nz, func(x, y, z int) float64 {
		wave := math.Sin(2*math.Pi*float64(x)/float64(nx)) * math.Cos(2*math.Pi*float64(y)/float64(ny))
		return 10 + float64(z) + wave + example.Uniform(example.Hash(uint64((z*ny+y)*nx+x), 0))
	})
}

// reference runs steps on the host, stage by stage over the whole plane. It shares no code with the device ranks.
func reference(u grid, steps int) grid {
	for range steps {
		lap := filled(u.nx, u.ny, u.nz, func(x, y, z int) float64 {
			return 4*u.at(x, y, z) - (u.at(x-1, y, z) + u.at(x+1, y, z) + u.at(x, y-1, z) + u.at(x, y+1, z))
		})
		along := func(dx, dy int) grid {
			return filled(u.nx, u.ny, u.nz, func(x, y, z int) float64 {
				f := lap.at(x+dx, y+dy, z) - lap.at(x, y, z)
				slope := u.at(x+dx, y+dy, z) - u.at(x, y, z)
				if float64(f*slope) > 0 {
					f = 0
				}
				return f
			})
		}
		flx, fly, old := along(1, 0), along(0, 1), u
		u = filled(u.nx, u.ny, u.nz, func(x, y, z int) float64 {
			gain := flx.at(x, y, z) - flx.at(x-1, y, z) + fly.at(x, y, z) - fly.at(x, y-1, z)
			return old.at(x, y, z) - float64(0.025*gain)
		})
	}
	return u
}

func newProgram() example.Program {
	var text string
	return example.Ranks("diffusion", example.Setup{Iterations: 40}, func(f *flag.FlagSet) {
		f.StringVar(&text, "size", "64x40x26", "points of a device along x, y and the levels, or thesis or full")
	}, func(s *example.Setup) (example.Problem, error) {
		n, err := parseSize(text)
		if err != nil {
			return nil, err
		}
		return newDiffusion(s, n)
	})
}

func main() { newProgram().Main() }
