package halo_test

import (
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// What an exchange takes between host devices, from its start until all streams are done.
func BenchmarkExchange(b *testing.B) {
	box := star(3)
	box.Connectivity = halo.Corners
	around := [3]bool{true, true, true}
	for _, c := range []struct {
		name     string
		size     []int
		periodic [3]bool
		parts    domain.Vec
		specs    []halo.Spec
	}{
		{"planes", []int{64, 64, 64}, [3]bool{}, domain.Vec{1, 1, 4}, []halo.Spec{star(3)}},
		{"ring of 2 planes", []int{64, 64, 64}, [3]bool{false, false, true}, domain.Vec{1, 1, 2}, []halo.Spec{star(3)}},
		{"ring of 2 rows", []int{64, 64, 64}, [3]bool{false, true, false}, domain.Vec{1, 2, 1}, []halo.Spec{star(3)}},
		{"26 directions", []int{64, 64, 64}, around, domain.Vec{1, 2, 2}, []halo.Spec{box}},
		{"edges 1x1x4", []int{32, 32, 64}, around, domain.Vec{1, 1, 4}, []halo.Spec{box}},
	} {
		for _, path := range []p2p.Path{p2p.Peer, p2p.Direct, p2p.Staged} {
			for _, by := range []string{"start", "transfers"} {
				b.Run(fmt.Sprintf("case=%s/path=%s/by=%s", c.name, path, by), func(b *testing.B) {
					set := testdevices.Host(b, int(c.parts.Product()))
					p := benchPlace(b, set, c.size, c.periodic, c.parts)
					benchExchange(b, set, p, path, by, c.specs)
				})
			}
		}
	}
}

func benchPlace(b *testing.B, set *testdevices.Set, size []int, periodic [3]bool, parts domain.Vec) *halo.Placement {
	b.Helper()
	g, err := domain.NewGrid(size, periodic)
	if err != nil {
		b.Fatal(err)
	}
	d, err := domain.Decompose(g, parts)
	if err != nil {
		b.Fatal(err)
	}
	p, err := halo.Place(d, set.Devices)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func benchExchange(b *testing.B, set *testdevices.Set, p *halo.Placement, path p2p.Path, by string, specs []halo.Spec) {
	plan, err := halo.NewPlan(p, set.Links, path, specs...)
	if err != nil {
		b.Fatal(err)
	}
	var open streams.Resources
	defer open.Close()
	var fields []*halo.Field
	for _, s := range specs {
		f, err := halo.NewField(p, s)
		if err != nil {
			b.Fatal(err)
		}
		open.Add(f)
		fields = append(fields, f)
	}
	x, err := halo.NewExchanger(plan, set.Compiler, fields...)
	if err != nil {
		b.Fatal(err)
	}
	open.Add(x)
	var at []*streams.Stream
	for _, d := range p.Devices {
		s, err := d.NewStream(streams.Normal)
		if err != nil {
			b.Fatal(err)
		}
		open.Add(s)
		at = append(at, s)
	}
	exchange := benchWay(b, plan, by)
	once := func() {
		if err := exchange(x, at); err != nil {
			b.Fatal(err)
		}
		for _, s := range at {
			if err := s.Sync(testLimit); err != nil {
				b.Fatal(err)
			}
		}
	}
	once()
	b.ReportAllocs()
	b.ReportMetric(float64(len(plan.Messages)), "messages")
	for b.Loop() {
		once()
	}
}

// benchWay returns what carries out an exchange.
func benchWay(b *testing.B, plan *halo.Plan, by string) way {
	if by == "start" {
		return byStart
	}
	group := streams.NewWorkerGroup(1, testLimit)
	return func(x *halo.Exchanger, at []*streams.Stream) error {
		for i, m := range plan.Messages {
			if err := x.Transfer(i).Send(at[m.From]); err != nil {
				return err
			}
		}
		for i, m := range plan.Messages {
			if err := x.Transfer(i).Receive(group, at[m.To]); err != nil {
				return err
			}
		}
		return nil
	}
}
