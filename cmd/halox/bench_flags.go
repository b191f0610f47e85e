package main

import (
	"github.com/spf13/pflag"

	"github.com/halox/halox/internal/bench"
)

// benchFlags are the flags of every bench.
type benchFlags struct {
	files    bench.Files
	progress bool
	backend  string
	network  string // of messages to other processes
}

func (b *benchFlags) add(f *pflag.FlagSet) {
	f.StringVar(&b.files.Record, "record", "", "write the record to this JSON `file`, from time to time and at the end")
	f.StringVar(&b.files.Plot, "plot", "", "draw what was measured, as halox plot does, to this `file` (.png, .svg, .pdf)")
	f.StringVar(&b.files.Resume, "resume", "", "go on with this record `file` of the same bench, devices, halox and settings: what it has is not measured again; without --record it is written over")
	f.BoolVar(&b.progress, "progress", false, "say how far it is and how long it will take, also where that is no terminal")
	f.StringVar(&b.backend, "backend", "auto", "auto, cuda or host")
	f.StringVar(&b.network, "exchange-network", "auto", "by which messages go to other processes, as exchange.network of a config")
}

// leaveOpen sets an option to its zero value unless its flag was given.
func leaveOpen[T any](f *pflag.FlagSet, flag string, option *T) {
	if !f.Changed(flag) {
		*option = *new(T)
	}
}
