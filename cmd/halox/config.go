package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/command"
)

func newConfigCommand() *cobra.Command {
	cmd := command.NewGroup("config", "Write sample configs and check configs", newConfigNewCommand(),
		newConfigCheckCommand())
	cmd.Example = "  halox config new heat3d\n  halox config check heat3d.yaml"
	return cmd
}

func newConfigNewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "new NAME [FILE]",
		Short: "Write a sample config: " + strings.Join(configs.Samples(), ", "),
		Long: "Write the sample config NAME, with comments, to FILE (default NAME.yaml; - is the standard " +
			"output).\nAn existing file is not overwritten. Samples: " + strings.Join(configs.Samples(), ", ") +
			".",
		Example:   "  halox config new heat3d\n  halox config new heat3d - | halox run -",
		Args:      cobra.RangeArgs(1, 2),
		ValidArgs: configs.Samples(),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := configs.Sample(args[0])
			if err != nil {
				return command.As(command.Usage, err)
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
			return command.Of(cmd.Context()).PrintJSON(map[string]string{"wrote": file})
		},
	}
}

// writeNew writes a file that must not be there yet.
func writeNew(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists; name another file: halox config new NAME FILE", file)
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
		Short: "Check a config file and print all errors",
		Args:  command.OneFile,
		Example: `  halox config check heat3d.yaml
  halox config check heat3d.yaml --set grid.size=[64,64,64]`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadConfig(cmd.Context(), 1, args[0], set)
			if err != nil {
				return err
			}
			if err := checkConfig(cmd.Context(), args[0], c); err != nil {
				return command.As(command.Config, err)
			}
			call := command.Of(cmd.Context())
			fmt.Fprintf(call.Verdicts(cmd.OutOrStdout()), "ok    %s: %s on %v points in %s\n", args[0], c.Solver,
				c.Grid.Size, c.Precision)
			return call.PrintJSON(map[string]any{"file": args[0], "config": c})
		},
	}
	addSet(cmd, &set)
	return cmd
}
