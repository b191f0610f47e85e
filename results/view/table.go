package view

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/results/plot"
)

// Table draws columns of a CSV file whose first line has their names, such as that of probes. The default of x is the
// column time if it has numbers, or step, or the first; that of y is all other columns. What is not a finite number is
// a gap. Rows of long tables are averaged.
func Table(path, x string, y []string, o Options) (plot.Chart, error) {
	file, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	names, columns, err := readTable(file)
	if err != nil {
		return nil, err
	}
	named := func(name string) ([]float64, error) {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, fmt.Errorf("has no column %q; there are %s", name, strings.Join(names, ", "))
		}
		return columns[i], nil
	}
	if x == "" {
		x = names[0]
		for _, name := range []string{"step", "time"} {
			if at, err := named(name); err == nil && slices.ContainsFunc(at, func(v float64) bool { return v-v == 0 }) {
				x = name
			}
		}
	}
	at, err := named(x)
	if err != nil {
		return nil, err
	}
	if y == nil {
		y = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == x || n == "step" || n == "time" })
	}
	if len(y) > maxCurves {
		return nil, fmt.Errorf("must draw at most %d columns, got %d: choose some with --y", maxCurves, len(y))
	}
	title := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	c := plot.Curves{
		Title: title, XLabel: x, YLabel: o.Label, LinearX: true, LinearY: true, Narrow: true, RangeY: o.Range}
	if o.Title != "" {
		c.Title = o.Title
	}
	t := newTiling(len(at), curvePoints)
	for _, name := range y {
		values, err := named(name)
		if err != nil {
			return nil, err
		}
		legend := name
		if len(y) == 1 {
			if legend = ""; c.YLabel == "" {
				c.YLabel = name
			}
		}
		c.Curves = append(c.Curves, plot.Gapped(legend, t.means(at), t.means(values))...)
	}
	if len(c.Curves) == 0 {
		return nil, errors.New("no number is finite")
	}
	return c, nil
}

// means returns the means of the values of each cell.
func (t tiling) means(values []float64) []float64 {
	means := make([]float64, t.cells)
	for i := range means {
		lo, hi := t.block(i)
		for _, v := range values[lo:hi] {
			means[i] += v / float64(hi-lo)
		}
	}
	return means
}

// readTable reads a table by columns. Fields that are not numbers are NaN.
func readTable(r io.Reader) (names []string, columns [][]float64, err error) {
	lines := csv.NewReader(r)
	lines.ReuseRecord, lines.TrimLeadingSpace, lines.Comment = true, true, '#'
	head, err := lines.Read()
	if err == io.EOF {
		return nil, nil, errors.New("the table is empty")
	}
	names, columns = slices.Clone(head), make([][]float64, len(head))
	for err == nil {
		var line []string
		if line, err = lines.Read(); err != nil {
			break
		}
		for i, text := range line {
			v, wrong := strconv.ParseFloat(text, 64)
			if wrong != nil {
				v = math.NaN()
			}
			columns[i] = append(columns[i], v)
		}
	}
	if err == io.EOF {
		err = nil
	}
	if err == nil && len(columns[0]) == 0 {
		err = errors.New("the table has no rows")
	}
	return names, columns, err
}
