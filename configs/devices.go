package configs

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// maxDevices is the largest number of devices that a config may ask for.
const maxDevices = 1024

// Devices says what a run runs on.
type Devices struct {
	Backend string `json:"backend" yaml:"backend"`                  // "auto", "cuda" or "host"
	Count   Count  `json:"count" yaml:"count"`                      // 0: all that fit
	IDs     []int  `json:"ids,omitempty" yaml:"ids,flow,omitempty"` // the backend's numbers; nil: the first Count
}

// A Count is a number of devices, or of steps, or 0 where halox is to choose it.
type Count int

func (c Count) form() any {
	if c == 0 {
		return Auto
	}
	return int(c)
}

// MarshalJSON writes 0 as "auto".
func (c Count) MarshalJSON() ([]byte, error) { return json.Marshal(c.form()) }

// MarshalYAML writes 0 as auto.
func (c Count) MarshalYAML() (any, error) { return c.form(), nil }

func (r *reader) devices() Devices {
	d := Devices{Backend: r.word("devices.backend", Auto, "cuda", "host"), IDs: r.ids()}
	if !r.isAuto("devices.count") {
		d.Count = Count(r.whole("devices.count", 1, maxDevices))
	}
	if len(d.IDs) == 0 || r.bad["devices.count"] {
		return d
	}
	if s, _ := r.lookup("devices.count"); d.Count != 0 && int(d.Count) != len(d.IDs) {
		r.refuse("devices.count", s, fmt.Sprintf("does not agree with devices.ids, which has %d", len(d.IDs)))
	}
	d.Count = Count(len(d.IDs))
	return d
}

func (r *reader) ids() []int {
	const name = "devices.ids"
	s, ok := r.lookup(name)
	if !ok {
		return nil
	}
	ids, ok := each(s.node, integer)
	if !ok || slices.Min(ids) < 0 || slices.Max(ids) >= maxDevices || repeats(ids) {
		r.refuse(name, s)
		return nil
	}
	return ids
}

func repeats(ids []int) bool {
	sorted := slices.Sorted(slices.Values(ids))
	return len(slices.Compact(sorted)) < len(ids)
}

// Parts is the number of subdomains along each axis; nil where halox is to choose it.
type Parts []int

func (p Parts) form() any {
	if p == nil {
		return Auto
	}
	return []int(p)
}

// MarshalJSON writes nil as "auto".
func (p Parts) MarshalJSON() ([]byte, error) { return json.Marshal(p.form()) }

// MarshalYAML writes nil as auto, and a list in one line.
func (p Parts) MarshalYAML() (any, error) {
	var n yaml.Node
	err := n.Encode(p.form())
	n.Style |= yaml.FlowStyle
	return &n, err
}

// decomposition reads the parts of each axis. Where nothing else says how many devices each process has, they do.
func (r *reader) decomposition(run *Run) Parts {
	const name = "decomposition"
	if r.isAuto(name) {
		return nil
	}
	s, _ := r.lookup(name)
	parts, ok := each(s.node, natural)
	if !ok || r.dims == 0 && len(parts) > 3 {
		r.refuse(name, s)
		return nil
	}
	if why := r.misfit(parts, run); why != "" {
		r.refuse(name, s, why)
		return nil
	}
	if run.Devices.Count == 0 && !r.anyBad("devices.count", "devices.ids") {
		run.Devices.Count = Count(product(parts, maxDevices*r.processes) / r.processes)
	}
	return parts
}

// misfit says why the parts do not go with the grid or the devices; "" when they do.
func (r *reader) misfit(parts []int, run *Run) string {
	if r.dims != 0 && len(parts) != r.dims {
		return fmt.Sprintf("has %s for a grid of %d dimensions: %s", counted(len(parts), "number"), r.dims, r.allowed("decomposition"))
	}
	for axis, n := range run.Grid.Size {
		if parts[axis] > n {
			return fmt.Sprintf("cuts %s into more parts than its %s", "xyz"[axis:axis+1], counted(n, "point"))
		}
	}
	most := maxDevices * r.processes
	made, count := product(parts, most), int(run.Devices.Count)*r.processes
	switch {
	case made > most:
		return fmt.Sprintf("makes more than %d subdomains", most)
	case count != 0 && made != count && !r.anyBad("devices.count", "devices.ids"):
		return fmt.Sprintf("makes %s for %s%s", counted(made, "subdomain"), counted(count, "device"), r.ofProcesses())
	case made%r.processes != 0:
		return fmt.Sprintf("makes %s%s, each of which has as many devices", counted(made, "subdomain"), r.ofProcesses())
	}
	return ""
}

// ofProcesses is " of 2 processes", or "" of one.
func (r *reader) ofProcesses() string {
	if r.processes == 1 {
		return ""
	}
	return fmt.Sprintf(" of %d processes", r.processes)
}

// product returns that of the parts, or one more than most where it is larger than that.
func product(parts []int, most int) int {
	product := 1
	for _, p := range parts {
		if p > most/product {
			return most + 1
		}
		product *= p
	}
	return product
}
