package halo

import (
	"errors"
	"strconv"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// Split cuts what a subdomain owns into its boundary region, with the given layers
// at the sides where there is a neighbour, and its interior, see domain.Split. One
// who sweeps the boundary region first can exchange it while the interior is
// swept. Neighbours need at a low side as many layers as their fields have ghosts
// at the high side, and the other way round.
func (p *Placement) Split(rank int, layers domain.Radius) (interior domain.Box, boundary []domain.Box) {
	for _, side := range domain.Faces(p.Grid.Dims) {
		if _, ok := p.Neighbour(rank, side); ok {
			continue
		}
		if a := side.Axis(); side[a] < 0 {
			layers.Minus[a] = 0
		} else {
			layers.Plus[a] = 0
		}
	}
	return domain.Split(p.Subdomains[rank].Box, layers)
}

// Kernels makes two launches ready for every subdomain, by rank, one over the
// boundary region and one over the interior that Split gives, and nil where that
// has no points. kernel makes a launch over boxes; its error ends this, and so does a panic in it.
func (p *Placement) Kernels(layers domain.Radius, kernel func(rank int, boxes []domain.Box) (*streams.Kernel, error)) (boundary, interior []*streams.Kernel, err error) {
	if kernel == nil {
		return nil, nil, errors.New("halo: kernels that no function makes")
	}
	made := func(rank int, boxes []domain.Box) (k *streams.Kernel, err error) {
		defer streams.Caught(&err, "the function of Placement.Kernels for subdomain", strconv.Itoa(rank))
		return kernel(rank, boxes)
	}
	boundary, interior = make([]*streams.Kernel, len(p.Subdomains)), make([]*streams.Kernel, len(p.Subdomains))
	for rank := range p.Subdomains {
		inner, outer := p.Split(rank, layers)
		if len(outer) > 0 {
			if boundary[rank], err = made(rank, outer); err != nil {
				return nil, nil, err
			}
		}
		if !inner.Empty() {
			if interior[rank], err = made(rank, []domain.Box{inner}); err != nil {
				return nil, nil, err
			}
		}
	}
	return boundary, interior, nil
}
