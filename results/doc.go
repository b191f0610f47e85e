// Package results keeps what runs and benchmarks measured: records, and tables of them.
//
// A [Record] is one JSON file. It says what was asked for, on which machine it ran, how far
// it came and how fast. A [Row] of it has labels, which say what was measured, and for each
// [Metric] a [Sample]. [WriteTable] prints records. Package results/plot draws them, and
// packages results/trace and results/field have the other files of a run.
//
// A file appears under its name when it is complete: an interrupted run leaves no half of a
// file, and does not damage the one that was there. Missing folders are created. Every error
// names the file and what was being done to it.
package results
