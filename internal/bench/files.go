package bench

import (
	"fmt"

	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/results"
)

// Files are what a benchmark leaves and what it goes on with, by name; none where empty.
type Files struct {
	Record string // is written
	Plot   string // is drawn
	Resume string // is read; without Record it is written over
}

// check returns an error unless the files can be written.
func (f Files) check() error {
	if f.Plot != "" {
		if err := option.Drawable("--plot", f.Plot); err != nil {
			return err
		}
	}
	if f.Record == "" {
		return nil
	}
	if f.Record != f.Resume { // which goes on under the name that it has
		if err := option.Recordable("--record", f.Record); err != nil {
			return err
		}
	}
	if err := results.CheckWritable(f.Record); err != nil {
		return err
	}
	if f.Plot != "" && files.Same(f.Record, f.Plot) {
		return fmt.Errorf("--plot %s is the record: name another file", f.Plot)
	}
	return nil
}
