package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// randomCut is a grid, how it is cut, and which process owns which subdomain: of each one or two, in any order.
type randomCut struct {
	size   []int
	parts  domain.Vec
	owners []int
}

func newRandomCut(r *rand.Rand, processes int) (c randomCut) {
	for {
		c.parts = domain.Vec{1 + r.IntN(3), 1 + r.IntN(3), 1 + r.IntN(4)}
		if n := int(c.parts.Product()); processes <= n && n <= 2*processes {
			break
		}
	}
	for i := range int(c.parts.Product()) {
		c.owners = append(c.owners, i%processes)
	}
	r.Shuffle(len(c.owners), func(i, j int) { c.owners[i], c.owners[j] = c.owners[j], c.owners[i] })
	for _, n := range c.parts {
		c.size = append(c.size, 4*n+r.IntN(7))
	}
	return c
}

// place gives the subdomains of this process devices of their own.
func (c randomCut) place(p *among, session *halo.Session, grid domain.Grid) (*halo.Placement, error) {
	cut, err := domain.Decompose(grid, c.parts)
	if err != nil {
		return nil, err
	}
	devices, free := make([]*streams.Device, len(c.owners)), session.Devices
	for rank, owner := range c.owners {
		if owner == p.Rank {
			devices[rank], free = free[0], free[1:]
		}
	}
	return halo.PlaceAmong(p.Processes, cut, c.owners, devices)
}

// cutsAmong makes steps by scheme fused over random cuts whose subdomains go to any process, with norms, or until they change
// little enough.
func cutsAmong(p *among) (err error) {
	t, ctx := inProgram{}, context.Background()
	session, err := halo.Open(ctx, halo.Devices{Backend: streams.Host, Count: 2, Processes: p.Processes})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, uint64(p.Size())))
		c := newRandomCut(r, p.Size())
		of := problem(t, c.size, []kernels.Real{kernels.Float64, kernels.Float32}[seed%2], []string{"ppdtnn", "ddnnpp", "pppppp", "dtndpp"}[r.IntN(4)])
		of.Group = []int{1, 1, 2, 4}[r.IntN(4)]
		place, err := c.place(p, session, of.Grid)
		if err != nil {
			return err
		}
		plan, err := halo.NewPlan(place, session.Links, pathFor(Fused), of.Field())
		if err != nil {
			return err
		}
		s, err := New(ctx, of, plan, session.Compiler)
		if err != nil {
			return err
		}
		steps := 5 + r.IntN(6)
		o := Options{Scheme: Fused, Steps: int64(steps), CheckEvery: int64(1 + r.IntN(3))}
		if seed%4 < 2 { // the first step that is looked at changes little enough
			o.Steps, steps, o.Norm, o.Tolerance = 100, int(o.CheckEvery), L2Norm, math.MaxFloat64
		}
		res, err := s.Run(ctx, o)
		if err == nil {
			err = p.agrees(s, res, steps)
		}
		if err := errors.Join(err, s.Close()); err != nil {
			return fmt.Errorf("seed %d, %d subdomains %v of %v, owners %v, groups of %d, %d steps: %w", seed, len(c.owners), c.parts, c.size, c.owners, of.Group, steps, err)
		}
	}
	return nil
}
