package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
)

func newConfigCommand() *cobra.Command {
	cmd := newGroup("config", "Make and check config files")
	cmd.AddCommand(newConfigNewCommand(), newConfigCheckCommand())
	return cmd
}

func newConfigNewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "new NAME [FILE]",
		Short: "Write a sample config: " + strings.Join(configs.Samples(), ", "),
		Long: "Write the sample config NAME, with comments, to FILE (NAME.yaml where none is given, the standard " +
			"output for -).\nA file that is there is left as it is. Samples: " + strings.Join(configs.Samples(), ", ") +
			".",
		Args:      cobra.RangeArgs(1, 2),
		ValidArgs: configs.Samples(),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := configs.Sample(args[0])
			if err != nil {
				return err
			}
			file := args[0] + ".yaml"
			if len(args) == 2 {
				file = args[1]
			}
			if file == "-" {
				_, err := cmd.OutOrStdout().Write(text)
				return err
			}
			if err := writeNew(file, text); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s; run it with: halox run %s\n", file, file)
			return nil
		},
	}
}

// writeNew writes a file that must not be there yet.
func writeNew(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already; name another file: halox config new NAME FILE", file)
	}
	if err != nil {
		return err
	}
	return fillNew(f, text)
}

// fillNew writes a new file, and removes it where it would not be whole.
func fillNew(f *os.File, text []byte) error {
	_, err := f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func newConfigCheckCommand() *cobra.Command {
	var set []string
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a config file and say all that is wrong with it",
		Args:  oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadConfig(1, args[0], set)
			if err != nil {
				return err
			}
			if err := checkConfig(cmd.Context(), args[0], c); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: ok: %s on %v points in %s\n", args[0], c.Solver, c.Grid.Size,
				c.Precision)
			return nil
		},
	}
	addSet(cmd, &set)
	return cmd
}
