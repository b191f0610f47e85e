package results

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/results/internal/wording"
)

// fact is one known property of a record.
type fact struct{ name, value string }

// machineFacts describe the machine of a record. The numbers of devices and cores that a process may use belong to the
// record, not to the machine.
func (r *Record) machineFacts() []fact {
	var names []string
	for _, d := range r.Devices {
		if !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
	}
	h := r.Host
	return []fact{
		{"", strings.Join(names, " and ")}, {"host ", h.Name}, {"", h.CPU},
		{"memory ", memory(h.MemoryBytes)}, {"driver ", h.Driver}, {"CUDA ", h.CUDA},
	}
}

// memory formats bytes as users of a machine count them: machines of a kind differ slightly.
func memory(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f GiB", float64(bytes)/(1<<30))
}

// machine describes in one line the machine of a record.
func (r *Record) machine() string {
	h := r.Host
	known := []string{r.deviceNames()}
	for _, f := range []fact{
		{"", h.CPU}, {"", wording.Count(h.Cores, "core")}, {"driver ", h.Driver}, {"CUDA ", h.CUDA},
	} {
		if f.value != "" {
			known = append(known, f.name+f.value)
		}
	}
	return wording.Join(", ", known...)
}

// MachineNames returns for each record the properties that distinguish its machine from the others; "" if all
// have the same machine.
func MachineNames(all []Source) []string {
	names := make([][]string, len(all))
	for i := range new(Record).machineFacts() {
		var values []string
		for _, s := range all {
			values = append(values, s.machineFacts()[i].value)
		}
		if wording.Uniform(values) {
			continue
		}
		for k, s := range all {
			if f := s.machineFacts()[i]; f.value != "" {
				names[k] = append(names[k], f.name+f.value)
			} else {
				names[k] = append(names[k], f.name+"unknown")
			}
		}
	}
	var texts []string
	for _, n := range names {
		texts = append(texts, strings.Join(n, ", "))
	}
	return texts
}

// deviceNames counts devices of one name and backend, in order of appearance.
func (r *Record) deviceNames() string {
	return counted(r.Devices, func(d Device) string { return fmt.Sprintf("%s (%s)", d.Name, d.Backend) })
}

// CommonDevices names the devices of some records: with their number if all records have equally many,
// without it if the numbers differ, and "" if the devices differ.
func CommonDevices(all []Source) string {
	var exact, names []string
	for _, s := range all {
		exact = append(exact, counted(s.Devices, func(d Device) string { return d.Name }))
		names = append(names, s.machineFacts()[0].value)
	}
	switch {
	case len(all) == 0:
		return ""
	case wording.Uniform(exact):
		return exact[0]
	case wording.Uniform(names):
		return names[0]
	}
	return ""
}

// Made says which halox made records, and on which days; "" without records.
func Made(all ...Source) string {
	var programs, days []string
	for _, s := range all {
		programs = append(programs, s.Halox.String())
		if !s.Started.IsZero() {
			days = append(days, s.Started.Format(time.DateOnly))
		}
	}
	slices.Sort(programs)
	slices.Sort(days)
	programs, days = slices.Compact(programs), slices.Compact(days)
	if len(days) > 2 {
		days = []string{days[0], days[len(days)-1]}
	}
	return wording.Join(", ", strings.Join(programs, " and "), strings.Join(days, " to "))
}

func counted(devices []Device, nameOf func(Device) string) string {
	var names []string
	count := map[string]int{}
	for _, device := range devices {
		name := nameOf(device)
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%d x %s", count[name], name)
	}
	return strings.Join(names, ", ")
}
