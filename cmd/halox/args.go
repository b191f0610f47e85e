package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// oneFile is of commands that take one file.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name one file, not %d: %s", len(args), cmd.UseLine())
	}
	return nil
}

// someFiles is of commands that take one file or several.
func someFiles(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("name the files: %s", cmd.UseLine())
	}
	return nil
}

// noEmptyFiles refuses flags for a file that are given an empty name: it stands for a flag that is not given.
func noEmptyFiles(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if kind, _ := pflag.UnquoteUsage(f); err == nil && kind == "file" && f.Value.String() == "" {
			err = fmt.Errorf("--%s: an empty file name", f.Name)
		}
	})
	return err
}

// flagError says what a flag takes whose value cannot be read.
func flagError(_ *cobra.Command, err error) error {
	wrong := new(pflag.InvalidValueError)
	if !errors.As(err, &wrong) {
		return err
	}
	f, value := wrong.GetFlag(), wrong.GetValue()
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("--%s %s: out of range", f.Name, value)
	}
	takes := map[string]string{
		"bool": "true or false", "int": "a whole number", "int64": "a whole number", "float64": "a number",
		"intSlice": "whole numbers, separated by commas", "duration": "a time with its unit, as 300ms or 2m",
	}[f.Value.Type()]
	if takes == "" {
		return err
	}
	return fmt.Errorf("--%s %s: want %s", f.Name, value, takes)
}
