package halo_test

import (
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
)

// BenchmarkExchange times an exchange between CPU devices, from its start until all streams are done.
func BenchmarkExchange(b *testing.B) {
	box := star(3)
	box.Connectivity = halo.Corners
	around := [3]bool{true, true, true}
	for _, c := range []exchangeCase{
		{"planes", []int{64, 64, 64}, [3]bool{}, domain.Vec{1, 1, 4}, []halo.Spec{star(3)}},
		{"ring of 2 planes", []int{64, 64, 64}, [3]bool{false, false, true}, domain.Vec{1, 1, 2}, []halo.Spec{star(3)}},
		{"ring of 2 rows", []int{64, 64, 64}, [3]bool{false, true, false}, domain.Vec{1, 2, 1}, []halo.Spec{star(3)}},
		{"26 directions", []int{64, 64, 64}, around, domain.Vec{1, 2, 2}, []halo.Spec{box}},
		{"edges 1x1x4", []int{32, 32, 64}, around, domain.Vec{1, 1, 4}, []halo.Spec{box}},
	} {
		for _, path := range paths {
			for _, by := range []string{"start", "transfers"} {
				b.Run(fmt.Sprintf("case=%s/path=%s/by=%s", c.name, path, by), func(b *testing.B) {
					set := testdevices.Host(b, int(c.parts.Product()))
					benchExchange(b, set, c, path, by)
				})
			}
		}
	}
}

func benchExchange(b *testing.B, set *testdevices.Set, c exchangeCase, path p2p.Path, by string) {
	p := place(b, set, c.size, c.periodic, c.parts)
	plan := must(halo.NewPlan(p, set.Links, path, c.specs...))(b)
	var fields []*halo.Field
	for _, s := range c.specs {
		fields = append(fields, openField(b, p, s))
	}
	x := open(halo.NewExchanger(plan, set.Compiler, fields...))(b)
	at := openStreams(b, p)
	exchange := byStart
	if by == "transfers" {
		exchange = transfers(plan)
	}
	once := func() { done(b, at, exchange(x, at)) }
	once()
	b.ReportAllocs()
	b.ReportMetric(float64(len(plan.Messages)), "messages")
	for b.Loop() {
		once()
	}
}
