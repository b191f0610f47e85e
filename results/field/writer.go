package field

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/halox/halox/internal/files"
)

// A Writer streams one field into a NumPy .npy file, in C order: the last
// axis of the shape, which is x, runs fastest. But for Abort, it is not safe for concurrent use.
type Writer struct {
	file    *files.Output
	buffer  *bufio.Writer
	dtype   DType
	total   int   // numbers that the shape asks for
	written int   // numbers so far
	err     error // the first failure, after which nothing is written
	closed  atomic.Bool
}

var errClosed = errors.New("it is closed")

// NewWriter begins the file of a field of the given shape, (ny, nx) or
// (nz, ny, nx). The file has its name only after Close. A shape without axes or
// with one shorter than 1, and a dtype other than Float64 and Float32, are errors.
func NewWriter(path string, shape []int, dtype DType) (*Writer, error) {
	w, err := newWriter(path, shape, dtype)
	if err != nil {
		return nil, fmt.Errorf("results: create field %s: %w", path, err)
	}
	return w, nil
}

func newWriter(path string, shape []int, dtype DType) (*Writer, error) {
	if dtype.bytes() == 0 {
		return nil, fmt.Errorf("dtype is %q, want %q or %q", dtype, Float64, Float32)
	}
	total, err := volume(shape)
	if err != nil {
		return nil, err
	}
	file, err := files.Create(path)
	if err != nil {
		return nil, err
	}
	w := &Writer{file: file, buffer: bufio.NewWriterSize(file, 1<<20), dtype: dtype, total: total}
	w.buffer.Write(header(shape, dtype)) // a failure stays in the buffer for the next write
	return w, nil
}

// Write appends the next values, in any parts: rows, planes or all at once.
// They are rounded to the file's type. More values than the shape has room for
// are an error, and none of them is written.
func (w *Writer) Write(values []float64) error {
	if w.closed.Load() {
		w.err = errClosed
	}
	if room := w.total - w.written; w.err == nil && len(values) > room {
		w.err = fmt.Errorf("%d values, with room for %d of %d", len(values), room, w.total)
	}
	for i := 0; i < len(values) && w.err == nil; i++ {
		w.err = put(w.buffer, w.dtype, values[i])
	}
	if w.err != nil {
		return fmt.Errorf("results: write field %s: %w", w.file.Path(), w.err)
	}
	w.written += len(values)
	return nil
}

// Close completes the file and gives it its name. A field with too few values,
// or one that could not be written, is an error and leaves no file.
func (w *Writer) Close() error {
	err := w.finish()
	if err != nil {
		err = fmt.Errorf("results: close field %s: %w", w.file.Path(), err)
	}
	return err
}

// Abort gives the file up and removes what was written. After Close it does
// nothing, so that it can be deferred. It may be called while another goroutine writes, or waits in
// Close for the disk.
func (w *Writer) Abort() error {
	if !w.closed.CompareAndSwap(false, true) {
		return nil
	}
	if err := w.file.Abort(); err != nil {
		return fmt.Errorf("results: abort field %s: %w", w.file.Path(), err)
	}
	return nil
}

func (w *Writer) finish() error {
	if w.closed.Load() {
		return errClosed
	}
	err := w.err
	if err == nil && w.written != w.total {
		err = fmt.Errorf("it has %d of %d values", w.written, w.total)
	}
	if err == nil {
		err = w.buffer.Flush()
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	err = w.file.Commit()
	w.closed.Store(true)
	return err
}

// put appends one number to the buffer, without a copy of its own.
func put(buffer *bufio.Writer, dtype DType, v float64) error {
	if buffer.Available() < dtype.bytes() {
		if err := buffer.Flush(); err != nil {
			return err
		}
	}
	number := buffer.AvailableBuffer()
	if dtype == Float32 {
		number = binary.LittleEndian.AppendUint32(number, math.Float32bits(float32(v)))
	} else {
		number = binary.LittleEndian.AppendUint64(number, math.Float64bits(v))
	}
	_, err := buffer.Write(number)
	return err
}
