package results

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Source is a record with the name by which people tell it from others.
type Source struct {
	Name string
	*Record
}

// ReadAll reads the records of some files. A source's name is its file's, without
// the folders that all have in common.
func ReadAll(paths ...string) ([]Source, error) {
	names := shortNames(paths)
	var all []Source
	for i, path := range paths {
		r, err := Read(path)
		if err != nil {
			return nil, err
		}
		all = append(all, Source{names[i], r})
	}
	return all, nil
}

// shortNames drops the folders that all paths begin with.
func shortNames(paths []string) []string {
	var parts [][]string
	for _, path := range paths {
		parts = append(parts, strings.Split(filepath.ToSlash(filepath.Clean(path)), "/"))
	}
	for len(parts) > 0 && !slices.ContainsFunc(parts, func(p []string) bool { return len(p) < 2 || p[0] != parts[0][0] }) {
		for i := range parts {
			parts[i] = parts[i][1:]
		}
	}
	var names []string
	for _, p := range parts {
		names = append(names, strings.Join(p, "/"))
	}
	return names
}

// fact is one thing that is known of a record.
type fact struct{ name, value string }

// machineFacts say which machine a record is of. How many devices took part is a
// matter of the record, not of the machine.
func (r *Record) machineFacts() []fact {
	var names []string
	for _, d := range r.Devices {
		if !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
	}
	h := r.Host
	return []fact{
		{"", strings.Join(names, " and ")}, {"host ", h.Name}, {"", h.CPU}, {"", count(h.Cores, "core")},
		{"memory ", memory(h.MemoryBytes)}, {"driver ", h.Driver}, {"CUDA ", h.CUDA},
	}
}

// memory is some bytes as the owner of a machine counts them: two of a kind differ by
// a little.
func memory(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f GiB", float64(bytes)/(1<<30))
}

// Machine describes in one line what a record was measured on.
func (r *Record) Machine() string {
	h := r.Host
	known := []string{r.deviceNames()}
	for _, f := range []fact{{"", h.CPU}, {"", count(h.Cores, "core")}, {"driver ", h.Driver}, {"CUDA ", h.CUDA}} {
		if f.value != "" {
			known = append(known, f.name+f.value)
		}
	}
	return join(", ", known...)
}

// count writes a number of things, "" for none.
func count(n int, thing string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// machineNames returns for each record what tells its machine from the others', ""
// where all are of one.
func machineNames(all []Source) []string {
	names := make([][]string, len(all))
	for i := range new(Record).machineFacts() {
		var values []string
		for _, s := range all {
			values = append(values, s.machineFacts()[i].value)
		}
		if uniform(values) {
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

// uniform reports whether all are one.
func uniform(all []string) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return s != all[0] })
}

// state says what came between a record and its end, "" for nothing.
func (r *Record) state() string {
	switch {
	case r.Failure != "":
		return "failed: " + r.Failure
	case r.Interrupted:
		return "interrupted"
	}
	return ""
}
