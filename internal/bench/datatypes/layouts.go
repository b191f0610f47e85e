package datatypes

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/internal/bench/option"
)

// Layouts say which layouts are measured, and for how long. What is left out is as the figure has
// it, where one is named.
type Layouts struct {
	Suites      []string // nil for all of Suites
	Match       string   // a regular expression that the names fit
	Least, Most int64    // packed bytes; 0 for no limit
	Over        string   // the parameter that is drawn over; "" for PackedBytes
	Figure      string   // of a paper, by its name; "" for bandwidth over the parameter
	Blocks      int      // thread blocks of a kernel at most; 0 for as many as suit
	Budget      time.Duration
	NoCheck     bool // what is written is not compared with the host's
}

// check refuses values that make no sense.
func (o *Layouts) check() error {
	var err error
	switch {
	case o.Blocks < 0:
		err = fmt.Errorf("--blocks %d: give a positive number, or 0 for as many as suit", o.Blocks)
	case o.Least < 0 || o.Most < 0:
		err = fmt.Errorf("--least %d --most %d: give positive numbers of bytes, or 0 for no limit", o.Least, o.Most)
	case o.Most > 0 && o.Least > o.Most:
		err = fmt.Errorf("--least %d is more than --most %d: no layout has so many bytes", o.Least, o.Most)
	}
	if o.Suites != nil {
		err = cmp.Or(err, option.EachOf("suites", o.Suites, Suites()...))
	}
	return cmp.Or(err, option.Time("budget", o.Budget))
}

// generalAxes fills in what was left open, and returns the axes of a plot of bandwidth over packed
// size, or another parameter.
func (o *Layouts) generalAxes(title string) axes {
	o.Over = cmp.Or(o.Over, PackedBytes)
	if o.Suites == nil {
		o.Suites = Suites()
	}
	a := axes{title: title, x: o.Over, xLabel: o.Over}
	if o.Match != "" {
		a.title += " of " + o.Match
	}
	if o.Over == PackedBytes {
		a.xLabel = "packed bytes"
	}
	return a
}

// take takes the suite and the parameter of a figure, and refuses those that it has of its own.
func (o *Layouts) take(a *axes) error {
	if o.Suites != nil {
		return ownOption(a, "suites")
	}
	if o.Over != "" {
		return ownOption(a, "over")
	}
	o.Suites, o.Over = []string{a.suite}, a.x
	return nil
}

// ownOption is the error of an option that a figure has of its own.
func ownOption(a *axes, name string) error {
	return fmt.Errorf("--figure %s has its own --%s: leave --%s out", a.name, name, name)
}

// choose returns the layouts that the options choose and the figure shows. It is an error if there
// are none.
func (o *Layouts) choose(shows func(workload string) bool) (chosen []workloads.Workload, err error) {
	wanted, err := regexp.Compile(o.Match)
	if err != nil {
		return nil, fmt.Errorf("--match: %w", err)
	}
	for _, s := range suites() {
		if !slices.Contains(o.Suites, s.name) {
			continue
		}
		all, err := s.make()
		if err != nil {
			return nil, err
		}
		for _, w := range all {
			if wanted.MatchString(w.String()) && shows(w.String()) && w.Bytes >= max(1, o.Least) && (o.Most == 0 || w.Bytes <= o.Most) {
				chosen = append(chosen, w)
			}
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no layout of %s fits --match, --least and --most: --list prints them all", strings.Join(o.Suites, ", "))
	}
	return chosen, nil
}

// checkAxis returns an error unless one of the layouts has the parameter to be drawn over.
func (o *Layouts) checkAxis(a *axes, work []workloads.Workload) error {
	if slices.ContainsFunc(work, a.has) {
		return nil
	}
	return fmt.Errorf("--over %s: the layouts have no such parameter: --list prints them", o.Over)
}
