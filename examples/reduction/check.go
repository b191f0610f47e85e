package main

import (
	"context"
	"fmt"
	"math"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/streams"
)

// String says what is added up.
func (p *problem) String() string {
	return fmt.Sprintf("a sum of %d %s on each device by %d ranks of %d threads", p.count, p.data, p.world.Ranks(), p.options.Threads)
}

// Ranks returns how many a device has.
func (p *problem) Ranks() int { return p.world.Ranks() }

// Reset fills what ranks and streams write to with NaN, but for the totals.
func (p *problem) Reset() error {
	for _, m := range append([]*streams.Memory{p.gathered}, p.cells...) {
		last, period := int64(total), int64(cells)
		if m == p.gathered {
			last, period = int64(p.world.Size()), int64(p.world.Size()+1)
		}
		if err := compare.Fill(m.All(), func(values []float64, first int64) {
			for i := range values {
				if values[i] = math.NaN(); (first+int64(i))%period == last {
					values[i] = 0
				}
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// Values returns the sum of the last iteration, and the total of all.
func (p *problem) Values(int) (all []float64, err error) {
	for _, from := range p.byMethod {
		one, err := compare.Read[float64](from)
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

// Check compares with the sum of the numbers one after the other: the same where they are integers, else within what
// rounding can do to either (Higham 2002, 4.2).
func (p *problem) Check(_ context.Context, values []float64, iterations int) (string, error) {
	if p.sum == nil {
		p.sum = p.reference()
	}
	bound := 0.0
	if p.data == string(compare.Reals) {
		bound = (float64(p.additions()) + 2) * 0x1p-53 * p.sum.size
	}
	want := sign(int64(iterations)-1) * p.sum.value
	off := math.Abs(values[0] - want)
	if !(off <= bound) {
		return "", fmt.Errorf("the sum is %v, the reference %v, which may differ by %.1e", values[0], want, bound)
	}
	whole, bounds := p.sum.value*float64(iterations%2), 2*bound*float64(iterations)
	if !(math.Abs(values[1]-whole) <= bounds) {
		return "", fmt.Errorf("the sums of all iterations add up to %v, the reference to %v, which may differ by %.1e", values[1], whole, bounds)
	}
	return fmt.Sprintf("sum %.17g, %.1e from the reference, which allows %.1e", values[0], off, bound), nil
}

// reference adds up the numbers one after the other, and adds what the sum has lost at the end (Neumaier 1974).
func (p *problem) reference() *sum {
	total, rest, size := 0.0, 0.0, 0.0
	for i := range p.count * int64(len(p.numbers)) {
		x := p.number(i)
		next := total + x
		if math.Abs(total) >= math.Abs(x) {
			rest += (total - next) + x
		} else {
			rest += (x - next) + total
		}
		total, size = next, size+math.Abs(x)
	}
	return &sum{total + rest, size}
}

// additions is how many a number goes through at most.
func (p *problem) additions() int64 {
	slice := p.count/int64(p.world.Ranks()) + 1
	return slice/int64(4*p.options.Threads) + 4 + 2 + 5 + int64(p.options.Threads/32) + int64(math.Log2(float64(p.world.Size()))) + 1
}

// Close frees all.
func (p *problem) Close() error { return p.resources.Close() }
