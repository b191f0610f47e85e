// Package bench runs benchmarks: it measures what a record lacks, writes the record from time to
// time, and draws it. What is measured is in the packages below it, one a group of benchmarks. Each
// benchmark has a struct of options with the methods
//
//	Check() error
//	Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error
//
// Check refuses options that make no sense and fills in those that were left open; it comes before
// Run. Its messages name an option as the command line does: --paths for Paths. Run measures on open
// devices and returns the error of the context where that ends, when a measurement that is under way
// has come to its end.
package bench
