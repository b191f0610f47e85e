package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/results"
)

// resultsFlags are the flags of halox results.
type resultsFlags struct {
	format         string
	where, metrics []string
}

func newResultsCommand() *cobra.Command {
	var f resultsFlags
	cmd := &cobra.Command{
		Use:   "results FILE...",
		Short: "Print what records hold as a table",
		Long: `Print what records hold as a table, a line a row of the records.

In text and markdown, what all rows have in common stands above the table, and
numbers are medians; one whose 95% confidence interval reaches farther than 1% is
followed by how far. Of several files traces are left out. In csv every label has a column, and every metric one for its
median, quartiles, extremes and number of measurements each. --where says which rows,
and --metrics which numbers and in which order.`,
		Example: `  halox results exchange.json
  halox results run-*.json --format markdown
  halox results schemes.json --where devices=4 --metrics step,gflops,over_baseline
  halox results pack.json --format csv > pack.csv`,
		Args: someFiles,
		RunE: func(cmd *cobra.Command, files []string) error {
			return f.run(withoutTraces(files, cmd.ErrOrStderr()), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&f.format, "format", "text", strings.Join(results.Formats(), ", "))
	cmd.Flags().StringArrayVar(&f.where, "where", nil, "only rows with this `label=value`; may be repeated")
	cmd.Flags().StringSliceVar(&f.metrics, "metrics", nil, "only these metrics, in this order")
	return cmd
}

// run prints the table of the files.
func (f *resultsFlags) run(files []string, out io.Writer) error {
	if err := option.OneOf("format", f.format, results.Formats()...); err != nil {
		return err
	}
	where, err := conditions(f.where)
	if err != nil {
		return err
	}
	all, err := results.ReadAll(files...)
	if err != nil {
		return err
	}
	var metrics []results.Metric
	for _, m := range f.metrics {
		metrics = append(metrics, results.Metric(m))
	}
	if all, err = results.Filter(all, where, metrics...); err != nil {
		return err
	}
	return results.WriteTable(out, f.format, all...)
}

// conditions reads the values of --where.
func conditions(where []string) (all []results.Condition, err error) {
	for _, text := range where {
		c, err := results.ParseCondition(text)
		if err != nil {
			return nil, fmt.Errorf("--where: %w", err)
		}
		all = append(all, c)
	}
	return all, nil
}
