package series

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/solvers/scheme"
)

// A ProbeSpec describes probes: the points of the grid that are nearest to given ones.
type ProbeSpec struct {
	File     string      // a CSV file
	Every    Every       // distance between two rows
	Fields   []string    // names of fields
	At       []float64   // coordinates of a point; nil with Line
	Line     [][]float64 // coordinates of both ends of a line
	Points   int         // points at equal distances on the line; 0: as many as the longest axis of the line has
	KeepRows bool        // Values returns the rows; default false
}

// Probes write values at points to a file, one row per output. Rank 0 writes; all processes call the event.
type Probes struct {
	Columns []string // names of the values, in the order of the fields and then of the points

	run    *Run
	spec   ProbeSpec
	fields []Field
	points []domain.Vec
	boxes  []domain.Box // hold the points, in their order
	last   int64        // step of the last row
	file   *os.File     // nil on other ranks and after a failure
	values map[int64][]float64
}

// NewProbes prepares probes. Start opens the file.
func NewProbes(r *Run, spec ProbeSpec) (p *Probes, err error) {
	p = &Probes{run: r, spec: spec, values: map[int64][]float64{}}
	if p.fields, err = r.named(spec.Fields); err != nil {
		return nil, err
	}
	if spec.Line == nil {
		p.points = []domain.Vec{r.point(spec.At)}
	} else {
		p.points = r.line(spec.Line[0], spec.Line[1], spec.Points)
	}
	p.boxes = boxesOf(p.points)
	for _, f := range p.fields {
		for _, at := range p.points {
			var all []string
			for axis := range r.axes() {
				all = append(all, strconv.FormatFloat(r.Coordinate(axis, at[axis]), 'g', 9, 64))
			}
			p.Columns = append(p.Columns, f.Name+"("+strings.Join(all, " ")+")")
		}
	}
	return p, nil
}

// line returns different points of the grid at equal distances on a line.
func (r *Run) line(from, to []float64, points int) (all []domain.Vec) {
	if points == 0 {
		low, high := r.point(from), r.point(to)
		for a := range 3 {
			points = max(points, high[a]-low[a]+1, low[a]-high[a]+1)
		}
	}
	at := make([]float64, len(from))
	for i := range points {
		for a := range at {
			at[a] = from[a] + (to[a]-from[a])*float64(i)/float64(max(1, points-1))
		}
		if p := r.point(at); i == 0 || p != all[len(all)-1] {
			all = append(all, p)
		}
	}
	return all
}

// boxesOf returns boxes that hold points, in their order: one box if they are a row of neighbors.
func boxesOf(points []domain.Vec) (all []domain.Box) {
	first, last := points[0], points[len(points)-1]
	if row := (domain.Box{Lo: first, Hi: last.Add(domain.Vec{1, 1, 1})}); row.Points() == int64(len(points)) &&
		!row.Empty() {
		return []domain.Box{row}
	}
	for _, p := range points {
		all = append(all, domain.Box{Lo: p, Hi: p.Add(domain.Vec{1, 1, 1})})
	}
	return all
}

// Start begins the file before the first step of a run. If the run continues after a step, rows up to it stay. All
// processes call it.
func (p *Probes) Start(ctx context.Context, step int64) (err error) {
	processes := p.run.Place.Processes
	if p.last = -1; processes.Rank == 0 {
		if err = p.start(step); err == nil {
			p.run.checkGap(p.output(), p.spec.Every, p.last, step)
		}
		err = p.fail(err)
	}
	if err = processes.Agree(ctx, "begin probes", err); err != nil {
		return err
	}
	p.last, err = mpi.Broadcast(ctx, processes, "begin probes", p.last, 0) // others do not read the file
	return err
}

func (p *Probes) output() string { return "output.probes " + p.spec.File }

func (p *Probes) start(step int64) error {
	header := append([]string{"step", "time"}, p.Columns...)
	if p.run.Time == nil {
		header = slices.Delete(header, 1, 2)
	}
	rows := [][]string{header}
	text, err := os.ReadFile(p.spec.File)
	if step > 0 && err == nil {
		text = text[:bytes.LastIndexByte(text, '\n')+1] // the last row may be cut
		old, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil || len(old) > 0 && !slices.Equal(old[0], header) {
			return errors.Join(err, errors.New("must have the columns of this run, to continue it"))
		}
		for _, row := range old[min(1, len(old)):] {
			if n, err := strconv.ParseInt(row[0], 10, 64); err != nil || n > step {
				break
			} else if rows, p.last = append(rows, row), n; p.spec.KeepRows {
				p.values[n] = parsed(row[len(row)-len(p.Columns):])
			}
		}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var all bytes.Buffer
	w := csv.NewWriter(&all)
	if err := errors.Join(w.WriteAll(rows), files.Write(p.spec.File, all.Bytes())); err != nil {
		return err
	}
	p.file, err = os.OpenFile(p.spec.File, os.O_WRONLY|os.O_APPEND, 0)
	return err
}

func parsed(row []string) (values []float64) {
	for _, text := range row {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			v = math.NaN()
		}
		values = append(values, v)
	}
	return values
}

// fail ends the file after an error.
func (p *Probes) fail(err error) error {
	if err == nil {
		return nil
	}
	_ = p.Close()
	return p.run.Failed(p.output(), err)
}

// Event returns the event that writes a row.
func (p *Probes) Event() *scheme.Event {
	return &scheme.Event{Name: "write " + p.spec.File, Next: p.spec.Every.next(p.run.Length), First: true,
		Do: func(ctx context.Context, so scheme.Result) error {
			step := so.Step
			if step <= p.last {
				return nil
			}
			p.last = step
			values, err := p.read(ctx)
			if err != nil || p.run.Place.Processes.Rank != 0 {
				return err
			}
			if p.spec.KeepRows {
				p.values[step] = values
			}
			return p.write(step, values)
		}}
}

// Values returns the values of the row of a step, nil if there is none.
func (p *Probes) Values(step int64) []float64 { return p.values[step] }

// read returns the values of all columns, on rank 0.
func (p *Probes) read(ctx context.Context) ([]float64, error) {
	place, first := p.run.Place, 0
	mine := map[int][]uint64{} // bits of values, by their first column
	var failed error
	for _, f := range p.fields {
		now := f.Now()
		for _, box := range p.boxes {
			for rank, s := range place.Subdomains {
				part := s.Box.Intersect(box)
				if part.Empty() || !place.IsLocal(rank) {
					continue
				}
				values := make([]float64, part.Points())
				failed = errors.Join(failed, read(values, now, part))
				at := part.Lo.Sub(box.Lo)
				bits := make([]uint64, len(values))
				for i, v := range values {
					bits[i] = math.Float64bits(v)
				}
				mine[first+at[0]+at[1]+at[2]] = bits // the box is a row
			}
			first += int(box.Points())
		}
	}
	if err := place.Agree(ctx, "read probes", failed); err != nil {
		return nil, err
	}
	all, err := mpi.Gather(ctx, place.Processes, "collect the values of probes", mine)
	values := make([]float64, first)
	for _, of := range all {
		for at, bits := range of {
			for i, b := range bits {
				values[at+i] = math.Float64frombits(b)
			}
		}
	}
	return values, err
}

// write appends a row.
func (p *Probes) write(step int64, values []float64) error {
	if p.file == nil {
		return nil
	}
	row := []string{strconv.FormatInt(step, 10)}
	if p.run.Time != nil {
		row = append(row, strconv.FormatFloat(p.run.Time(), 'g', -1, 64))
	}
	size := 8 * p.fields[0].Now().Spec.Element.Size()
	for _, v := range values {
		row = append(row, strconv.FormatFloat(v, 'g', -1, size))
	}
	_, err := fmt.Fprintln(p.file, strings.Join(row, ","))
	return p.fail(err)
}

// Close syncs and closes the file.
func (p *Probes) Close() error {
	if p.file == nil {
		return nil
	}
	err := errors.Join(p.file.Sync(), p.file.Close())
	p.file = nil
	return err
}
