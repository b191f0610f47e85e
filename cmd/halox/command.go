package main

import (
	"context"

	"github.com/spf13/cobra"
)

// newGroup returns a command that only holds others: by itself it helps, and a
// name that it does not hold is an error.
func newGroup(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

// argumentsKey is that of the command line in a command's context.
type argumentsKey struct{}

// arguments returns the command line of a command, as given.
func arguments(ctx context.Context) []string {
	args, _ := ctx.Value(argumentsKey{}).([]string)
	return args
}
