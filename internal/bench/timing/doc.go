// Package timing times what devices and hosts do over and over: medians of batches, by the host's
// clock or, behind a gate, by a device's.
package timing
