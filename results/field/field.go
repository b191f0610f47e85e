// Package field writes and reads fields as NumPy files (.npy).
package field

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/files"
)

// dtypes are the elements of field files in NumPy's notation, little-endian.
var dtypes = map[domain.Element]string{domain.Float64: "<f8", domain.Float32: "<f4"}

const magic = "\x93NUMPY"

// header is the head of a .npy file of version 1.0: magic, version, length
// and a Python dictionary, padded so that the numbers begin at a multiple of 64.
func header(shape []int, e domain.Element) []byte {
	const prefix = 10 // bytes before the dictionary
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", dtypes[e], tuple(shape))
	padding := 63 - (prefix+len(dict))%64
	dict += strings.Repeat(" ", padding) + "\n"
	header := append([]byte(magic), 1, 0)
	header = binary.LittleEndian.AppendUint16(header, uint16(len(dict)))
	return append(header, dict...)
}

// tuple writes a shape as Python does: (4, 3), and (4,) for one axis.
func tuple(shape []int) string {
	axes := strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", ", ")
	if len(shape) == 1 {
		axes += ","
	}
	return "(" + axes + ")"
}

// volume is the number of values of a shape.
func volume(shape []int) (int, error) {
	if len(shape) == 0 {
		return 0, errors.New("the shape has no axes")
	}
	total := 1
	for _, n := range shape {
		if n < 1 || total > math.MaxInt/8/n {
			return 0, fmt.Errorf("the shape %v cannot be stored", shape)
		}
		total *= n
	}
	return total, nil
}

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
	f, err := open(file)
	if err != nil {
		return nil, nil, err
	}
	shape := f.Size()
	slices.Reverse(shape)
	total, err := volume(shape)
	if err != nil {
		return nil, nil, err
	}
	values, err := readValues(file, total, f.element)
	return shape, values, err
}

// A File is an open field file, of which parts are read. It is safe for concurrent use.
type File struct {
	file    *os.File
	start   int64 // of the values
	size    []int
	element domain.Element
}

// Open opens a file of the form that Read takes, for parts. Close may be left out.
func Open(path string) (*File, error) {
	file, err := files.Open(path)
	if err != nil {
		return nil, fmt.Errorf("results: read field: %w", err)
	}
	f, err := open(file)
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("results: read field %s: %w", path, err)
	}
	return f, nil
}

// open reads the header.
func open(file *os.File) (*File, error) {
	shape, dtype, fortran, err := readHeader(file)
	if err != nil {
		return nil, err
	}
	total, err := volume(shape)
	if err != nil {
		return nil, err
	}
	e := domain.Float64
	if dtype == dtypes[domain.Float32] {
		e = domain.Float32
	}
	if dtype != dtypes[e] || fortran {
		return nil, fmt.Errorf(`its type is %q, Fortran order %t; want "<f8" or "<f4" in C order`, dtype, fortran)
	}
	if err := checkRest(file, total*e.Size()); err != nil {
		return nil, err
	}
	start, err := file.Seek(0, io.SeekCurrent)
	slices.Reverse(shape)
	return &File{file, start, shape, e}, err
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Size returns the points along each axis, x first.
func (f *File) Size() []int { return slices.Clone(f.size) }

// Row sets dst to values along x, from a point on. They are NaN where the file cannot be read.
func (f *File) Row(dst []float64, at domain.Vec) {
	index := int64(0)
	for a := len(f.size) - 1; a >= 0; a-- {
		index = index*int64(f.size[a]) + int64(at[a])
	}
	data := make([]byte, len(dst)*f.element.Size())
	if _, err := f.file.ReadAt(data, f.start+index*int64(f.element.Size())); err != nil {
		for i := range dst {
			dst[i] = math.NaN()
		}
		return
	}
	decode(dst, data, f.element)
}

// decode reads numbers.
func decode(dst []float64, data []byte, e domain.Element) {
	for i := range dst {
		if e == domain.Float32 {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
		} else {
			dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
		}
	}
}

// The entries of a header, a Python dictionary. The description of a record type is a list, which is taken whole.
var (
	descrEntry   = regexp.MustCompile(`['"]descr['"]\s*:\s*(?:['"]([^'"]*)['"]|(\[[^\n]*\]))`)
	fortranEntry = regexp.MustCompile(`['"]fortran_order['"]\s*:\s*(True|False)`)
	shapeEntry   = regexp.MustCompile(`['"]shape['"]\s*:\s*\(([0-9,\s]*)\)`)
)

// readHeader reads a header of version 1, 2 or 3, and leaves the file at the first number.
func readHeader(file *os.File) (shape []int, dtype string, fortran bool, err error) {
	info, err := file.Stat()
	if err != nil {
		return nil, "", false, err
	}
	var start [8]byte
	if _, err := io.ReadFull(file, start[:]); err != nil || string(start[:6]) != magic {
		return nil, "", false, errors.New("not a NumPy file")
	}
	size := make([]byte, 2)
	if start[6] > 1 {
		size = make([]byte, 4)
	}
	if _, err := io.ReadFull(file, size); err != nil {
		return nil, "", false, errors.New("the file ends within its header")
	}
	n := int64(binary.LittleEndian.Uint32(append(size, 0, 0)))
	if n > info.Size() {
		return nil, "", false, fmt.Errorf("the file of %d bytes names a header of %d", info.Size(), n)
	}
	dictionary := make([]byte, n)
	if _, err := io.ReadFull(file, dictionary); err != nil {
		return nil, "", false, errors.New("the file ends within its header")
	}
	descr, order := descrEntry.FindSubmatch(dictionary), fortranEntry.FindSubmatch(dictionary)
	axes := shapeEntry.FindSubmatch(dictionary)
	if descr == nil || order == nil || axes == nil {
		return nil, "", false, errors.New("its header lacks descr, fortran_order or shape")
	}
	for _, axis := range strings.FieldsFunc(string(axes[1]), func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.Atoi(axis)
		if err != nil {
			return nil, "", false, fmt.Errorf("its shape (%s) is too large", axes[1])
		}
		shape = append(shape, n)
	}
	return shape, string(descr[1]) + string(descr[2]), string(order[1]) == "True", nil
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

func readValues(r io.Reader, total int, e domain.Element) ([]float64, error) {
	values, data := make([]float64, total), make([]byte, 1<<16)
	for left := values; len(left) > 0; {
		n := min(len(left), len(data)/e.Size())
		if _, err := io.ReadFull(r, data[:n*e.Size()]); err != nil {
			return nil, err
		}
		decode(left[:n], data, e)
		left = left[n:]
	}
	return values, nil
}
