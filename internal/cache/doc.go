// Package cache keeps what halox compiled and measured for its user, in one folder, from
// one process to the next.
//
// It only saves time. An entry that is not there, is damaged, or may be the work of
// somebody else counts as none, and its owner makes it anew; an entry that cannot be
// written is made anew the next time. So the errors of this package are to be told, at
// most, and never end a run. What the entries say their readers check.
package cache
