package main

import (
	"fmt"

	"github.com/spf13/cobra"
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
