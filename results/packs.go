package results

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Packs is the record of a bench of packing: what each engine takes for some
// layouts on one device.
type Packs struct {
	Schema      int       `json:"schema"`
	Halox       Program   `json:"halox"`
	Host        Host      `json:"host"`
	Started     time.Time `json:"started"`
	Device      Device    `json:"device"`
	To          string    `json:"to"`                    // where the packed bytes lie: device or pinned
	Blocks      int       `json:"most_blocks,omitempty"` // thread blocks that a kernel may take; absent for as many as suit
	BudgetMS    float64   `json:"budget_ms"`             // what one measurement takes, in milliseconds
	Contenders  []string  `json:"contenders"`            // what was measured, in the order of the table; see Pack.Contender
	Interrupted bool      `json:"interrupted,omitempty"` // it was stopped before its end
	Failure     string    `json:"failure,omitempty"`     // what ended it
	Rows        []Pack    `json:"rows"`
}

// The directions of a Pack.
const (
	Packed   = "pack"
	Unpacked = "unpack"
)

// AutoEngine is the engine that takes the one it found the fastest, and
// CopiesEngine that of the driver's own copies.
const (
	AutoEngine   = "auto"
	CopiesEngine = "copies"
)

// Pack is one line of it: one engine that packs, or unpacks, one layout. Times
// are of the device, in microseconds, and rates count packed bytes.
type Pack struct {
	Suite             string  `json:"suite"`
	Name              string  `json:"name"`
	Params            string  `json:"params"`
	Direction         string  `json:"direction"` // pack or unpack
	Bytes             int64   `json:"bytes"`     // when packed
	Pieces            int64   `json:"pieces"`    // contiguous ones that the layout has
	Engine            string  `json:"engine"`
	Variant           string  `json:"variant,omitempty"` // how the engine was told to work, where it was told
	Took              string  `json:"took,omitempty"`    // the engine that auto took
	Why               string  `json:"why,omitempty"`     // what auto had measured before
	Checked           bool    `json:"checked"`           // whether all bytes were compared with what the host packs
	US                float64 `json:"us"`
	RateGBs           float64 `json:"gb_s"`
	ContiguousUS      float64 `json:"contiguous_us"` // the driver's copy of as many bytes in one piece
	ShareOfContiguous float64 `json:"share_of_contiguous"`
}

// Workload returns suite/name/params.
func (p Pack) Workload() string { return p.Suite + "/" + p.Name + "/" + p.Params }

// Contender returns the engine, with its variant where it has one.
func (p Pack) Contender() string {
	if p.Variant == "" {
		return p.Engine
	}
	return p.Engine + ", " + p.Variant
}

// Param returns the number that a key of the params has, such as 64 for block
// in blocks=1000,block=64. The key bytes is that of the packed bytes.
func (p Pack) Param(key string) (float64, bool) {
	for pair := range strings.SplitSeq(p.Params, ",") {
		if name, value, _ := strings.Cut(pair, "="); name == key {
			v, err := strconv.ParseFloat(value, 64)
			return v, err == nil
		}
	}
	return float64(p.Bytes), key == "bytes"
}

// Write writes the record as indented JSON, whole or not at all.
func (p *Packs) Write(path string) error {
	stamped := *p
	stamped.Schema = Schema
	data, err := json.MarshalIndent(&stamped, "", "  ")
	if err == nil {
		err = writeAtomic(path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("results: write record %s: %w", path, err)
	}
	return nil
}

// A PackGroup is what was measured of one workload in one direction.
type PackGroup struct{ Rows []Pack }

// Groups returns the rows by workload and direction, in their order. The rows of
// a group follow each other.
func (p *Packs) Groups() []PackGroup {
	var all []PackGroup
	for i, row := range p.Rows {
		if i == 0 || row.Workload() != p.Rows[i-1].Workload() || row.Direction != p.Rows[i-1].Direction {
			all = append(all, PackGroup{})
		}
		last := &all[len(all)-1]
		last.Rows = append(last.Rows, row)
	}
	return all
}

// Of returns the row of a contender.
func (g PackGroup) Of(contender string) (Pack, bool) {
	for _, row := range g.Rows {
		if row.Contender() == contender {
			return row, true
		}
	}
	return Pack{}, false
}

// Best returns the row of the fastest engine, without auto, which is one of
// them; it is false where there is none.
func (g PackGroup) Best() (best Pack, ok bool) {
	for _, row := range g.Rows {
		if row.Engine != AutoEngine && (!ok || row.US < best.US) {
			best, ok = row, true
		}
	}
	return best, ok
}
