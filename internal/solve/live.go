package solve

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/term"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/progress"
	"github.com/halox/halox/results/view"
	"github.com/halox/halox/solvers/scheme"
)

// liveEvery is the least time between two pictures of --live.
const liveEvery = 500 * time.Millisecond

// CheckLive returns an error if --live is set and notes is not a terminal that can show pictures.
func CheckLive(set bool, notes io.Writer) error {
	switch {
	case !set:
		return nil
	case !progress.IsTerminal(notes):
		return errors.New("--live: the standard error must be a terminal, without -q and --log json")
	case os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb":
		return errors.New("--live: must be a terminal with colors, but NO_COLOR or TERM=dumb is set")
	}
	return nil
}

// withLive adds an event that draws a picture of the first field, or of the first picture of the config, above the bar,
// if --live is set. It is due again after liveEvery, or after ten times the time that it took. end draws the last
// picture.
func (s *Run) withLive(bar *progress.Bar, events []*scheme.Event) (
	all []*scheme.Event, end func(ctx context.Context, last scheme.Result) error,
) {
	if !s.live {
		return events, func(context.Context, scheme.Result) error { return nil }
	}
	columns, lines, field := 72, 20, 0
	if wide, high, err := term.GetSize(int(os.Stderr.Fd())); err == nil {
		columns, lines = min(columns, wide-1), min(lines, high-3)
	}
	if all := s.config.Output.Picture; len(all) > 0 {
		field = max(0, slices.Index(s.Problem.Fields(), all[0].Field))
	}
	e := &scheme.Event{Name: "show the field"}
	next := time.AfterFunc(0, e.Request)
	e.Do = func(ctx context.Context, so scheme.Result) error {
		begun := time.Now()
		var at *float64
		if s.config.Time != nil && s.config.TimeStep() == 0 {
			at = &so.Time
		}
		f := s.config.View(s.Problem, field, so.Step, at)
		f.Read = func(dst []float64, box domain.Box) error { return s.solver.Gather(ctx, field, dst, box) }
		picture, err := view.Terminal(&f, s.config.Output.View(), columns, lines)
		if err == nil {
			bar.Show(picture)
		}
		next.Reset(max(liveEvery, 10*time.Since(begun)))
		return err
	}
	return append(events, e), func(ctx context.Context, last scheme.Result) error {
		err := e.Do(ctx, last)
		next.Stop()
		return err
	}
}
