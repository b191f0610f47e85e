// Package cache keeps what halox compiled and measured for its user, in one folder, from one process to the next.
//
// It only saves time. An entry that is missing or damaged, or that another user may have written, counts as absent:
// its owner computes it again. So does the next process where an entry cannot be written. Errors of this package may be
// reported, but never end a run.
package cache
