// Package cache stores compiled programs and measurements in a folder of the user, for later processes.
//
// The cache only saves time. An entry that is missing or damaged, or that another user may have written, counts as
// absent, and is computed again. Errors of this package may be reported, but never end a run.
package cache
