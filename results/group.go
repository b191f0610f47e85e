package results

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/halox/halox/results/internal/wording"
)

// The directions of a row of packing.
const (
	Packed   = "pack"
	Unpacked = "unpack"
)

// autoEngine is the engine that takes the one it found the fastest, and
// copiesEngine that of the driver's own copies.
const (
	autoEngine   = "auto"
	copiesEngine = "copies"
)

// LayoutRow begins a row of a bench of datatypes: which layout of which suite, with
// which parameters, as name=value,..., and its packed bytes.
func LayoutRow(suite, layout, params string, bytes int64) Row {
	return NewRow().Label("suite", suite).Label("layout", layout).Label(paramsLabel, params).Label("bytes", bytes)
}

// Workload returns suite/layout/params.
func (r Row) Workload() string {
	return r.Text("suite") + "/" + r.Text("layout") + "/" + r.Text(paramsLabel)
}

// Contender names what took part in a bench of datatypes: an engine, with its
// variant where it has one, or a path, with the engine where that is not auto.
func (r Row) Contender() string {
	engine, path, remote := r.Text("engine"), r.Text("path"), ""
	if r.Text("remote") != "" {
		remote = "remote"
	}
	if path != "" && engine == autoEngine {
		engine = ""
	}
	return wording.Join(", ", path, remote, engine, r.Text("variant"))
}

// rival reports whether the row is a contender of its own. Engine auto is not: it is one of
// the other engines.
func (r Row) rival() bool { return r.Text("path") != "" || r.Text("engine") != autoEngine }

// A Group is the rows of one workload, in one direction where there are two.
type Group struct{ Rows []Row }

// Of returns the row of a contender.
func (g Group) Of(contender string) (row Row, ok bool) {
	for _, row := range g.Rows {
		if row.Contender() == contender {
			return row, true
		}
	}
	return row, false
}

// best returns the row of the fastest contender, without engine auto; it is false
// where there is none.
func (g Group) best() (best Row, ok bool) {
	for _, row := range g.Rows {
		if row.rival() && (!ok || row.Median(Time) < best.Median(Time)) {
			best, ok = row, true
		}
	}
	return best, ok
}

// Groups returns the rows of a bench of datatypes by workload and direction, in their
// order. The rows of a group follow each other.
func (r *Record) Groups() []Group {
	var all []Group
	together := func(a, b Row) bool {
		return a.Workload() == b.Workload() && a.Text("direction") == b.Text("direction")
	}
	for i, row := range r.Rows {
		if i == 0 || !together(r.Rows[i-1], row) {
			all = append(all, Group{})
		}
		last := &all[len(all)-1]
		last.Rows = append(last.Rows, row)
	}
	return all
}

// Between names the devices that the rows of a record go from and to, and their link
// where it is known. Without rows it is "".
func (r *Record) Between() string {
	if len(r.Rows) == 0 {
		return ""
	}
	row := r.Rows[0]
	from, to := r.deviceName(row, "from"), r.deviceName(row, "to")
	if from == to {
		return from + " alone"
	}
	return wording.Join(" over ", from+" and "+to, row.Text("link"))
}

// deviceName names the device whose id a label has.
func (r *Record) deviceName(row Row, label string) string {
	id := row.Text(label)
	for _, d := range r.Devices {
		if strconv.Itoa(d.ID) == id {
			return d.Name + " " + id
		}
	}
	return "device " + id
}

// Limits says how messages were held back, "" where they were not.
func (r Row) Limits() string {
	var all []string
	for _, limit := range []struct{ label, format string }{
		{"fragment", "fragments of %s B"}, {"ring", "a ring of %s"}, {"thread_blocks", "%s thread blocks at most"},
	} {
		if text := r.Text(limit.label); text != "" {
			all = append(all, fmt.Sprintf(limit.format, text))
		}
	}
	if busy, ok := r.Float("busy"); ok {
		all = append(all, "devices "+wording.Percent(busy)+" busy")
	}
	return strings.Join(all, ", ")
}
