// Package results keeps what a run leaves behind: its record, a picture of its
// field and the field itself.
//
// A [Record] is one JSON file that says what was asked for, on which machine it
// ran, how far it came and how fast. A [Picture] is a heat map, written as PNG,
// SVG or PDF. A [Trace] is the timeline of a few steps, for Perfetto or drawn by
// [WriteTimeline]. A [FieldWriter] streams a field into a NumPy .npy file.
//
// Every file appears under its name only when it is complete: it is written
// beside its destination and then renamed, so that an interrupted run never
// leaves half a file and never damages the one that was there. Folders on the
// way are created. Every error names the file and what was being done to it.
//
// The package knows no other room of halox: whoever runs a solver translates.
package results
