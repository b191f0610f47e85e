package forecast

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// Forecast selects the predicted steps.
type Forecast struct {
	Problem  Problem
	Wanted   Wanted // the measured steps that models are fitted to
	Hosts    []int  // numbers of hosts, in ascending order
	Devices  int    // of each host
	Networks []Network
}

// Doubled returns 1, 2, 4 and so on, and last.
func Doubled(last int) (all []int) {
	for n := 1; n < last; n *= 2 {
		all = append(all, n)
	}
	return append(all, last)
}

// Predict fits models to measured steps and predicts steps over each network: for a fixed grid, and for one that grows
// with the number of hosts. It prints tables, and adds their rows to a record.
func (f Forecast) Predict(out io.Writer, r *results.Record, measured []MeasuredFile) error {
	by, err := f.candidates(f.Wanted.samples(f.Problem, measured))
	if err != nil {
		return fmt.Errorf("--measured: %w", err)
	}
	by = printFits(out, r, by)
	for _, n := range f.Networks {
		for _, mode := range []struct {
			name, about string
			weak        bool
		}{{"strong", "one grid on all hosts", false}, {"weak", "a grid that grows with the hosts", true}} {
			steps, err := f.curve(n, by, mode.weak)
			if len(steps) == 0 {
				return err
			}
			f.print(out, n, mode.about, steps)
			if err != nil {
				fmt.Fprintf(out, "more hosts are not possible: %v\n", err)
			}
			record(r, results.NewRow().Label("network", n.Name).Label("mode", mode.name), steps)
		}
	}
	return nil
}

// candidate is a scheme and path, with the model fitted to its measured steps.
type candidate struct {
	name         string
	model        model
	fewest       int64 // smallest measured points of the busiest device
	seen, unseen deviations
}

// believed is the largest error of a model that is used; the best model is always used.
const believed = 0.15

// candidates fits a model to the steps of each scheme and path, the one with the smallest error first.
func (f Forecast) candidates(steps map[string][]sample) (all []candidate, err error) {
	for name, samples := range steps {
		several := func(s sample) bool { return s.Cut.Devices.Product() > 1 }
		if f.Devices > 1 && !slices.ContainsFunc(samples, several) {
			err = fmt.Errorf("%s: no steps on several devices of a host were measured: --devices-per-host 1", name)
			continue
		}
		m, failed := fit(f.Problem, samples)
		if failed != nil {
			err = failed
			continue
		}
		c := candidate{name, m, math.MaxInt64, m.deviationsFrom(f.Problem, samples),
			deviationsUnseen(f.Problem, samples)}
		for _, s := range samples {
			c.fewest = min(c.fewest, s.load(f.Problem).points)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errors.Join(errors.New("must have steps of this stencil, precision, scheme and path, to "+
			"which a model can be fitted; halox bench schemes --record FILE measures them"), err)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.seen.worst, b.seen.worst), cmp.Compare(a.name, b.name))
	})
	return all, nil
}

// printFits prints the errors of models, and returns those that are used.
func printFits(out io.Writer, r *results.Record, all []candidate) (used []candidate) {
	fmt.Fprint(out, "\nmodels of a step, with their median and largest errors for measured steps; "+
		"unseen: sizes left out of a fit\n")
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer t.Flush()
	fmt.Fprintln(t, "scheme\tmeasured\tmedian\tworst\tunseen\tmedian\tworst\t")
	for i, c := range all {
		note := "not used"
		if i == 0 || c.seen.worst <= believed {
			used, note = append(used, c), ""
		}
		for _, of := range []struct {
			name string
			deviations
		}{{"fitted", c.seen}, {"unseen", c.unseen}} {
			if of.samples > 0 {
				r.Add(results.NewRow().Label("scheme", c.name).Label("error_of", of.name).Label("steps", of.samples).
					Number(results.ModelError, of.median).Number(results.WorstError, of.worst))
			}
		}
		fmt.Fprintf(t, "%s\t%v\t%v\t%s\n", c.name, c.seen, c.unseen, note)
	}
	return used
}

// String returns three columns of a table.
func (d deviations) String() string {
	return fmt.Sprintf("%d\t%s\t%s", d.samples, percent(d.median), percent(d.worst))
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// step is a predicted step.
type step struct {
	by         string // the fastest candidate
	hosts      int
	cut        Cut
	load       load          // of the busiest device
	time       time.Duration // of a step
	sweep      time.Duration // time of the step without neighbors
	efficiency float64       // relative to the first number of hosts
	beyond     bool          // a device has fewer points than any measured one
}

// curve returns the steps over a network, up to the first number of hosts for which the grid cannot be decomposed, and
// the error of that. If weak, the grid grows with the number of hosts.
func (f Forecast) curve(n Network, by []candidate, weak bool) (all []step, err error) {
	for _, hosts := range f.Hosts {
		p, cut := f.Problem, Cut{}
		if weak {
			p, cut, err = p.grown(hosts, f.Devices)
		} else {
			cut, err = p.CutOver(hosts, f.Devices)
		}
		if err != nil {
			return all, err
		}
		s := p.fastest(cut, n, by)
		first, ideal := s, 1.0
		if len(all) > 0 {
			first = all[0]
		}
		if !weak {
			ideal = float64(first.hosts) / float64(hosts)
		}
		s.efficiency = first.time.Seconds() * ideal / s.time.Seconds()
		all = append(all, s)
	}
	return all, nil
}

// fastest returns the step of the fastest candidate.
func (p Problem) fastest(c Cut, n Network, by []candidate) (best step) {
	l := p.loadOf(c)
	for _, one := range by {
		took := seconds(one.model.step(l, n))
		if best.by == "" || took < best.time {
			best = step{by: one.name, hosts: int(c.Hosts.Product()), cut: c, load: l, time: took,
				sweep: seconds(one.model.sweep(l.points)), beyond: l.points < one.fewest}
		}
	}
	return best
}

// seconds returns a duration, the longest one for longer times.
func seconds(s float64) time.Duration {
	if ns := math.Round(s * 1e9); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}

// print prints the steps over a network.
func (f Forecast) print(out io.Writer, n Network, about string, steps []step) {
	fmt.Fprintf(out, "\n%s: %s, %d devices per host, %d x %.3g GB/s between hosts, latency %s, %s per message\n",
		n.Name,
		about, f.Devices, n.Adapters, n.Bandwidth/1e9, p2p.Microseconds(n.Latency), p2p.Microseconds(n.Message))
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "hosts\tdevices\tdecomposition over hosts\tpoints per device\tsent per host\tstep\tsweep\t"+
		"efficiency\tscheme")
	for _, s := range steps {
		beyond := ""
		if s.beyond {
			beyond = ", fewer points than any measured step"
		}
		fmt.Fprintf(t, "%d\t%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s%s\n", s.hosts, s.hosts*f.Devices,
			domain.Times(s.cut.Hosts[:f.Problem.Grid.Dims]), s.load.points, streams.Size(s.load.fromHost),
			p2p.Microseconds(s.time), p2p.Microseconds(s.sweep), percent(s.efficiency), s.by, beyond)
	}
	t.Flush()
	if at, found := below(steps, 0.9); found {
		fmt.Fprintf(out, "the efficiency falls below 90%% at about %d hosts\n", at)
	} else {
		fmt.Fprintf(out, "the efficiency is 90%% or more on up to %d hosts\n", steps[len(steps)-1].hosts)
	}
}

// record adds the steps to a record, with the labels of their curve.
func record(r *results.Record, labels results.Row, steps []step) {
	for _, s := range steps {
		devices := int64(s.hosts) * s.cut.Devices.Product()
		r.Add(labels.Label("hosts", s.hosts).Label("devices", devices).Label("scheme", s.by).
			Number(results.Step, s.time.Seconds()*1e6).Number(results.Efficiency, s.efficiency))
	}
	if at, found := below(steps, 0.9); found {
		r.Add(labels.Number(results.HostsAt90, float64(at)))
	}
}

// below returns the smallest number of hosts whose efficiency is below a share; ok is false if there is none. It
// interpolates between two steps, linearly in the logarithm of the number of hosts.
func below(steps []step, share float64) (hosts int, found bool) {
	i := slices.IndexFunc(steps, func(s step) bool { return s.efficiency < share })
	if i < 0 {
		return 0, false
	}
	s := steps[i]
	if i == 0 {
		return s.hosts, true
	}
	before := steps[i-1]
	at := (before.efficiency - share) / (before.efficiency - s.efficiency)
	low, high := math.Log(float64(before.hosts)), math.Log(float64(s.hosts))
	return min(s.hosts, max(before.hosts+1, int(math.Ceil(math.Exp(low+at*(high-low)))))), true
}
