package main

import (
	"fmt"
	"io"
	"sync"
)

// checkedOutput remembers the first error of what is printed, which many a command does not look
// at.
type checkedOutput struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

// Write writes to the output.
func (o *checkedOutput) Write(data []byte) (int, error) {
	n, err := o.w.Write(data)
	if err != nil {
		err = fmt.Errorf("the standard output: %w", err)
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// failed returns the first error.
func (o *checkedOutput) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
