package scheme

import "github.com/halox/halox/domain"

// boxesOf returns what a stage of step n, or of its phase, sweeps.
func (d *subdomain) boxesOf(x *Runner, stage int, n int64) (b boxes) {
	b.owned = x.place.Subdomains[d.rank].Box
	b.whole = b.owned
	if !x.step.grows(n, stage) {
		b.interior, b.boundary = domain.Split(b.owned, d.boundaryLayers(x, stage, true))
		return b
	}
	b.grown = true
	b.whole = x.place.Grown(d.rank, x.step.growth(n, stage))
	b.boundary = []domain.Box{b.whole}
	_, b.ghosts = domain.Split(b.whole, domain.Radius{Minus: b.owned.Lo.Sub(b.whole.Lo), Plus: b.whole.Hi.Sub(b.owned.Hi)})
	return b
}
