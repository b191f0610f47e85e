// Package plot draws records, traces and fields as PNG, SVG or PDF.
//
// [New] makes a [Chart] of the rows of records, by the kinds that [Kinds] lists. [Curves] and
// [Panels] are charts of any numbers, and [Timeline] is that of a trace. [Write] draws a
// chart into a file. A [Picture] is a heat map of a plane of a field.
package plot
