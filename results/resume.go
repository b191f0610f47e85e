package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/halox/halox/results/internal/wording"
)

// Continues returns nil if rows of the record may be added to those of an older one: both have the same kind, version
// of halox, machine, devices and settings, except for the settings in except. Otherwise the error names all that
// differs.
func (r *Record) Continues(older *Record, except ...string) error {
	var differ []string
	note := func(what, was, is string) {
		if was != is {
			differ = append(differ, fmt.Sprintf("%s was %s, is %s", what, wording.OrDash(was), wording.OrDash(is)))
		}
	}
	note("what is measured", string(older.Kind), string(r.Kind))
	note("the version of halox", older.Halox.Version, r.Halox.Version)
	note("the commit of halox", older.Halox.Commit, r.Halox.Commit)
	is := r.machineFacts()
	for i, was := range older.machineFacts() {
		note("the machine", was.name+was.value, is[i].name+is[i].value)
	}
	note("the devices", older.deviceFacts(), r.deviceFacts())
	was, now := plainSettings(older.Settings), plainSettings(r.Settings)
	for _, name := range except {
		delete(was, name)
		delete(now, name)
	}
	all := maps.Clone(was)
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		note("setting "+name, was[name], now[name])
	}
	if len(differ) > 0 {
		return fmt.Errorf("%s", wording.Join("; ", differ...))
	}
	return nil
}

// deviceFacts describes the devices and their links.
func (r *Record) deviceFacts() (text string) {
	for _, d := range r.Devices {
		text = wording.Join(", ", text, wording.Join(" ", d.Backend, fmt.Sprint(d.ID), d.Name, d.PCIBusID))
		for _, l := range d.Links {
			text = wording.Join(" ", text, fmt.Sprintf("to %d %s peer %t", l.To, wording.OrDash(l.Kind), l.PeerAccess))
		}
	}
	return text
}

// plainSettings returns settings as JSON writes them, by name. Settings that are not an object
// have the empty name.
func plainSettings(settings any) map[string]string {
	text, err := json.Marshal(settings)
	if err != nil {
		return map[string]string{"": err.Error()}
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return map[string]string{"": string(text)}
	}
	plain := map[string]string{}
	for name, raw := range parts {
		var v any
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if decoder.Decode(&v) == nil { // keys in order, spaces gone
			raw, _ = json.Marshal(v)
		}
		plain[name] = string(raw)
	}
	return plain
}

// Has reports whether a row has all labels of another, with the same values.
func (r Row) Has(labels Row) bool {
	return !slices.ContainsFunc(labels.Labels, func(l Label) bool { return r.Text(l.Name) != l.Text() })
}

// Find returns the first row that has all labels of another.
func (r *Record) Find(labels Row) (Row, bool) {
	i := slices.IndexFunc(r.Rows, func(row Row) bool { return row.Has(labels) })
	if i < 0 {
		return Row{}, false
	}
	return r.Rows[i], true
}
