package solvers

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// groupsTried are the numbers of steps between two exchanges that are tried, where subdomains have the layers.
var groupsTried = [...]int{1, 2, 4, 8}

// FastestGroup is Fastest over several numbers of steps between two exchanges too: 1, 2, 4 and 8, as far as subdomains own the
// layers that their neighbours then need, and there is memory. Each trial says of which it is. Without neighbours there is nothing to
// exchange, and 1 is tried alone, but for a scheme that exchanges within a device.
func FastestGroup(ctx context.Context, p *Problem, place *halo.Placement, s scheme.Search, o scheme.Options) (trials []scheme.Trial, known bool, err error) {
	return eachGroup(p, place, s, func(of *Problem) ([]scheme.Trial, bool, error) {
		if of.Group > 1 {
			s.Ahead = nil // that is for other widths
		}
		return Fastest(ctx, of, place, s, o)
	})
}

// RecallGroup returns the trials of FastestGroup that are remembered, none unless all are.
func RecallGroup(ctx context.Context, p *Problem, place *halo.Placement, s scheme.Search, o scheme.Options) ([]scheme.Trial, error) {
	trials, known, err := eachGroup(p, place, s, func(of *Problem) ([]scheme.Trial, bool, error) {
		some, err := Recall(ctx, of, place, s, o)
		return some, len(some) > 0, err
	})
	if !known {
		return nil, err
	}
	return trials, err
}

// eachGroup joins the trials of the problem with each number of steps between two exchanges, the shortest first. known says
// that all were.
func eachGroup(p *Problem, place *halo.Placement, s scheme.Search, try func(of *Problem) ([]scheme.Trial, bool, error)) (all []scheme.Trial, known bool, err error) {
	if err := p.check(place); err != nil {
		return nil, false, err
	}
	known = true
	for _, steps := range groupsTried {
		of := *p
		of.Group = steps
		if steps > 1 && (alone(place) && !within(s.Scheme) || !groups(s.Scheme) || place.CheckWidth(of.Width()) != nil) {
			break
		}
		trials, ok, err := try(&of)
		if errors.Is(err, streams.ErrOutOfMemory) && steps > 1 {
			break
		}
		if err != nil {
			return nil, false, err
		}
		known = known && ok
		all = append(all, trials...)
	}
	slices.SortStableFunc(all, func(a, b scheme.Trial) int { return cmp.Compare(a.Step, b.Step) })
	return all, known, nil
}

// groups reports whether a scheme makes several steps between two exchanges, or Auto may be one that does.
func groups(name scheme.Scheme) bool {
	needs, err := scheme.NeedsOf(name)
	return err != nil || needs.Groups
}

// within reports whether a scheme exchanges within a device too.
func within(name scheme.Scheme) bool {
	needs, err := scheme.NeedsOf(name)
	return err == nil && needs.Within
}

// alone reports whether no subdomain has a neighbour.
func alone(place *halo.Placement) bool {
	for _, side := range domain.Faces(place.Grid.Dims) {
		if _, ok := place.Neighbour(0, side); ok {
			return false
		}
	}
	return true
}

// ExtraPoints returns how many points that others own all subdomains sweep in the steps between two exchanges.
func (p *Problem) ExtraPoints(place *halo.Placement) (extra int64) {
	r := p.Stencil.Radius()
	var layers domain.Radius
	for range max(1, p.Group) - 1 {
		for a := range 3 {
			layers.Minus[a], layers.Plus[a] = layers.Minus[a]+r.Minus[a], layers.Plus[a]+r.Plus[a]
		}
		for rank, s := range place.Subdomains {
			extra += place.Grown(rank, layers).Points() - s.Box.Points()
		}
	}
	return extra
}
