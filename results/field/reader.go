package field

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/sbinet/npyio/npy"

	"github.com/halox/halox/internal/files"
)

// Read gives back the shape and the values of a field file, all of it in
// memory. Any .npy file in C order with little-endian numbers of 4 or 8 bytes
// will do; float32 values come widened. A device or a pipe is an error.
func Read(path string) (shape []int, values []float64, err error) {
	file, err := files.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("results: read field: %w", err)
	}
	defer file.Close()
	shape, values, err = read(file)
	if err != nil {
		return nil, nil, fmt.Errorf("results: read field %s: %w", path, err)
	}
	return shape, values, nil
}

func read(file *os.File) ([]int, []float64, error) {
	header, err := readHeader(file)
	if err != nil {
		return nil, nil, err
	}
	shape, dtype := header.Descr.Shape, DType(header.Descr.Type)
	total, err := volume(shape)
	if err != nil {
		return nil, nil, err
	}
	if dtype.bytes() == 0 || header.Descr.Fortran {
		return nil, nil, fmt.Errorf("its type is %q, Fortran order %t; want %q or %q in C order",
			dtype, header.Descr.Fortran, Float64, Float32)
	}
	if err := checkRest(file, total*dtype.bytes()); err != nil {
		return nil, nil, err
	}
	values, err := readValues(bufio.NewReaderSize(file, 1<<20), total, dtype)
	return shape, values, err
}

// readHeader leaves the file at the first number. The parser of npyio may index
// past the end of a header that is not one; here that is an error.
func readHeader(file *os.File) (header npy.Header, err error) {
	defer func() {
		if recover() != nil {
			err = npy.ErrInvalidNumPyFormat
		}
	}()
	reader, err := npy.NewReader(file)
	if err != nil {
		return npy.Header{}, err
	}
	return reader.Header, nil
}

// checkRest compares what is left of the file with the bytes that it should
// hold, before memory is taken on the word of a header.
func checkRest(file *os.File, want int) error {
	at, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if got := info.Size() - at; got != int64(want) {
		return fmt.Errorf("it holds %d bytes of values; its shape and type need %d", got, want)
	}
	return nil
}

func readValues(r io.Reader, total int, dtype DType) ([]float64, error) {
	values := make([]float64, total)
	number := make([]byte, dtype.bytes())
	for i := range values {
		if _, err := io.ReadFull(r, number); err != nil {
			return nil, err
		}
		if dtype == Float32 {
			values[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(number)))
		} else {
			values[i] = math.Float64frombits(binary.LittleEndian.Uint64(number))
		}
	}
	return values, nil
}
