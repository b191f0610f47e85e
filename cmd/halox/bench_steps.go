package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
)

// stepBench is what the benches that time steps of a solver are asked for.
type stepBench struct {
	backend    string
	counts     []int // of devices; none for 1, 2, 4 and so on, and all
	dims       int
	points     []int // none for those that suit dims
	precisions []string
	cut        string
	budget     time.Duration
	settings   any // all flags, for the record
	recorder
}

// The values of --cut.
const (
	cutAuto  = "auto"
	cutSlabs = "slabs"
)

func (b *stepBench) addFlags(f *pflag.FlagSet) {
	f.StringVar(&b.backend, "backend", configs.Auto, "auto, cuda or host")
	f.IntSliceVar(&b.counts, "devices", nil, "numbers of devices (default 1, 2, 4, ... and all)")
	f.IntVar(&b.dims, "dims", 3, "3 for cubes and the 7-point star, 2 for squares and the 5-point star")
	f.IntSliceVar(&b.points, "points", nil, "points along each axis (default 64,128,256,512, or with --dims 2 1024,4096,16384)")
	f.StringSliceVar(&b.precisions, "precisions", []string{"float64", "float32"}, "float64, float32")
	f.StringVar(&b.cut, "cut", cutAuto, "how the grid is cut: auto, or in slabs along its last axis, as in the paper")
	f.DurationVar(&b.budget, "budget", time.Second, "how long one row is measured at most, without what comes before")
	b.recorder.addFlags(f)
}

// check refuses flags that make no sense, and fills in what was left open.
func (b *stepBench) check() error {
	if len(b.points) == 0 {
		b.points = map[int][]int{2: {1024, 4096, 16384}, 3: {64, 128, 256, 512}}[b.dims]
	}
	b.points, b.precisions = distinct(b.points), distinct(b.precisions)
	b.counts = distinct(b.counts)
	slices.Sort(b.counts)
	return errors.Join(
		oneOf("backend", b.backend, configs.Auto, "cuda", "host"),
		oneOf("dims", strconv.Itoa(b.dims), "2", "3"),
		oneOf("cut", b.cut, cutAuto, cutSlabs),
		eachOf("precisions", b.precisions, string(kernels.Float64), string(kernels.Float32)),
		checkPoints("points", b.points), allPositive("devices", b.counts),
		positiveTime("budget", b.budget), b.recorder.check(),
	)
}

func positiveTime(flag string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("--%s %v: give it some time, such as 1s", flag, d)
	}
	return nil
}

func allPositive(flag string, all []int) error {
	for _, n := range all {
		if n < 1 {
			return fmt.Errorf("--%s: %d is none", flag, n)
		}
	}
	return nil
}

// problems yields the precisions, each with all numbers of points.
func (b *stepBench) problems() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, precision := range b.precisions {
			for _, points := range b.points {
				if !yield(precision, points) {
					return
				}
			}
		}
	}
}

// cube returns the size of a grid with as many points along each axis.
func (b *stepBench) cube(points int) []int { return slices.Repeat([]int{points}, b.dims) }

// distinct leaves out what was there before.
func distinct[T comparable](all []T) (some []T) {
	for _, v := range all {
		if !slices.Contains(some, v) {
			some = append(some, v)
		}
	}
	return some
}

// run opens the devices, measures the tasks, adds to the rows what compare says of them
// all, and keeps them. Interrupted or failed, it keeps what it had.
func (b *stepBench) run(ctx context.Context, kind results.Kind, out, notes io.Writer, tasks func(*stepRun) []task, compare func([]results.Row) []results.Row) (err error) {
	m, err := openDevices(configs.Devices{Backend: b.backend, Count: configs.Count(most(b.counts))}, notes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	if len(b.counts) == 0 {
		b.counts = doublings(len(m.devices))
	}
	r := &stepRun{opened: m, cut: b.cut, budget: b.budget, notes: notes, compiler: kernels.CompilerFromEnv(), links: map[int]*p2p.Links{}}
	links, err := r.linksOf(ctx, len(m.devices))
	if err != nil {
		return err
	}
	record := m.benchRecord(ctx, kind, b.settings, links)
	if err := b.begin(record); err != nil {
		return err
	}
	r.record = record
	if err := r.measureCeiling(); err != nil {
		return err
	}
	failure := b.measureAll(ctx, record, tasks(r), notes)
	record.Rows = compare(record.Rows)
	return errors.Join(failure, b.keep(record, out, notes), nothing(record, failure))
}

// nothing is the error of a record in which every row was left out.
func nothing(r *results.Record, failure error) error {
	measured := func(row results.Row) bool { return len(row.Values) > 0 }
	if failure != nil || len(r.Rows) == 0 || slices.ContainsFunc(r.Rows, measured) {
		return nil
	}
	return fmt.Errorf("nothing could be measured: all was left out, such as %s: %s", nameOf(r.Rows[0]), r.Rows[0].Note)
}

func most(all []int) int {
	if len(all) == 0 {
		return 0
	}
	return slices.Max(all)
}

// doublings returns 1, 2, 4 and so on, and n last.
func doublings(n int) (all []int) {
	for k := 1; k < n; k *= 2 {
		all = append(all, k)
	}
	return append(all, n)
}
