// Reduction adds up the numbers of all ranks along a binomial tree, as listing 3.2 of Kuster (2017) does, by ranks that
// put their sums into each other's memory, and by streams, which gather the sums on the first device.
package main

import (
	"context"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/streams"
)

func (p *settings) open(_ context.Context, s *halo.Session, o compare.Options) (_ compare.Problem, err error) {
	x := &problem{settings: *p, session: s, options: o}
	program := ranks.Program{Name: "reduction", Source: source, Kernel: "by_ranks", Threads: o.Threads, Host: x.byRanks}
	if x.world, err = compare.World(s, program, o, 1, 0); err != nil {
		return nil, err
	}
	x.resources.Add(x.world)
	if x.count = p.numbers; x.count == 0 {
		x.count = int64(x.world.Ranks() * o.Threads)
	}
	return compare.Opened(x, x.allocate())
}

func (p *problem) allocate() (err error) {
	each := int64(p.world.Ranks())
	for i, d := range p.session.Devices {
		numbers, err := compare.Alloc(&p.resources, d, 8*p.count)
		if err != nil {
			return err
		}
		all, err := compare.Alloc(&p.resources, d, 8*cells*each)
		if err != nil {
			return err
		}
		p.numbers, p.cells = append(p.numbers, numbers), append(p.cells, all)
		err = compare.Fill(numbers.All(), func(values []float64, first int64) {
			for k := range values {
				values[k] = p.number(int64(i)*p.count + first + int64(k))
			}
		})
		if err != nil {
			return err
		}
	}
	p.gathered, err = compare.Alloc(&p.resources, p.session.Devices[0], 8*int64(p.world.Size()+1))
	return err
}

// Method makes a method ready.
func (p *problem) Method(name string) (compare.Method, error) {
	if name == compare.Ranks {
		p.byMethod = [2]streams.Span{p.cells[0].Span(0, 8), p.cells[0].Span(8*total, 8)}
		return compare.ByRanks(p.world, func(iterations int) (all []data) {
			for i := range p.numbers {
				all = append(all, data{p.numbers[i].Address(), p.cells[i].Address(), p.count, int64(iterations)})
			}
			return all
		}), nil
	}
	p.byMethod = [2]streams.Span{p.gathered.Span(0, 8), p.gathered.Span(8*int64(p.world.Size()), 8)}
	if p.queue == nil {
		q, err := newQueue(p)
		if err != nil {
			return nil, err
		}
		p.queue = q.Queue
	}
	return p.queue.Method(name), nil
}

func newProgram() compare.Program {
	var s settings
	return compare.Program{Name: "reduction", PerMultiprocessor: 4, Flags: s.flags, Check: s.check, New: s.open}
}

func main() { compare.Main(newProgram()) }
