package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/results"
)

// output is a file that a run leaves, with the key that names it.
type output struct{ key, file string }

// outputs returns the files that the config wants.
func outputs(o configs.Output) []output {
	all := []output{{"output.picture", o.Picture}, {"output.field", o.Field}, {"output.record", o.Record}}
	return slices.DeleteFunc(all, func(o output) bool { return o.file == "" })
}

// checkOutputs refuses files that could not be written, and the config itself,
// before a run is spent on them. It makes their folders.
func checkOutputs(config string, c configs.Output) error {
	var errs []error
	for _, o := range outputs(c) {
		if files.Same(config, o.file) {
			errs = append(errs, fmt.Errorf("%s: %s is the config: name another file", o.key, o.file))
			continue
		}
		if err := results.CheckWritable(o.file); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.key, err))
		}
	}
	return errors.Join(errs...)
}
