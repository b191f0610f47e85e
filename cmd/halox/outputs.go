package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/files"
)

// output is a file that a run leaves, with the key that names it.
type output struct{ key, file string }

// outputs returns the files that the config wants.
func outputs(o configs.Output) []output {
	all := []output{{"output.picture", o.Picture}, {"output.field", o.Field}, {"output.record", o.Record}}
	return slices.DeleteFunc(all, func(o output) bool { return o.file == "" })
}

// checkOutputs refuses files that could not be written, as writable says, and the config itself,
// before a run is spent on them.
func checkOutputs(config string, c configs.Output, writable func(file string) error) error {
	var errs []error
	for _, o := range outputs(c) {
		if files.Same(config, o.file) {
			errs = append(errs, fmt.Errorf("%s: %s is the config: name another file", o.key, o.file))
			continue
		}
		if err := writable(o.file); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.key, err))
		}
	}
	return errors.Join(errs...)
}
