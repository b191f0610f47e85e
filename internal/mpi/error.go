package mpi

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/halox/halox/internal/dl"
)

var (
	// ErrNotFound means that no MPI library could be opened.
	ErrNotFound = errors.New("no MPI library found")

	// ErrUnsupported means that this build cannot call MPI.
	ErrUnsupported = fmt.Errorf("MPI: %w", dl.ErrUnsupported)

	// ErrLate is wrapped by errors of waits that exceeded their limit.
	ErrLate = errors.New("waited too long")
)

// NotFoundError is an [ErrNotFound] with the libraries that were tried.
type NotFoundError struct {
	Tried []Attempt
}

// Attempt is a library that was not used, with the reason.
type Attempt struct{ Library, Why string }

// Error returns a remedy and the attempts.
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

// Error is a failed MPI call.
type Error struct {
	Call string // MPI's function
	With string // the other rank and the tag, "" if the call has none
	Code int    // returned code
	Text string // MPI's description of the code
}

// Error returns the call, the other rank and the code.
func (e *Error) Error() string {
	with := ""
	if e.With != "" {
		with = " " + e.With
	}
	return fmt.Sprintf("%s%s: %s (%d)", e.Call, with, e.Text, e.Code)
}

// LateError is an [ErrLate]: a call that was not completed within its limit.
type LateError struct {
	Call  string
	With  string // the ranks that it waited for
	Limit time.Duration
}

// Error returns the call, the ranks that it waited for and the limit.
func (l *LateError) Error() string {
	return fmt.Sprintf("%s %s: %v for %v", l.Call, l.With, ErrLate, l.Limit)
}

// Is matches ErrLate.
func (l *LateError) Is(target error) bool { return target == ErrLate }
