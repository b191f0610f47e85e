package results

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results/internal/wording"
)

// A Sample sums up repeated measurements.
type Sample = measure.Sample

// A Row is one thing that was measured: labels say what it was, values what came of
// it. Both keep their order. What builds a row returns a new one, so that rows can
// be made of what they have in common.
type Row struct {
	Labels  Labels `json:"labels"`
	Values  Values `json:"values"`
	Checked bool   `json:"checked,omitempty"` // what was computed or moved was compared with what it should be
	Note    string `json:"note,omitempty"`
}

// A Label is a parameter: a string, or a finite number as a float64. The label params
// holds further ones, as in n=1024,block=8, which [Row.Lookup] finds too.
type Label struct {
	Name  string
	Value any
}

// Labels are one JSON object in a record.
type Labels []Label

// A Value is what a metric came to, in a unit.
type Value struct {
	Metric Metric
	Unit   string
	Sample
}

// Values are one JSON object in a record.
type Values []Value

// NewRow returns a row that says nothing.
func NewRow() Row { return Row{} }

// Label returns the row with a label: any string or number, others by their text. One
// with the empty text is left out.
func (r Row) Label(name string, value any) Row {
	v := labelValue(value)
	r.Labels = slices.DeleteFunc(slices.Clone(r.Labels), func(l Label) bool { return l.Name == name })
	if v != "" {
		r.Labels = append(r.Labels, Label{name, v})
	}
	return r
}

// labelValue returns a string or a finite float64.
func labelValue(value any) any {
	v := reflect.ValueOf(value)
	number := math.NaN()
	switch {
	case !v.IsValid():
		return ""
	case v.CanInt():
		number = float64(v.Int())
	case v.CanUint():
		number = float64(v.Uint())
	case v.CanFloat():
		number = v.Float()
	case v.Kind() == reflect.String:
		return v.String()
	}
	if Number(number) == nil {
		return fmt.Sprint(value)
	}
	return number
}

// Value returns the row with what a metric came to. A sample of nothing, or whose
// median is not finite, is left out.
func (r Row) Value(m Metric, s Sample) Row {
	r.Values = slices.DeleteFunc(slices.Clone(r.Values), func(v Value) bool { return v.Metric == m })
	if s.N > 0 && s.Finite() {
		r.Values = append(r.Values, Value{m, m.info().unit, s})
	}
	return r
}

// Number returns the row with a number that was not repeated, or of which only the
// median is known.
func (r Row) Number(m Metric, v float64) Row { return r.Value(m, measure.Exact(v)) }

// Transfer returns the row with the time that so many bytes took and what follows of
// it, beside that of a plain copy of as many: time, rate, copy_time, copy_rate and
// share.
func (r Row) Transfer(bytes int64, time, plain Sample) Row {
	return r.Value(Time, time).Value(Rate, time.Under(float64(bytes)/1e3)).
		Value(CopyTime, plain).Value(CopyRate, plain.Under(float64(bytes)/1e3)).
		Value(Share, time.Under(plain.Median))
}

// Join returns the row with the labels, values and remarks of another after its own.
func (r Row) Join(other Row) Row {
	for _, l := range other.Labels {
		r = r.Label(l.Name, l.Value)
	}
	for _, v := range other.Values {
		r.Values = append(slices.Clone(r.Values), v)
	}
	r.Checked, r.Note = r.Checked || other.Checked, wording.Join("; ", r.Note, other.Note)
	return r
}

// Get returns what a metric came to.
func (r Row) Get(m Metric) (Sample, bool) {
	for _, v := range r.Values {
		if v.Metric == m {
			return v.Sample, true
		}
	}
	return Sample{}, false
}

// Median returns the median of a metric, NaN where it was not measured.
func (r Row) Median(m Metric) float64 {
	if s, ok := r.Get(m); ok {
		return s.Median
	}
	return math.NaN()
}

// Unit returns that of a metric in this row.
func (r Row) Unit(m Metric) string {
	for _, v := range r.Values {
		if v.Metric == m {
			return v.Unit
		}
	}
	return m.info().unit
}

// paramsLabel is the label that holds further ones.
const paramsLabel = "params"

// Lookup returns the value of a label, a string or a float64, or of a parameter in
// the label params; nil where there is none.
func (r Row) Lookup(name string) any {
	var params any
	for _, l := range r.Labels {
		if l.Name == name {
			return l.Value
		}
		if l.Name == paramsLabel {
			params = l.Value
		}
	}
	text, _ := params.(string)
	for pair := range strings.SplitSeq(text, ",") {
		key, value, found := strings.Cut(pair, "=")
		if !found || key != name {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil && Number(v) != nil {
			return v
		}
		return value
	}
	return nil
}

// Text returns the value of a label as text, "" where there is none.
func (r Row) Text(name string) string { return labelText(r.Lookup(name)) }

// Float returns the value of a label that is a number.
func (r Row) Float(name string) (float64, bool) {
	v, ok := r.Lookup(name).(float64)
	return v, ok
}

// Text returns the value as text, "" for none.
func (l Label) Text() string { return labelText(l.Value) }

// labelText writes a label's value.
func labelText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return ""
	}
}
