package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/halox/halox/internal/forecast"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// fitted fits a model to each way to make steps, and prints how far it is from them, also into the record.
func fitted(out io.Writer, r *results.Record, p forecast.Problem, steps map[string][]forecast.Sample, devices int) (by []forecast.Candidate, err error) {
	type fit struct {
		forecast.Candidate
		seen, unseen forecast.Errors
	}
	var all []fit
	for name, samples := range steps {
		if devices > 1 && forecast.Alone(samples) {
			err = fmt.Errorf("%s: no steps of several devices of a host were measured: --devices-per-host 1", name)
			continue
		}
		m, failed := forecast.Fit(p, samples)
		if failed != nil {
			err = failed
			continue
		}
		f := fit{forecast.Candidate{Name: name, Model: m}, m.ErrorsOf(p, samples), forecast.ErrorsOfUnseen(p, samples)}
		f.Fewest = forecast.FewestPoints(samples)
		all = append(all, f)
	}
	if len(all) == 0 {
		return nil, errors.Join(errors.New("no steps of this stencil, precision, scheme and path that a model can be fitted to; halox bench schemes --record FILE makes some"), err)
	}
	slices.SortFunc(all, func(a, b fit) int {
		return cmp.Or(cmp.Compare(a.seen.Worst, b.seen.Worst), cmp.Compare(a.Name, b.Name))
	})
	title := "models of a step, and how far they are from measured ones: in the median and at worst; and of sizes between that a fit had not seen"
	table(out, title, "scheme\tmeasured\tmedian\tworst\tunseen\tmedian\tworst\t", func(t io.Writer) {
		for i, f := range all {
			note := ""
			if i == 0 || f.seen.Worst <= believed {
				by = append(by, f.Candidate)
			} else {
				note = "not used"
			}
			for _, e := range []struct {
				of string
				forecast.Errors
			}{{"fitted", f.seen}, {"unseen", f.unseen}} {
				if e.Samples > 0 {
					r.Add(results.NewRow().Label("scheme", f.Name).Label("error_of", e.of).Label("steps", e.Samples).
						Number(results.ModelError, e.Median).Number(results.WorstError, e.Worst))
				}
			}
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%d\t%s\t%s\t%s\n", f.Name, f.seen.Samples, percent(f.seen.Median), percent(f.seen.Worst),
				f.unseen.Samples, percent(f.unseen.Median), percent(f.unseen.Worst), note)
		}
	})
	return by, nil
}

// believed is how far a model may be from any measured step to be used, beside the best one.
const believed = 0.15

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// printHosts prints the steps over a network, strong and weak, and adds them to the record.
func printHosts(out io.Writer, r *results.Record, p forecast.Problem, on forecast.Machine, hosts []int, by []forecast.Candidate) error {
	n := on.Network
	for _, mode := range []struct {
		name, about string
		steps       func(forecast.Problem, forecast.Machine, []int, []forecast.Candidate) ([]forecast.Step, error)
	}{
		{"strong", "one grid on all hosts", forecast.Strong},
		{"weak", "a grid that grows with the hosts", forecast.Weak},
	} {
		steps, err := mode.steps(p, on, hosts, by)
		if len(steps) == 0 {
			return err
		}
		title := fmt.Sprintf("%s: %s, %d devices a host, %d x %.3g GB/s between hosts, latency %s, %s a message",
			n.Name, mode.about, on.Devices, n.Adapters, n.Bandwidth/1e9, p2p.Microseconds(n.Latency), p2p.Microseconds(n.Message))
		table(out, title, "hosts\tdevices\tcut over hosts\tpoints a device\tfrom a host\tstep\tsweep\tefficiency\tscheme", func(t io.Writer) {
			for _, s := range steps {
				beyond := ""
				if s.Beyond {
					beyond = ", fewer points than any that was measured"
				}
				fmt.Fprintf(t, "%d\t%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s%s\n", s.Hosts, s.Devices, times(s.Cut.Hosts[:p.Grid.Dims]), s.Points, streams.Size(s.Bytes),
					p2p.Microseconds(s.Time), p2p.Microseconds(s.Sweep), percent(s.Efficiency), s.By, beyond)
				r.Add(results.NewRow().Label("network", n.Name).Label("mode", mode.name).Label("hosts", s.Hosts).Label("devices", s.Devices).Label("scheme", s.By).
					Number(results.Step, s.Time.Seconds()*1e6).Number(results.Efficiency, s.Efficiency))
			}
		})
		if at, found := forecast.Below(steps, 0.9); found {
			r.Add(results.NewRow().Label("network", n.Name).Label("mode", mode.name).Number(results.HostsAt90, float64(at)))
			fmt.Fprintf(out, "the efficiency falls below 90%% at about %d hosts\n", at)
		} else {
			fmt.Fprintf(out, "the efficiency is 90%% or more on up to %d hosts\n", steps[len(steps)-1].Hosts)
		}
		if err != nil {
			fmt.Fprintf(out, "no more hosts: %v\n", err)
		}
	}
	return nil
}
