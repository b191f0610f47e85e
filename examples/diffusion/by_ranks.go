package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// Fields of a part, in order.
const (
	fieldU = iota // and the next: values before and after a step, in turn
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

// part is struct Part of diffusion.cu.
type part struct {
	Values        uint64
	Nx, Ny, Nz    int64
	Steps, Done   int64
	Chunks, Slabs int64
}

// offset is where a row of a field begins, in values.
func (p *part) offset(field int, z, y int64) int64 {
	return ((int64(field)*p.Nz+z)*(p.Ny+2) + y + 1) * p.Nx
}

func (p *part) bytes() int64 { return 8 * p.offset(fields, 0, -1) }

// share has so many ranks share the levels in chunks and the rows in slabs, so that the rank with the most points has
// as few as can be.
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

// source is that of the kernel for ranks of so many threads.
func rankSource(threads int) kernels.Source {
	return kernels.Source{Name: "diffusion.cu", Text: compare.Sums + source, Defines: []string{"BY_RANKS", "THREADS=" + strconv.Itoa(threads)}, Mirrors: []kernels.Mirror{
		{Name: "Part", Value: part{}}, {Name: "FIELDS", Value: fields}, {Name: "FLY", Value: fieldFly}, {Name: "DIFFUSE", Value: stageDiffuse},
	}}
}

// byRanks steps values by ranks.
type byRanks struct {
	problem problem
	options compare.Options
	devices []*streams.Device
	parts   []part
	values  []*streams.Memory // of each device
	world   *ranks.World
	open    streams.Resources
}

func newByRanks(s *halo.Session, p problem, o compare.Options) (made *byRanks, err error) {
	r := &byRanks{problem: p, options: o, devices: s.Devices}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.open.Close())
		}
	}()
	program := ranks.Program{Name: "diffusion", Source: rankSource(o.Threads), Kernel: "diffusion", Threads: o.Threads, Host: r.rank}
	if r.world, err = compare.World(s, program, o, 1, p.ny*p.nz); err != nil {
		return nil, err
	}
	r.open.Add(r.world)
	for _, d := range s.Devices {
		q := part{Nx: int64(p.nx), Ny: int64(p.ny), Nz: int64(p.nz)}
		q.share(int64(r.world.Ranks()))
		values, err := compare.Alloc(&r.open, d, q.bytes())
		if err != nil {
			return nil, err
		}
		q.Values = values.Address()
		r.parts, r.values = append(r.parts, q), append(r.values, values)
	}
	return r, nil
}

// Close frees what it holds. Closing twice is no error.
func (r *byRanks) Close() error { return r.open.Close() }

// load sets the values at step 0, and those that neighbours have of them. All else is not a number until it is
// computed.
func (r *byRanks) load(u grid) error {
	for i := range r.devices {
		q := &r.parts[i]
		q.Done = 0
		err := compare.Fill(r.values[i].All(), func(to []float64, first int64) {
			for n := range to {
				to[n] = nan
			}
			for at := first / q.Nx * q.Nx; at < min(first+int64(len(to)), q.offset(fieldU+1, 0, -1)); at += q.Nx {
				z, y := at/q.Nx/(q.Ny+2), at/q.Nx%(q.Ny+2)-1
				from := u.row(int(z), int((int64(i)*q.Ny+y+int64(u.ny))%int64(u.ny)))
				copy(to[max(0, at-first):], from[max(0, first-at):])
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// read returns the newest values.
func (r *byRanks) read() (grid, error) {
	u := newGrid(r.problem.nx, r.problem.ny*len(r.devices), r.problem.nz)
	for i, q := range r.parts {
		now := fieldU + int(q.Done%2)
		begin := q.offset(now, 0, -1)
		from, err := compare.Read[float64](r.values[i].Span(8*begin, 8*(q.offset(now+1, 0, -1)-begin)))
		if err != nil {
			return u, err
		}
		for z := range q.Nz {
			for y := range q.Ny {
				copy(u.row(int(z), i*int(q.Ny)+int(y)), from[q.offset(now, z, y)-begin:][:q.Nx])
			}
		}
	}
	return u, nil
}

// method makes steps, and goes on where it was.
func (r *byRanks) method() compare.Method {
	run := compare.ByRanks(r.world, func(steps int) []part {
		for i := range r.parts {
			r.parts[i].Steps = int64(steps)
		}
		return r.parts
	})
	return func(ctx context.Context, steps int) (time.Duration, error) {
		took, err := run(ctx, steps)
		for i := range r.parts {
			r.parts[i].Done += int64(steps)
		}
		return took, err
	}
}

// neighbour is the twin of struct Neighbour of diffusion.cu.
type neighbour struct {
	rank       int
	far        bool
	own, there int64 // rows
}

// rank is the twin of kernel diffusion.
func (r *byRanks) rank(k *ranks.Rank) {
	q := ranks.Data[part](k)
	bytes := r.values[k.Device()].Bytes()
	w := k.CreateWindow(ranks.All, bytes)
	n, local, me, all := k.Size(ranks.Device), k.Index(ranks.Device), k.Index(ranks.All), k.Size(ranks.All)
	active := int64(local) < q.Chunks*q.Slabs
	s := slab{part: q, values: streams.View[float64](bytes)}
	var beside [2]neighbour
	if active {
		chunk, at, slabs := int64(local)/q.Slabs, int64(local)%q.Slabs, int(q.Slabs)
		s.level = [2]int64{q.Nz * chunk / q.Chunks, q.Nz * (chunk + 1) / q.Chunks}
		s.row = [2]int64{q.Ny * at / q.Slabs, q.Ny * (at + 1) / q.Slabs}
		below, above := neighbour{me - 1, false, s.row[0], q.Ny}, neighbour{me + 1, false, s.row[1] - 1, -1}
		if at == 0 {
			below.rank, below.far = (me-n+slabs-1+all)%all, true
		}
		if at == q.Slabs-1 {
			above.rank, above.far = (me+n-slabs+1)%all, true
		}
		beside = [2]neighbour{below, above}
	}
	tell := func(to neighbour, field, tag int) {
		r.options.Pause()
		if !to.far {
			k.Notify(to.rank, ranks.All, tag)
			return
		}
		for z := s.level[0]; z < s.level[1]; z++ {
			k.Put(w, to.rank, 8*q.offset(field, z, to.there), bytes[8*q.offset(field, z, to.own):][:8*q.Nx])
		}
		k.Notify(to.rank, ranks.All, tag)
	}
	k.StartTimer()
	for step := q.Done; active && step < q.Done+q.Steps; step++ {
		now := fieldU + int(step%2)
		next := fieldU + int(1-step%2)
		s.laplace(now)
		tell(beside[0], fieldLap, stageLaplace)
		if !k.WaitNotifications(stageLaplace, 1) {
			return
		}
		s.fluxes(now)
		tell(beside[1], fieldFly, stageFluxes)
		if !k.WaitNotifications(stageFluxes, 1) {
			return
		}
		s.diffuse(now, next)
		tell(beside[0], next, stageDiffuse)
		tell(beside[1], next, stageDiffuse)
		if !k.WaitNotifications(stageDiffuse, 2) {
			return
		}
		k.Flush(w)
	}
	k.StopTimer()
	k.FreeWindow(w)
}

// slab is some rows of some levels of a part on a host device.
type slab struct {
	*part
	values     []float64
	level, row [2]int64
}

// each calls f with the rows of some fields, at an offset of rows each.
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
			lap[x] = laplacian(u[x], u[(x+len(u)-1)%len(u)], u[(x+1)%len(u)], south[x], north[x])
		}
	})
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
			out[x] = diffused(u[x], flx[x], flx[(x+len(u)-1)%len(u)], fly[x], flySouth[x])
		}
	})
}
