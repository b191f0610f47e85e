package field

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/files"
)

// An Encoder writes one field in the NumPy format, in C order: the last axis of the shape, which is x, runs fastest.
type Encoder struct {
	buffer  *bufio.Writer
	element domain.Element
	total   int   // numbers that the shape asks for
	written int   // numbers so far
	err     error // the first failure, after which nothing is written
}

// NewEncoder begins a field of the given shape, (ny, nx) or (nz, ny, nx). A shape without axes or with an axis shorter
// than 1, and an element that is not real, are errors.
func NewEncoder(w io.Writer, shape []int, e domain.Element) (*Encoder, error) {
	if !e.IsReal() {
		return nil, fmt.Errorf("element: must be float32 or float64, got %q", e)
	}
	total, err := volume(shape)
	if err != nil {
		return nil, err
	}
	encoder := &Encoder{buffer: bufio.NewWriterSize(w, 1<<20), element: e, total: total}
	encoder.buffer.Write(header(shape, e)) // a failure stays in the buffer for the next write
	return encoder, nil
}

// Write appends the next values, in any parts: rows, planes or all at once. They are rounded to the element. More
// values than the shape has room for are an error, and none of them is written.
func (e *Encoder) Write(values []float64) error {
	if room := e.total - e.written; e.err == nil && len(values) > room {
		e.err = fmt.Errorf("%d values, with room for %d of %d", len(values), room, e.total)
	}
	for i := 0; i < len(values) && e.err == nil; i++ {
		e.err = put(e.buffer, e.element, values[i])
	}
	if e.err == nil {
		e.written += len(values)
	}
	return e.err
}

// Close writes what is buffered. A field with too few values is an error.
func (e *Encoder) Close() error {
	if e.err == nil && e.written != e.total {
		e.err = fmt.Errorf("it has %d of %d values", e.written, e.total)
	}
	if e.err == nil {
		e.err = e.buffer.Flush()
	}
	return e.err
}

// put appends one number to the buffer, without an allocation.
func put(buffer *bufio.Writer, e domain.Element, v float64) error {
	if buffer.Available() < e.Size() {
		if err := buffer.Flush(); err != nil {
			return err
		}
	}
	number := buffer.AvailableBuffer()
	if e == domain.Float32 {
		number = binary.LittleEndian.AppendUint32(number, math.Float32bits(float32(v)))
	} else {
		number = binary.LittleEndian.AppendUint64(number, math.Float64bits(v))
	}
	_, err := buffer.Write(number)
	return err
}

// A Writer writes one field into a NumPy .npy file, as an [Encoder] does. Except for Abort, it is not safe for
// concurrent use.
type Writer struct {
	file    *files.Output
	encoder *Encoder
	closed  atomic.Bool
}

var errClosed = errors.New("it is closed")

// NewWriter begins the file of a field, see [NewEncoder]. The file has its name only after Close.
func NewWriter(path string, shape []int, e domain.Element) (*Writer, error) {
	var file struct{ *files.Output } // nothing is created for a field that cannot be encoded
	encoder, err := NewEncoder(&file, shape, e)
	if err == nil {
		file.Output, err = files.Create(path)
	}
	if err != nil {
		return nil, fmt.Errorf("results: create field %s: %w", path, err)
	}
	return &Writer{file: file.Output, encoder: encoder}, nil
}

// Write appends the next values, see [Encoder.Write].
func (w *Writer) Write(values []float64) error {
	if w.closed.Load() {
		w.encoder.err = errClosed
	}
	if err := w.encoder.Write(values); err != nil {
		return fmt.Errorf("results: write field %s: %w", w.file.Path(), err)
	}
	return nil
}

// Close completes the file and gives it its name. A field with too few values, or one that could not be written, is an
// error and leaves no file.
func (w *Writer) Close() error {
	if err := w.finish(); err != nil {
		return fmt.Errorf("results: close field %s: %w", w.file.Path(), err)
	}
	return nil
}

func (w *Writer) finish() error {
	if w.closed.Load() {
		return errClosed
	}
	if err := w.encoder.Close(); err != nil {
		return errors.Join(err, w.Abort())
	}
	err := w.file.Commit()
	w.closed.Store(true)
	return err
}

// Abort removes what was written. After Close it does nothing, so that it can be deferred. It may be called while
// another goroutine writes, or waits in Close for the disk.
func (w *Writer) Abort() error {
	if !w.closed.CompareAndSwap(false, true) {
		return nil
	}
	if err := w.file.Abort(); err != nil {
		return fmt.Errorf("results: abort field %s: %w", w.file.Path(), err)
	}
	return nil
}
