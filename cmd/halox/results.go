package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/halox/halox/results"
)

// resultsFlags are the flags of halox results.
type resultsFlags struct{ format string }

func newResultsCommand() *cobra.Command {
	var f resultsFlags
	cmd := &cobra.Command{
		Use:   "results FILE...",
		Short: "Print what records hold as a table",
		Long: `Print what records hold as a table, a line a row of the records.

In text and markdown, what all rows have in common stands above the table, and
numbers are medians; one whose 95% confidence interval reaches farther than 1% is
followed by how far. In csv every label has a column, and every metric one for its
median, quartiles, extremes and number of measurements each.`,
		Example: `  halox results exchange.json
  halox results run-*.json --format markdown
  halox results pack.json --format csv > pack.csv`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := oneOf("format", f.format, results.Formats()...); err != nil {
				return err
			}
			all, err := results.ReadAll(files...)
			if err != nil {
				return err
			}
			return results.WriteTable(cmd.OutOrStdout(), f.format, all...)
		},
	}
	cmd.Flags().StringVar(&f.format, "format", "text", strings.Join(results.Formats(), ", "))
	return cmd
}
