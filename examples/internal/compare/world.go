package compare

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/ranks"
)

// World makes the ranks of a program ready on all devices of a session, as many as the options say. Those of a device
// form some groups of the same size: if nobody says how many ranks there are, as many as are a multiple of that.
func World(s *halo.Session, p ranks.Program, o Options, groups int) (*ranks.World, error) {
	want := ranks.Options{Ranks: o.Ranks, Limit: o.Limit}
	if o.Pauses {
		p.Source.Defines = append(slices.Clone(p.Source.Defines), "PAUSES")
	}
	if o.Ranks%groups != 0 {
		return nil, fmt.Errorf("--ranks %d: the ranks of a device form %d groups of the same size", o.Ranks, groups)
	}
	if o.Ranks == 0 {
		n, err := fitting(s, p, o)
		if err != nil {
			return nil, err
		}
		want.Ranks = max(1, n/groups) * groups
	}
	return ranks.New(s.Compiler, s.Devices, s.Links, p, want)
}

// fitting returns how many ranks a device has where their number is left to its multiprocessors.
func fitting(s *halo.Session, p ranks.Program, o Options) (int, error) {
	if o.PerMultiprocessor > 0 {
		n := o.PerMultiprocessor * s.Devices[0].Cores
		for _, d := range s.Devices {
			n = min(n, o.PerMultiprocessor*d.Cores)
		}
		return n, nil
	}
	w, err := ranks.New(s.Compiler, s.Devices, s.Links, p, ranks.Options{})
	if err != nil {
		return 0, err
	}
	return w.Ranks(), w.Close()
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
