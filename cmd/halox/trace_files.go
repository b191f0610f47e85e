package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/halox/halox/internal/files"
)

// withoutTraces returns the files that are no traces, of which notes tell, as the files of a folder may be of both kinds. Where there are
// traces alone it returns all.
func withoutTraces(names []string, notes io.Writer) []string {
	var others, traces []string
	for _, name := range names {
		if head, err := headOf(name); err == nil && isTrace(head) {
			traces = append(traces, name)
		} else {
			others = append(others, name)
		}
	}
	if len(others) == 0 || len(traces) == 0 {
		return names
	}
	fmt.Fprintf(notes, "left out, as they are traces, which halox plot draws one by one: %s\n", strings.Join(traces, ", "))
	return others
}

// isTrace reports whether a file begins as a trace does.
func isTrace(head []byte) bool { return bytes.Contains(head, []byte(`"traceEvents"`)) }

// headBytes is how much of a file its kind is told by.
const headBytes = 512

// headOf reads how a file begins.
func headOf(name string) ([]byte, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head := make([]byte, headBytes)
	n, err := io.ReadFull(file, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:n], err
}
