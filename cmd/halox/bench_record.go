package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
)

// benchRecord begins the record of a bench on these devices, with their links where
// they are given.
func (o *opened) benchRecord(ctx context.Context, kind results.Kind, settings any, links *p2p.Links) *results.Record {
	r := o.record(ctx, kind, settings)
	r.Devices = o.describeDevices(o.devices, links, nil)
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

// keeper is what a bench leaves behind: its record, and the plot of it that its kind
// has.
type keeper struct{ record, plot string }

func (k *keeper) addFlags(f *pflag.FlagSet) {
	f.StringVar(&k.record, "record", "", "write the record to this JSON `file`")
	f.StringVar(&k.plot, "plot", "", "draw what was measured, as halox plot does, to this `file` (.png, .svg, .pdf)")
}

// check makes sure, before anything is measured, that it can be kept.
func (k *keeper) check() error { return checkFiles(k.record, k.plot) }

// keep prints the table of what was measured, and writes the files that are wanted.
func (k *keeper) keep(r *results.Record, out, notes io.Writer) error {
	source := results.Source{Record: r}
	err := results.WriteTable(out, "text", source)
	if k.record != "" {
		err = errors.Join(err, r.Write(k.record))
	}
	if k.plot == "" {
		return err
	}
	chart, plotErr := results.Plot("", results.PlotOptions{}, source)
	if errors.Is(plotErr, results.ErrNothingToPlot) {
		fmt.Fprintf(notes, "%s is not written: %v\n", k.plot, plotErr)
		return err
	}
	if plotErr == nil {
		plotErr = results.WriteChart(k.plot, chart)
	}
	return errors.Join(err, plotErr)
}
