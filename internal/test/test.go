// Package test ends tests at errors.
package test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
)

// TB is the common interface of tests, benchmarks and tests of package rapid.
type TB interface {
	Helper()
	Error(args ...any)
	Fatal(args ...any)
}

// Must returns a function that returns v, or ends the test if err is not nil: test.Must(os.ReadFile(name))(t).
func Must[T any](v T, err error) func(t TB) T {
	return func(t TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Check ends the test at errors.
func Check(t TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Report fails the test at an error, and continues.
func Report(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Says fails the test unless there is an error that contains the words.
func Says(t TB, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Error(fmt.Sprintf("the error is %v, want %q", err, words))
	}
}

// ErrorOf returns the error of a call with another result.
func ErrorOf[T any](_ T, err error) error { return err }

// Is fails the test unless errors.Is holds.
func Is(t TB, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Error(fmt.Sprintf("the error is %v, want %v", err, kind))
	}
}

// Output is a buffer that several goroutines may write to.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to the text.
func (o *Output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(data)
}

// String returns the text so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// CatchSignals is for TestMain: processes that tests start then do not ignore signals that the shell, or nohup, ignores
// for the tests.
func CatchSignals() {
	for _, ignored := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(ignored) {
			signal.Notify(make(chan os.Signal, 1), ignored)
		}
	}
}
