package results

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bench begins the record of a bench of datatypes: on what and how it was measured,
// and how that ended.
type Bench struct {
	Schema      int       `json:"schema"`
	Halox       Program   `json:"halox"`
	Host        Host      `json:"host"`
	Started     time.Time `json:"started"`
	Blocks      int       `json:"most_blocks,omitempty"` // thread blocks that a kernel may take; absent for as many as suit
	BudgetMS    float64   `json:"budget_ms"`             // what one measurement takes, in milliseconds
	Contenders  []string  `json:"contenders"`            // what was measured, in the order of the table; see Row
	Interrupted bool      `json:"interrupted,omitempty"` // it was stopped before its end
	Failure     string    `json:"failure,omitempty"`     // what ended it
}

// Layout is what is packed or sent: a layout of a suite with one set of parameters.
type Layout struct {
	Suite  string `json:"suite"`
	Name   string `json:"name"`
	Params string `json:"params"`
	Bytes  int64  `json:"bytes"` // when packed
}

// Workload returns suite/name/params.
func (l Layout) Workload() string { return l.Suite + "/" + l.Name + "/" + l.Params }

// Param returns the number that a key of the params has, such as 64 for block
// in blocks=1000,block=64. The key bytes is that of the packed bytes.
func (l Layout) Param(key string) (float64, bool) {
	for pair := range strings.SplitSeq(l.Params, ",") {
		if name, value, _ := strings.Cut(pair, "="); name == key {
			v, err := strconv.ParseFloat(value, 64)
			return v, err == nil
		}
	}
	return float64(l.Bytes), key == "bytes"
}

func (l Layout) layout() Layout { return l }

// Cost is what a layout takes, in microseconds, beside as many bytes in one piece.
// Rates count packed bytes.
type Cost struct {
	US                float64 `json:"us"`
	RateGBs           float64 `json:"gb_s"`
	ContiguousUS      float64 `json:"contiguous_us"` // the driver's copy of as many bytes in one piece
	ShareOfContiguous float64 `json:"share_of_contiguous"`
}

// NewCost returns the cost of so many bytes.
func NewCost(bytes int64, us, contiguousUS float64) Cost {
	return Cost{us, float64(bytes) / us / 1e3, contiguousUS, contiguousUS / us}
}

func (c Cost) cost() Cost { return c }

// Row is a line of the record of a bench of datatypes: what one contender took for
// one layout.
type Row interface {
	Contender() string
	layout() Layout
	cost() Cost
	rival() bool // it is none of the other contenders by another name
}

// Group is the rows of one workload, in one direction where there are two.
type Group[R Row] struct{ Rows []R }

// Of returns the row of a contender.
func (g Group[R]) Of(contender string) (row R, ok bool) {
	for _, row := range g.Rows {
		if row.Contender() == contender {
			return row, true
		}
	}
	return row, false
}

// Best returns the row of the fastest contender, without engine auto, which is one
// of the others; it is false where there is none.
func (g Group[R]) Best() (best R, ok bool) {
	for _, row := range g.Rows {
		if row.rival() && (!ok || row.cost().US < best.cost().US) {
			best, ok = row, true
		}
	}
	return best, ok
}

// groups returns the rows in groups of those that belong together, which follow each
// other.
func groups[R Row](rows []R, together func(a, b R) bool) []Group[R] {
	var all []Group[R]
	for i, row := range rows {
		if i == 0 || !together(rows[i-1], row) {
			all = append(all, Group[R]{})
		}
		last := &all[len(all)-1]
		last.Rows = append(last.Rows, row)
	}
	return all
}

// median returns the middle one of some numbers, the greater one of two, and 0 of
// none.
func median[T cmp.Ordered](all []T) (m T) {
	if len(all) == 0 {
		return m
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// writeRecord writes a record as indented JSON, whole or not at all.
func writeRecord(path string, record any) error {
	data, err := json.MarshalIndent(record, "", "  ")
	if err == nil {
		err = writeAtomic(path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("results: write record %s: %w", path, err)
	}
	return nil
}
