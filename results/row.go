package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results/internal/wording"
)

// A Sample summarizes repeated measurements.
type Sample = measure.Sample

// A Row is one measurement: labels say what was measured, values are the results. Both keep their order. Methods that
// build a row return a new one, so that rows can share a beginning.
type Row struct {
	Labels  Labels `json:"labels"`            // what was measured
	Values  Values `json:"values"`            // measured values
	Checked bool   `json:"checked,omitempty"` // the result was compared with the expected one
	Note    string `json:"note,omitempty"`    // remark for people
}

// A Label is a parameter: a string, or a finite number as a float64. The label params contains further ones, such as
// n=1024,block=8, which [Row.Lookup] finds too.
type Label struct {
	Name  string // name of the label
	Value any    // string or number
}

// Labels are one JSON object in a record.
type Labels []Label

// A Value is the measured sample of a metric, in a unit.
type Value struct {
	Metric Metric // quantity
	Unit   string // unit of the numbers
	Sample
}

// Values are one JSON object in a record.
type Values []Value

// NewRow returns an empty row.
func NewRow() Row { return Row{} }

// Label returns the row with a label: any string or number, other types as text. A label with empty text is omitted.
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

// Value returns the row with the sample of a metric. A sample that is empty, or whose median is not finite, is omitted.
func (r Row) Value(m Metric, s Sample) Row {
	r.Values = slices.DeleteFunc(slices.Clone(r.Values), func(v Value) bool { return v.Metric == m })
	if s.N > 0 && s.Finite() {
		r.Values = append(r.Values, Value{m, m.info().unit, s})
	}
	return r
}

// Number returns the row with a number that was measured once or whose spread is unknown.
func (r Row) Number(m Metric, v float64) Row { return r.Value(m, measure.Exact(v)) }

// Transfer returns the row with the time of a transfer of some bytes, the time of a plain copy of the same size if
// there is one, and derived values: time, rate, copy_time, copy_rate and share.
func (r Row) Transfer(bytes int64, time, plain Sample) Row {
	r = r.Value(Time, time).Value(Rate, time.Under(float64(bytes)/1e3))
	if plain.N == 0 {
		return r
	}
	return r.Value(CopyTime, plain).Value(CopyRate, plain.Under(float64(bytes)/1e3)).
		Value(Share, plain.Over(time))
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

// Get returns the sample of a metric, in the unit of Unit; ok is false if it was not measured.
func (r Row) Get(m Metric) (Sample, bool) {
	for _, v := range r.Values {
		if v.Metric == m {
			return v.Sample, true
		}
	}
	return Sample{}, false
}

// Median returns the median of a metric, NaN if it was not measured.
func (r Row) Median(m Metric) float64 {
	if s, ok := r.Get(m); ok {
		return s.Median
	}
	return math.NaN()
}

// Unit returns the unit of a metric in this row.
func (r Row) Unit(m Metric) string {
	for _, v := range r.Values {
		if v.Metric == m {
			return v.Unit
		}
	}
	return m.info().unit
}

// paramsLabel is the label that contains further ones.
const paramsLabel = "params"

// Lookup returns the value of a label, a string or a float64, or of a parameter in the label params; nil for none.
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

// Text returns the value of a label as text, "" for none.
func (r Row) Text(name string) string { return labelText(r.Lookup(name)) }

// Float returns the value of a label that is a number.
func (r Row) Float(name string) (float64, bool) {
	v, ok := r.Lookup(name).(float64)
	return v, ok
}

// Text returns the value as text, "" for none.
func (l Label) Text() string { return labelText(l.Value) }

// labelText formats a label's value.
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

// MarshalJSON implements [json.Marshaler].
func (l Labels) MarshalJSON() ([]byte, error) {
	return marshalObject(len(l), func(i int) (string, any) { return l[i].Name, l[i].Value })
}

// UnmarshalJSON implements [json.Unmarshaler].
func (l *Labels) UnmarshalJSON(data []byte) error {
	*l = nil
	return eachKey(data, func(name string, raw json.RawMessage) error {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return err
		}
		switch v.(type) {
		case string, float64:
			*l = append(*l, Label{name, v})
			return nil
		}
		return fmt.Errorf("label %q is %s, want a string or a number", name, raw)
	})
}

// MarshalJSON implements [json.Marshaler].
func (v Values) MarshalJSON() ([]byte, error) {
	return marshalObject(len(v), func(i int) (string, any) { return string(v[i].Metric), newValueFile(v[i]) })
}

// UnmarshalJSON implements [json.Unmarshaler].
func (v *Values) UnmarshalJSON(data []byte) error {
	*v = nil
	return eachKey(data, func(name string, raw json.RawMessage) error {
		var f valueFile
		if err := json.Unmarshal(raw, &f); err != nil {
			return fmt.Errorf("value %q: %w", name, err)
		}
		value, err := f.value(Metric(name))
		if err != nil {
			return fmt.Errorf("value %q: %w", name, err)
		}
		*v = append(*v, value)
		return nil
	})
}

// valueFile is a value in a record: a number, or a summary of several.
type valueFile struct {
	Unit   string      `json:"unit"`
	Value  *float64    `json:"value,omitempty"`
	Median *float64    `json:"median,omitempty"`
	Q1     *float64    `json:"q1,omitempty"`
	Q3     *float64    `json:"q3,omitempty"`
	Min    *float64    `json:"min,omitempty"`
	Max    *float64    `json:"max,omitempty"`
	CI     *[2]float64 `json:"ci95,omitempty"`
	N      int         `json:"n,omitempty"`
}

func newValueFile(v Value) valueFile {
	if !v.Repeated() {
		return valueFile{Unit: v.Unit, Value: &v.Median}
	}
	f := valueFile{Unit: v.Unit, Median: &v.Median, Q1: &v.Q1, Q3: &v.Q3, Min: &v.Min, Max: &v.Max, N: v.N}
	if lo, hi, ok := v.Interval(); ok {
		f.CI = &[2]float64{lo, hi}
	}
	return f
}

// value fills in omitted numbers: quartiles equal the median, extremes the quartiles.
func (f valueFile) value(m Metric) (Value, error) {
	v := Value{Metric: m, Unit: f.Unit}
	if f.Unit == "" {
		return v, errors.New("must have a unit")
	}
	if f.Value != nil {
		v.Sample = measure.Exact(*f.Value)
		return v, nil
	}
	if f.Median == nil {
		return v, errors.New("must have a value or a median")
	}
	or := func(p *float64, other float64) float64 {
		if p == nil {
			return other
		}
		return *p
	}
	v.N, v.Median = max(1, f.N), *f.Median
	v.Q1, v.Q3 = or(f.Q1, v.Median), or(f.Q3, v.Median)
	v.Min, v.Max = or(f.Min, v.Q1), or(f.Max, v.Q3)
	if _, _, ok := v.Interval(); ok {
		v.Lo, v.Hi = v.Min, v.Max
		if f.CI != nil {
			v.Lo, v.Hi = f.CI[0], f.CI[1]
		}
	}
	return v, nil
}

// marshalObject writes an object with its keys in order.
func marshalObject(n int, pair func(i int) (string, any)) ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i := range n {
		name, v := pair(i)
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// eachKey calls f for the keys of an object, in order.
func eachKey(data []byte, f func(name string, raw json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return fmt.Errorf("must be an object, got %s", data)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if err := f(name.(string), raw); err != nil {
			return err
		}
	}
	return nil
}
