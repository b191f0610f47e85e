// Package results keeps what runs and benches leave behind: their records, with
// tables and plots of them, a picture of a field and the field itself.
//
// A [Record] is one JSON file that says what was asked for, on which machine it
// ran, how far it came and how fast: its [Row]s have labels, and values of
// [Metric]s, each a [Sample]. [WriteTable] prints records, [Plot] makes a [Chart] of
// them. A [Picture] is a heat map of a field. Charts and pictures are written as PNG,
// SVG or PDF, and so is the timeline of a few steps, a [Trace]. A [FieldWriter] streams a field into a NumPy .npy file.
//
// Every file appears under its name only when it is complete: it is written
// beside its destination and then renamed, so that an interrupted run never
// leaves half a file and never damages the one that was there. Folders on the
// way are created. Every error names the file and what was being done to it.
//
// The package knows no other room of halox but that of statistics: whoever runs a
// solver or a bench translates.
package results
