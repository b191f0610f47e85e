package main

import (
	"context"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
)

// benchRecord begins the record of a bench on these devices, with their links where
// they are given.
func benchRecord(ctx context.Context, s *halo.Session, processes *mpi.Processes, kind results.Kind, settings any, links *p2p.Links) *results.Record {
	r := beginRecord(ctx, s, kind, settings)
	r.Devices = describeDevices(s, s.Devices, links, nil)
	if processes.IsAlone() {
		return r
	}
	all, err := gather(processes, "describe the devices", r.Devices)
	if err != nil {
		return r // what comes next fails too, and says why
	}
	r.Processes, r.Devices = processes.Size(), nil
	for process, devices := range all {
		for _, d := range devices {
			d.Process, d.Host = process, processes.Hosts[process]
			r.Devices = append(r.Devices, d)
		}
	}
	return r
}

// settingsOf returns what the flags of a bench say, given or not, as JSON has it.
func settingsOf(flags *pflag.FlagSet) map[string]any {
	settings := map[string]any{}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			settings[f.Name] = settingOf(f.Value)
		}
	})
	return settings
}

// settingOf returns numbers, truths and lists as such, and all else as text.
func settingOf(v pflag.Value) any {
	text := v.String()
	switch list, isList := v.(pflag.SliceValue); {
	case isList:
		return list.GetSlice()
	case v.Type() == "bool":
		return text == "true"
	case v.Type() == "int" || v.Type() == "int64" || v.Type() == "float64":
		if n, err := strconv.ParseFloat(text, 64); err == nil && results.Number(n) != nil {
			return n
		}
	}
	return text
}
