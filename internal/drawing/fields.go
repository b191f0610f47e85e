package drawing

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/results/view"
	"github.com/halox/halox/solvers"
)

// options returns the options of a field or a table.
func (f *plotFlags) options() (view.Options, error) {
	o := view.Options{Slice: f.slice, Line: f.line, Title: f.title, Label: f.label, Colors: f.colors}
	if f.colors != "" && !slices.Contains(plot.ColorMaps(), f.colors) {
		return o, fmt.Errorf("--colors: must be one of %s, got %q", strings.Join(plot.ColorMaps(), ", "), f.colors)
	}
	if f.span == "" {
		return o, nil
	}
	end := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if text == "" {
			return math.NaN() // that of the values
		} else if err != nil || v-v != 0 {
			return math.Inf(1)
		}
		return v
	}
	lo, hi, found := strings.Cut(f.span, ":")
	o.Range = &plot.Range{Lo: end(lo), Hi: end(hi)}
	if !found || math.IsInf(o.Range.Lo, 0) || math.IsInf(o.Range.Hi, 0) || o.Range.Lo >= o.Range.Hi {
		return o, fmt.Errorf("--range: must be min:max, such as 0:1 or 0:, got %q", f.span)
	}
	return o, nil
}

// drawFields draws field files.
func (f *plotFlags) drawFields(names []string, _ io.Writer) error {
	o, err := f.options()
	if err != nil {
		return command.As(command.Usage, err)
	}
	var run *runOf
	if f.run != "" {
		if run, err = readRun(f.run); err != nil {
			return err
		}
		o.Colors = cmp.Or(o.Colors, run.config.Output.Colors)
		if o.Range == nil {
			o.Range = run.config.Output.View().Range
		}
	}
	all, err := openSeries(names, f.field, run)
	if err != nil {
		return err
	}
	film := slices.Contains(plot.FilmExtensions(), strings.ToLower(filepath.Ext(f.out)))
	switch curves := o.Line != "" || len(all[0].Spacing) == 1; {
	case film:
		var made plot.Film
		made, err = view.Film(len(all), func(i int) (*view.Field, error) { return all[i], nil }, o)
		if made.PerSecond, made.Width = f.perSecond, f.size; err == nil {
			err = plot.WriteFilm(f.out, made)
		}
	case len(all) == 1:
		err = f.write(view.Chart(all[0], o))
	case curves:
		err = f.write(view.Curves(all, o))
	default:
		err = fmt.Errorf("-o: must end in %s for %d fields, got %s; or draw them along a --line",
			strings.Join(plot.FilmExtensions(), " or "), len(all), f.out)
	}
	if err != nil && (strings.HasPrefix(err.Error(), "slice: ") || strings.HasPrefix(err.Error(), "line: ")) {
		err = command.As(command.Usage, fmt.Errorf("--%w", err))
	}
	return err
}

// openSeries describes fields of one grid, in the order of their steps. Those of a run, which may be nil, get what its
// record knows.
func openSeries(names []string, field string, run *runOf) (all []*view.Field, err error) {
	var frames []frame
	for _, name := range names {
		some, err := framesOf(name, field)
		if err != nil {
			return nil, err
		}
		frames = append(frames, some...)
	}
	slices.SortStableFunc(frames, func(a, b frame) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		if c := cmp.Compare(a.time, b.time); !math.IsNaN(a.time+b.time) && c != 0 {
			return c
		}
		return cmp.Compare(a.step, b.step)
	})
	for _, one := range frames {
		f, err := one.describe()
		if err == nil && run != nil {
			f, err = run.describe(one, f)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.path, err)
		}
		if len(all) > 0 && f.Grid.Size != all[0].Grid.Size {
			return nil, fmt.Errorf("%s has another shape than %s: draw them one by one", one.path, frames[0].path)
		}
		f.Read = one.read
		all = append(all, f)
	}
	return all, nil
}

// describe describes a field by its file alone.
func (f frame) describe() (*view.Field, error) {
	grid, err := domain.NewGrid(f.size, nil)
	v := &view.Field{Subject: f.name, Name: f.name, Label: f.name, Unit: f.unit, Moment: view.Moment(f.step, f.time), Grid: grid,
		Spacing: slices.Repeat([]float64{1}, len(f.size))}
	if f.origin != nil {
		v.Spacing = f.spacing
		v.Coordinate = func(axis, index int) float64 { return f.origin[axis] + float64(index)*f.spacing[axis] }
	}
	return v, err
}

// runOf is the run that wrote fields.
type runOf struct {
	record  *results.Record
	config  *configs.Run
	problem *solvers.Problem
}

// readRun reads the record of a run.
func readRun(path string) (*runOf, error) {
	r, err := results.Read(path)
	if err != nil {
		return nil, err
	}
	if r.Run == nil {
		return nil, fmt.Errorf("--run: %s must be the record of a run, but is of kind %s", path, r.Kind)
	}
	run := &runOf{record: r}
	text, err := json.Marshal(r.Settings)
	if err == nil {
		run.config, err = configs.Parse(path, text, configs.Options{})
	}
	if err == nil {
		run.problem, err = run.config.Problem()
	}
	if err != nil {
		return nil, fmt.Errorf("--run: the config in %s: %w", path, err)
	}
	return run, nil
}

// describe describes a field of the run, which is found by its name, or by that of its file. A part of the grid keeps
// the coordinates of its file.
func (r *runOf) describe(one frame, own *view.Field) (*view.Field, error) {
	fields, number, longest := r.problem.Fields(), -1, -1
	for i, f := range fields {
		length := len(f)
		if strings.HasSuffix(one.name, "-"+f) { // a series of NumPy files
			length += 1 << 10
		} else if !strings.HasPrefix(one.name, f) {
			continue
		}
		if length > longest {
			number, longest = i, length
		}
	}
	step, at := one.step, &one.time
	if math.IsNaN(one.time) {
		at = nil
	}
	for _, o := range r.config.Output.Field {
		if filepath.Base(o.Path) == filepath.Base(one.path) {
			number, step = max(0, slices.Index(fields, o.Field)), int64(r.record.Run.Iterations)
			at = r.record.Run.Time
		}
	}
	if number < 0 && len(fields) > 1 {
		return nil, fmt.Errorf("its name must begin or end with that of a field of the run: %s", strings.Join(fields, ", "))
	}
	f := r.config.View(r.problem, max(0, number), step, at)
	if slices.Equal(one.size, r.config.Grid.Size) {
		return &f, nil
	}
	if one.origin == nil {
		return nil, fmt.Errorf("its grid must be that of the run, %v, got %v", r.config.Grid.Size, one.size)
	}
	own.Subject, own.Moment, own.Label, own.Unit = f.Subject, f.Moment, f.Label, f.Unit
	return own, nil
}

// drawTable draws the columns of a table.
func (f *plotFlags) drawTable(names []string, _ io.Writer) error {
	o, err := f.options()
	if err == nil && len(names) > 1 {
		err = fmt.Errorf("FILE: must be one table, got %d", len(names))
	}
	if err != nil {
		return command.As(command.Usage, err)
	}
	var columns []string
	if f.y != "" { // names with commas are quoted
		if columns, err = csv.NewReader(strings.NewReader(f.y)).Read(); err != nil {
			return command.As(command.Usage, fmt.Errorf("--y: must be names of columns, got %q", f.y))
		}
	}
	chart, err := view.Table(names[0], f.x, columns, o)
	if err != nil {
		err = fmt.Errorf("%s: %w", names[0], err)
	}
	return f.write(chart, err)
}
