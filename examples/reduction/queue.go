package main

import (
	"errors"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// queue makes the sum by streams: each device adds up the numbers of its blocks, as many as it has ranks, the sums go
// to the first device, and one block adds these.
type queue struct {
	*compare.Queue
	on      *problem
	streams []*streams.Stream    // by device
	slices  [2][]*streams.Kernel // by parity and device
	tree    *streams.Kernel
	sums    []*streams.Memory // of each device but the first
	came    []*streams.Event  // by device: its sums are on the first one
	read    *streams.Event    // the first device needs them no more
}

func newQueue(p *problem) (q *queue, err error) {
	q = &queue{Queue: &compare.Queue{}, on: p}
	p.resources.Add(q)
	q.Iteration = q.iteration
	each := int64(p.world.Ranks())
	for i, d := range p.session.Devices {
		s, err := q.NewStream(d)
		if err != nil {
			return nil, err
		}
		came, err := q.NewEvent(d)
		if err != nil {
			return nil, err
		}
		to := p.gathered.Span(0, 8*each)
		if i > 0 {
			sums, err := compare.Alloc(&p.resources, d, 8*each)
			if err != nil {
				return nil, err
			}
			to = sums.All()
		}
		q.streams, q.came, q.sums = append(q.streams, s), append(q.came, came), append(q.sums, to.Memory)
		if err := q.newKernels(i, to); err != nil {
			return nil, err
		}
	}
	q.read, err = q.NewEvent(p.session.Devices[0])
	return q, err
}

// newKernels makes the launches of a device ready, whose sums of slices go to some memory.
func (q *queue) newKernels(device int, sums streams.Span) error {
	p := q.on
	d, numbers, each := p.session.Devices[device], p.numbers[device], p.world.Ranks()
	f, err := p.world.Functions(device, "slice_sums", "add_tree")
	if err != nil {
		return err
	}
	for parity := range q.slices {
		k, err := kernels.Launch(d, kernels.LaunchSpec[launchSlices]{
			Name: "slice sums", Work: streams.Sweep, Uses: []streams.Span{numbers.All(), sums},
			Function: f[0], Grid: [3]int{each, 1, 1}, Block: [3]int{p.options.Threads, 1, 1},
			Argument: launchSlices{numbers.Address(), sums.Address(), p.count, sign(int64(parity))},
			Host: func() {
				out, threads := streams.View[float64](sums.Memory.Bytes()), make([]float64, p.options.Threads)
				for i := range each {
					out[i] = sign(int64(parity)) * sliceSum(streams.View[float64](numbers.Bytes()), int64(each), int64(i), threads)
				}
			},
		})
		if err != nil {
			return err
		}
		q.slices[parity] = append(q.slices[parity], k)
	}
	if device > 0 {
		return nil
	}
	const threads = 1024
	q.tree, err = kernels.Launch(d, kernels.LaunchSpec[tree]{
		Name: "add tree", Work: streams.Sweep, Uses: []streams.Span{p.gathered.All()},
		Function: f[1], Grid: [3]int{1, 1, 1}, Block: [3]int{threads, 1, 1}, Argument: tree{p.gathered.Address(), int64(p.world.Size())},
		Host: func() { addTree(streams.View[float64](p.gathered.Bytes())) },
	})
	return err
}

// iteration queues one sum.
func (q *queue) iteration(parity int) error {
	p, each := q.on, 8*int64(q.on.world.Ranks())
	first := q.streams[0]
	if err := first.Launch(q.slices[parity][0]); err != nil {
		return err
	}
	for i := 1; i < len(q.streams); i++ {
		s := q.streams[i]
		err := errors.Join(s.Launch(q.slices[parity][i]), q.WaitEarlier(s, q.read),
			s.Copy(p.gathered.Span(int64(i)*each, each), q.sums[i].All()), s.Record(q.came[i]), first.Wait(q.came[i]))
		if err != nil {
			return err
		}
	}
	return errors.Join(first.Launch(q.tree), first.Record(q.read))
}
