// Package trace keeps what the streams of each device did in some steps of a run, and when.
// Its files are in the Trace Event Format, which Perfetto reads.
package trace
