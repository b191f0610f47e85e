package compare

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/ranks"
)

// World makes the ranks of a program ready on all devices of a session, as many as the options say, but at most so many
// on a device, if that is not 0. Those of a device form some groups of the same size.
func World(s *halo.Session, p ranks.Program, o Options, groups, most int) (*ranks.World, error) {
	if o.Pauses {
		p.Source.Defines = append(slices.Clone(p.Source.Defines), "PAUSES")
	}
	if o.Ranks%groups != 0 {
		return nil, fmt.Errorf("--ranks %d: the ranks of a device form %d groups of the same size", o.Ranks, groups)
	}
	return ranks.New(s.Compiler, s.Devices, s.Links, p, ranks.Options{
		Ranks: o.Ranks, PerMultiprocessor: o.PerMultiprocessor, Multiple: groups, AtMost: most, Limit: o.Limit,
	})
}

// ByRanks is the method of a program of ranks that times its iterations itself, once a run. data returns what each
// device gets.
func ByRanks[T any](w *ranks.World, data func(iterations int) []T) Method {
	return func(ctx context.Context, iterations int) (most time.Duration, err error) {
		if err := ranks.Run(ctx, w, data(iterations)); err != nil {
			return 0, err
		}
		for i, d := range w.Devices() {
			took := w.Timings(i)
			if len(took) != 1 {
				return 0, fmt.Errorf("ranks of %v have timed %d times", d, len(took))
			}
			most = max(most, took[0])
		}
		return most, nil
	}
}
