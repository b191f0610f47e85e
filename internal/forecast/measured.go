package forecast

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/results"
)

// auto is the value of a scheme or path that halox chooses.
const auto = "auto"

// Wanted selects the measured steps to which a forecast is fitted.
type Wanted struct {
	Scheme, Order, Path string // of the config; Scheme and Path may be "auto"
	Precision           string
	Stencil             string                   // name in records, as "9-point-star"; "" for none
	Dims                int                      // of the grid
	OverProcesses       func(scheme string) bool // whether a scheme runs over several processes
}

// MeasuredFile is a record of steps, with the network between its hosts, if there are several.
type MeasuredFile struct {
	results.Source
	network Network
	hosts   []int // by device: the number of its host
	share   int   // devices of the first process, where there are several; else 0
}

// ReadMeasured reads records: FILE, or FILE@NETWORK of several hosts.
func ReadMeasured(names []string) (all []MeasuredFile, err error) {
	for _, name := range names {
		file, network, joined := CutLast(name, "@")
		sources, err := results.ReadAll(file)
		if err != nil {
			return nil, err
		}
		for _, source := range sources {
			m := MeasuredFile{Source: source}
			m.count()
			if hosts := slices.Max(append(m.hosts, 0)) + 1; (hosts > 1) != joined {
				return nil, fmt.Errorf("%s: must have a network if and only if it is a record of several hosts, as "+
					"FILE@NETWORK: it has %d", name, hosts)
			}
			if joined {
				if m.network, err = FindNetwork(network); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
			}
			all = append(all, m)
		}
	}
	return all, nil
}

// CutLast cuts s around the last separator, as strings.Cut does around the first.
func CutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// count numbers the hosts of the record's devices.
func (m *MeasuredFile) count() {
	known := map[string]int{}
	for _, d := range m.Devices {
		if _, ok := known[d.Host]; !ok {
			known[d.Host] = len(known)
		}
		m.hosts = append(m.hosts, known[d.Host])
		if m.Processes > 1 && d.Process == 0 {
			m.share++
		}
	}
}

// samples returns the steps of the stencil and precision in some records, by scheme and path. Of several measurements
// of a step the shortest counts: others were disturbed.
func (w Wanted) samples(p Problem, all []MeasuredFile) (steps map[string][]sample) {
	steps = map[string][]sample{}
	alone := map[string][]sample{} // by scheme: a single device has no path
	for _, m := range all {
		for _, row := range m.Rows {
			s, ok := m.stepOf(w, p, row)
			if !ok {
				continue
			}
			if s.Cut.Hosts.Product()*s.Cut.Devices.Product() == 1 {
				alone[row.Text("scheme")] = append(alone[row.Text("scheme")], s)
				continue
			}
			if order := row.Text("order"); w.Scheme != auto && order != "" && w.Order != order {
				continue // older records of assisted have none
			}
			by := strings.TrimSpace(row.Text("scheme")+" "+row.Text("order")) + " by " + m.pathsOf(row)
			steps[by] = append(steps[by], s)
		}
	}
	for by := range steps {
		scheme, _, _ := strings.Cut(by, " ")
		steps[by] = shortest(append(slices.Clone(alone[scheme]), steps[by]...))
	}
	return steps
}

// shortest returns the shortest of all samples of one step.
func shortest(all []sample) (some []sample) {
	for _, s := range all {
		alike := func(t sample) bool { return t.Grid == s.Grid && t.Cut == s.Cut && t.Network == s.Network }
		if i := slices.IndexFunc(some, alike); i >= 0 {
			some[i].Step = min(some[i].Step, s.Step)
			continue
		}
		some = append(some, s)
	}
	return some
}

// pathsOf returns the paths of the messages of a row.
func (m *MeasuredFile) pathsOf(row results.Row) string {
	devices, _ := row.Float("devices")
	switch {
	case m.share == 0 || int(devices) <= m.share:
		return row.Text("path")
	case m.share == 1:
		return "mpi"
	}
	return row.Text("path") + " and mpi"
}

// stepOf returns the step that a row has, if it is of the config's stencil and precision, without norms, of a scheme
// that runs over processes and that the config allows.
func (m *MeasuredFile) stepOf(w Wanted, p Problem, row results.Row) (s sample, ok bool) {
	took, measured := row.Get(results.Step)
	name := row.Text("scheme")
	wanted := w.Scheme == auto || w.Scheme == name
	if !measured || row.Unit(results.Step) != "us" || !wanted || !w.OverProcesses(name) || row.Text("norms") != "" ||
		row.Text("steps_per_exchange") != "" ||
		row.Text("precision") != w.Precision ||
		row.Text("stencil") != w.Stencil {
		return s, false
	}
	if path := w.Path; path != auto && row.Text("path") != "" && row.Text("path") != path &&
		m.pathsOf(row) != "mpi" {
		return s, false
	}
	points, known := row.Float("points")
	parts, err := partsOf(row.Text("parts"))
	if err != nil || !known || points < 1 || points > math.MaxInt32 {
		return s, false
	}
	size := make([]int, w.Dims)
	for a := range size {
		size[a] = int(points)
		if row.Text("mode") == "weak" {
			size[a] *= parts[a]
		}
	}
	s.Network, s.Step = m.network, time.Duration(took.Median*1e3)
	if s.Grid, err = domain.NewGrid(size, nil); err != nil {
		return s, false
	}
	if s.Cut, ok = m.cutOf(p, s.Grid, parts); s.Cut.Hosts.Product() == 1 {
		s.Network = Network{}
	}
	return s, ok
}

// cutOf returns the parts over hosts, and over the devices of each host, of a decomposition: all on one host, or as
// processes decompose it; ok is false for any other decomposition.
func (m *MeasuredFile) cutOf(p Problem, grid domain.Grid, parts domain.Vec) (Cut, bool) {
	devices, hosts := int(parts.Product()), 1
	if devices <= len(m.hosts) {
		hosts = 1 + slices.Max(m.hosts[:devices])
	}
	if hosts == 1 {
		return Cut{Hosts: domain.Vec{1, 1, 1}, Devices: parts}, true
	}
	p.Grid, p.Parts = grid, domain.Vec{}
	c, err := p.CutOver(hosts, devices/hosts)
	for a := range parts {
		if err != nil || c.Hosts[a]*c.Devices[a] != parts[a] {
			return c, false
		}
	}
	return c, true
}

// maxParts is the maximum number of parts along an axis in a record.
const maxParts = 1 << 17

// partsOf reads a cut, such as 1 x 2 x 2.
func partsOf(text string) (parts domain.Vec, err error) {
	parts = domain.Vec{1, 1, 1}
	fields := strings.Split(text, " x ")
	if len(fields) > len(parts) {
		return parts, fmt.Errorf("a cut %q", text)
	}
	for a, f := range fields {
		if parts[a], err = strconv.Atoi(f); err != nil || parts[a] < 1 || parts[a] > maxParts {
			return parts, fmt.Errorf("a cut %q", text)
		}
	}
	return parts, nil
}
