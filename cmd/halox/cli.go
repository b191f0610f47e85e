package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"

	"github.com/halox/halox/results"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// oneFile is the cobra argument check of commands that take one file.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name one file, not %d: %s", len(args), cmd.UseLine())
	}
	return nil
}

// someFiles is the cobra argument check of commands that take one or more files.
func someFiles(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("name the files: %s", cmd.UseLine())
	}
	return nil
}

// noEmptyFiles rejects empty names for flags that take a file: an empty value means that the flag is not given.
func noEmptyFiles(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if kind, _ := pflag.UnquoteUsage(f); err == nil && kind == "file" && f.Value.String() == "" {
			err = fmt.Errorf("--%s: an empty file name", f.Name)
		}
	})
	return err
}

// flagError says which values a flag takes if one cannot be parsed.
func flagError(_ *cobra.Command, err error) error {
	wrong := new(pflag.InvalidValueError)
	if !errors.As(err, &wrong) {
		return err
	}
	f, value := wrong.GetFlag(), wrong.GetValue()
	takes := map[string]string{
		"bool": "true or false", "int": "a whole number", "int64": "a whole number", "float64": "a number",
		"intSlice": "whole numbers, separated by commas", "duration": "a time with its unit, as 300ms or 2m",
	}[f.Value.Type()]
	if takes == "" {
		return err
	}
	return fmt.Errorf("--%s %s: want %s", f.Name, value, takes)
}

// newGroup returns a command that only has subcommands: by itself it prints help, and an unknown name is an error.
func newGroup(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

// argumentsKey is the key of the command line in a command's context.
type argumentsKey struct{}

// arguments returns the command line of a command, as given.
func arguments(ctx context.Context) []string {
	args, _ := ctx.Value(argumentsKey{}).([]string)
	return args
}

// The exit codes.
const (
	exitFailed      = 1
	exitInterrupted = 130 // as a shell reports a program ended by Ctrl-C
)

// checkedOutput keeps the first error of writes, which many commands do not check.
type checkedOutput struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

// Write writes to the output.
func (o *checkedOutput) Write(data []byte) (int, error) {
	n, err := o.w.Write(data)
	if err != nil {
		err = fmt.Errorf("the standard output: %w", err)
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// failed returns the first error.
func (o *checkedOutput) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// version is the release that the next one follows; CHANGELOG.md has a section for it.
const version = "0.3.0"

// program returns the version, and the commit from the build info.
func program() results.Program {
	p := results.Program{Version: version, Commit: "unknown commit"}
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return p
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			p.Commit = s.Value[:min(8, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			p.Commit += " with changes"
		}
	}
	return p
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
