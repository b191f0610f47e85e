package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/examples/internal/sparse"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/streams"
)

//go:embed spmv.cu
var cuda string

var source = sparse.Source("spmv.cu", cuda)

// settings are what the flags of this example say.
type settings struct {
	sparse.Settings
	data string
}

func (s *settings) flags(f *flag.FlagSet) {
	s.Flags(f)
	f.StringVar(&s.data, "data", string(compare.Integers), "what numbers: integers, whose sums are exact, or reals")
}

func (s *settings) check(compare.Options) error {
	if s.data != string(compare.Integers) && s.data != string(compare.Reals) {
		return fmt.Errorf("--data %s: want integers or reals", s.data)
	}
	return s.Check()
}

// product is a matrix on devices, and two inputs that take turns.
type product struct {
	*sparse.Blocks
	data  compare.Data
	queue *sparse.Streams // nil until it is needed

	references []reference // by input, made when they are needed
}

// reference is a product, with the sums of the magnitudes of its terms, and how many a row has at most.
type reference struct {
	product, magnitude []float64
	terms              int64
}

func (s *settings) open(_ context.Context, session *halo.Session, o compare.Options) (compare.Problem, error) {
	m, err := s.Matrix(len(session.Devices), compare.Data(s.data), false)
	if err != nil {
		return nil, err
	}
	p := &product{data: compare.Data(s.data)}
	program := ranks.Program{Name: "spmv", Source: source, Kernel: "by_ranks", Threads: o.Threads, Host: p.byRanks}
	if p.Blocks, err = sparse.Open(session, m, program, o, func(int) int64 { return 8 * m.N }); err != nil {
		return nil, err
	}
	return p, nil
}

// total is where column 0 adds up the products of all iterations.
func (p *product) total(b *sparse.Block) streams.Span { return b.Extra(0, 8*p.N) }

// byRanks is the twin of by_ranks.
func (p *product) byRanks(r *ranks.Rank) {
	at, iterations := p.Place(r), ranks.Data[sparse.Shared](r).Iterations
	r.StartTimer()
	for t := range iterations {
		input := int(t % 2)
		if !at.Broadcast(input) || p.Side > 1 && !r.Barrier(ranks.Device) {
			return
		}
		at.Multiply(sparse.Product, input, 1)
		if !at.Reduce(sparse.Product) {
			return
		}
		if at.Block.Column == 0 {
			at.Add(streams.View[float64](sparse.Bytes(p.total(at.Block))), sparse.Product)
		}
		if !r.Barrier(ranks.All) {
			return
		}
	}
	r.StopTimer()
}
