package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NewGroup returns a command that only has subcommands: without one it prints help, and an unknown name is an error.
func NewGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// Setup adds the common flags and behavior to a root command and all commands below it.
func Setup(root *cobra.Command) {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.PersistentFlags().BoolP("quiet", "q", false, "print only errors, and what --json prints")
	root.PersistentFlags().BoolP("verbose", "v", false, "print each phase, its progress and what auto tried")
	root.PersistentFlags().Bool("json", false, "print the result as JSON")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return noEmptyFiles(cmd.Flags()) }
	root.SetFlagErrorFunc(flagError)
	cobra.AddTemplateFunc("plain", func(s string) string {
		return strings.ReplaceAll(s, "[=true|false]", "             ")
	})
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "FlagUsages", "FlagUsages | plain"))
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		if run := cmd.RunE; run != nil {
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				if err := Of(cmd.Context()).begin(cmd); err != nil {
					return err
				}
				return run(cmd, args)
			}
		}
		for ending, ends := range map[string][]string{" FILE...": {"json"}, " FILE": {"yaml", "yml", "toml"}} {
			if strings.HasSuffix(cmd.Use, ending) {
				cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
					return ends, cobra.ShellCompDirectiveFilterFileExt
				}
			}
		}
		for _, c := range cmd.Commands() {
			each(c)
		}
	}
	each(root)
}

// Complete completes the values of a flag; in lists, each value.
func Complete(cmd *cobra.Command, flag string, values []string) {
	_, list := cmd.Flag(flag).Value.(pflag.SliceValue)
	complete := func(_ *cobra.Command, _ []string, begun string) (all []string, _ cobra.ShellCompDirective) {
		before := ""
		if list {
			before = begun[:strings.LastIndexByte(begun, ',')+1]
		}
		for _, v := range values {
			all = append(all, before+v)
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag does not exist, or already has completions
	}
}

// OneFile is the cobra argument check of commands that take one file.
func OneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("FILE: must be one file, got %d: %s", len(args), cmd.UseLine())
	}
	return nil
}

// SomeFiles is the cobra argument check of commands that take one or more files.
func SomeFiles(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("FILE: must be at least one file, got none: %s", cmd.UseLine())
	}
	return nil
}

// noEmptyFiles rejects empty names for flags that take a file: an empty value means that the flag is not given.
func noEmptyFiles(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if kind, _ := pflag.UnquoteUsage(f); err == nil && kind == "file" && f.Value.String() == "" {
			err = fmt.Errorf("--%s: must not be an empty file name", f.Name)
		}
	})
	return err
}

// flagError describes the valid values of a flag if one cannot be parsed.
func flagError(_ *cobra.Command, err error) error {
	wrong := new(pflag.InvalidValueError)
	if !errors.As(err, &wrong) {
		return err
	}
	f, value := wrong.GetFlag(), wrong.GetValue()
	takes := map[string]string{
		"bool": "true or false", "int": "a whole number", "int64": "a whole number", "float64": "a number",
		"uint32": "a whole number from 0 to 4294967295", "intSlice": "whole numbers, separated by commas",
		"bytes": "a number of bytes, such as 65536 or 64KiB", "duration": "a time with its unit, such as 300ms or 2m",
	}[f.Value.Type()]
	if takes == "" {
		return err
	}
	return fmt.Errorf("--%s: must be %s, got %q", f.Name, takes, value)
}
