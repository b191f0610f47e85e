package temporal

import (
	"crypto/sha256"
	"fmt"
	"math/bits"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// Tune finds out on a GPU how long passes over the box take, beside the sweep, as Passes.Tune does. It changes what passes store to.
func (p *Points) Tune(sweep *streams.Kernel, arrays sweep.Arrays, box domain.Box, sides []Sides, budget time.Duration) error {
	if p.gpu == nil {
		return nil
	}
	p.gpu.limit(func(depth int) error { return p.holds(arrays, box, sides, depth) })
	err := p.gpu.tune(p.tuningKey(box), sweep, budget, func(s shape) (*streams.Kernel, error) {
		l, err := p.onGPU("pass to tune", s, arrays, box, sides)
		if err != nil {
			return nil, err
		}
		return l.Kernel, nil
	})
	if err != nil {
		return err
	}
	p.cost = p.gpu.costs()
	return nil
}

// tuningKey names all that decides which passes are the fastest. Values of parameters do not.
func (p *Points) tuningKey(box domain.Box) string {
	h := sha256.New()
	for _, s := range p.gpu.candidates {
		fmt.Fprintln(h, s.program)
	}
	var class [3]int
	for a, size := range box.Size() {
		class[a] = bits.Len(uint(size))
	}
	return fmt.Sprintf("%s %s, point function %s, kernels %x, up to 2^%v", p.device.Name, p.device.Arch, p.name, h.Sum(nil)[:8], class)
}
