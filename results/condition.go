package results

import (
	"fmt"
	"strconv"
	"strings"
)

// A Condition is that a row has a label with one value.
type Condition struct{ Label, Value string }

// ParseCondition reads label=value.
func ParseCondition(text string) (Condition, error) {
	label, value, found := strings.Cut(text, "=")
	if !found || label == "" {
		return Condition{}, fmt.Errorf("%q is not label=value", text)
	}
	return Condition{label, value}, nil
}

// String gives label=value, as ParseCondition takes it.
func (c Condition) String() string { return c.Label + "=" + c.Value }

// holds compares numbers as such.
func (c Condition) holds(row Row) bool {
	if v, ok := row.Float(c.Label); ok {
		want, err := strconv.ParseFloat(c.Value, 64)
		return err == nil && v == want
	}
	return row.Text(c.Label) == c.Value
}
