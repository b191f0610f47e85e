// Package command has the common parts of all commands: exit codes, flags -q, -v and --json, colors, arguments and
// completion.
package command

import (
	"errors"

	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/streams"
)

// Code is an exit code of halox.
type Code int

// The exit codes.
const (
	OK          Code = 0
	Failed      Code = 1
	Usage       Code = 2
	Config      Code = 3
	Diverged    Code = 4
	CheckFailed Code = 5
	DeviceLost  Code = 6
	NotSaved    Code = 7
	Interrupted Code = 130 // as a shell reports a program ended by Ctrl-C
)

// Codes returns all exit codes with their meanings, in order.
func Codes() (codes []Code, means map[Code]string) {
	return []Code{OK, Failed, Usage, Config, Diverged, CheckFailed, DeviceLost, NotSaved, Interrupted}, map[Code]string{
		OK:          "success",
		Failed:      "any other failure",
		Usage:       "usage error: an unknown command or flag, or an invalid value of a flag",
		Config:      "the config is invalid, or does not suit the devices",
		Diverged:    "the solution diverged",
		CheckFailed: "a check failed: verify, or a link that corrupts data",
		DeviceLost:  "a device was lost",
		NotSaved:    "an interrupted run did not write its last checkpoint within checkpoint.grace",
		Interrupted: "interrupted by Ctrl-C, SIGTERM or SIGHUP",
	}
}

// failure is an error with an exit code.
type failure struct {
	code Code
	error
}

// Unwrap returns the error.
func (f *failure) Unwrap() error { return f.error }

// As adds an exit code to an error. It returns nil if err is nil.
func As(code Code, err error) error {
	if err == nil {
		return nil
	}
	return &failure{code, err}
}

// CodeOf returns the exit code of a command that returned err.
func CodeOf(err error) Code {
	lost, onDevice := errors.AsType[*streams.Error](err)
	f, known := errors.AsType[*failure](err)
	switch {
	case err == nil:
		return OK
	case errors.Is(err, interrupt.ErrInterrupted):
		return Interrupted
	case onDevice && lost.Fatal:
		return DeviceLost
	case known:
		return f.code
	}
	return Failed
}

var errPrinted = errors.New("printed already")

// Printed returns an error with an exit code that Execute does not print; nil for OK.
func Printed(code Code) error {
	if code == OK {
		return nil
	}
	return As(code, errPrinted)
}
