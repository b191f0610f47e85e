package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/halox/halox/internal/measure"
)

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

// valueFile is a value in a record: a number, or what sums up several.
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

// value fills in what a record leaves out: quartiles fall on the median, extremes on
// the quartiles.
func (f valueFile) value(m Metric) (Value, error) {
	v := Value{Metric: m, Unit: f.Unit}
	if f.Unit == "" {
		return v, errors.New("it has no unit")
	}
	if f.Value != nil {
		v.Sample = measure.Exact(*f.Value)
		return v, nil
	}
	if f.Median == nil {
		return v, errors.New("it has neither a value nor a median")
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
		return fmt.Errorf("%s is no object", data)
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
