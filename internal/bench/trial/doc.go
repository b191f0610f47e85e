// Package trial compares what devices write with what the host works out, before it is timed.
package trial
