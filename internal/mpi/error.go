package mpi

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/halox/halox/internal/dl"
)

var (
	// ErrNotFound says that no MPI library could be opened.
	ErrNotFound = errors.New("no MPI library found")

	// ErrUnsupported says that this build cannot call MPI.
	ErrUnsupported = fmt.Errorf("MPI: %w", dl.ErrUnsupported)

	// ErrLate is what all that waited too long is.
	ErrLate = errors.New("waited too long")
)

// NotFoundError is an [ErrNotFound] that says what was tried.
type NotFoundError struct {
	Tried []Attempt
}

// Attempt is a library that was not taken, and why.
type Attempt struct{ Library, Why string }

// Error says what to do about it, and lists the attempts.
func (n *NotFoundError) Error() string {
	var tried []string
	for _, a := range n.Tried {
		tried = append(tried, a.Library+" ("+a.Why+")")
	}
	return fmt.Sprintf("%v; install the one that your launcher belongs to, or name its libmpi.so in %s; tried %s",
		ErrNotFound, Variable, strings.Join(tried, ", "))
}

// Is matches ErrNotFound.
func (n *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// Error is a call of MPI that failed.
type Error struct {
	Call string // MPI's function
	With string // the other rank and the tag, "" where the call has none
	Code int    // what it returned
	Text string // MPI's words for that
}

// Error names the call, the other rank and the code.
func (e *Error) Error() string {
	with := ""
	if e.With != "" {
		with = " " + e.With
	}
	return fmt.Sprintf("%s%s: %s (%d)", e.Call, with, e.Text, e.Code)
}

// LateError is an [ErrLate]: a call that was not complete within its limit.
type LateError struct {
	Call  string
	With  string // the ranks that it waited for
	Limit time.Duration
}

// Error names the call, the ranks that it waited for and the limit.
func (l *LateError) Error() string {
	return fmt.Sprintf("%s %s: %v for %v", l.Call, l.With, ErrLate, l.Limit)
}

// Is matches ErrLate.
func (l *LateError) Is(target error) bool { return target == ErrLate }
