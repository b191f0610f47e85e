package zarr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/files"
)

// Read sets dst to the values of a box of a level, 0 without a time axis: x fastest, as the machine stores them. A
// level that the array lacks, a box that it does not cover, and a dst of another length are errors. All inner chunks
// that intersect the box are decoded and their checksums compared, one after another, so a box of whole chunks is read
// fastest. Missing files and chunks are errors, unless the array is Sparse. Errors name the file.
func (a *Array) Read(dst []byte, level int, box domain.Box) error {
	s := spanOf(level, box)
	if level < 0 || level >= a.Levels {
		return fmt.Errorf("zarr: read array %s: level: must be between 0 and %d, got %d", a.path, a.Levels-1, level)
	}
	if box.Empty() || a.clip(s) != s {
		size := domain.Times(a.Size)
		return fmt.Errorf("zarr: read array %s: box: must have points of the grid of %s, got %v", a.path, size, box)
	}
	if want := s.points() * a.Element.Size(); len(dst) != want {
		return fmt.Errorf("zarr: read array %s: box %v has %d bytes, got room for %d", a.path, box, want, len(dst))
	}
	r := reader{Array: a, dst: dst, span: s, buffers: pool.Get().(*buffers)}
	defer pool.Put(r.buffers)
	for i := range s.cells(a.chunk).all() {
		if err := r.file(i); err != nil {
			return fmt.Errorf("zarr: read %s: %w", filepath.Join(a.path, a.name(i)), err)
		}
	}
	return nil
}

// ReadValues is [Array.Read] into a slice of numbers of the array's element.
func ReadValues[T float32 | float64 | int32 | int64](a *Array, dst []T, level int, box domain.Box) error {
	if e := domain.Element(reflect.TypeFor[T]().Kind().String()); e != a.Element {
		return fmt.Errorf("zarr: read array %s: element: must be %s, got %s", a.path, e, a.Element)
	}
	data := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)*a.Element.Size())
	return a.Read(data, level, box)
}

// reader is one read of an array.
type reader struct {
	*Array
	dst  []byte
	span span // of dst
	*buffers
}

// buffers are for one chunk.
type buffers struct{ encoded, decoded []byte }

var pool = sync.Pool{New: func() any { return new(buffers) }}

// file reads the points of one file.
func (r *reader) file(i index) error {
	points := cell(i, r.chunk).intersect(r.span)
	f, err := files.Open(filepath.Join(r.path, r.name(i)))
	if errors.Is(err, fs.ErrNotExist) {
		return r.lacking(points, errors.New("the file is missing"))
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if !r.sharded {
		return r.readChunk(f, 0, size, cell(i, r.inner))
	}
	chunks := cell(i, r.chunk).cells(r.inner)
	places, err := r.places(f, size, chunks.points())
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	for c := range points.cells(r.inner).all() {
		if err := r.chunkOf(f, size, cell(c, r.inner), places[16*chunks.position(c):]); err != nil {
			return fmt.Errorf("chunk %v: %w", r.axes(c), err)
		}
	}
	return nil
}

// lacking sets points that are not stored.
func (r *reader) lacking(points span, err error) error {
	if !r.Sparse {
		return err
	}
	for i := range points.all() {
		copy(r.dst[r.span.position(i)*len(r.fill):], r.fill)
	}
	return nil
}

// places reads the index of a shard, of a number of chunks.
func (r *reader) places(f *os.File, size int64, chunks int) ([]byte, error) {
	n := int64(chunks)*16 + crcBytes
	if size < n {
		return nil, fmt.Errorf("must have %d bytes, the file has %d", n, size)
	}
	at := size - n
	if r.atStart {
		at = 0
	}
	data := make([]byte, n)
	if _, err := f.ReadAt(data, at); err != nil {
		return nil, err
	}
	return checked(data)
}

// chunkOf reads the points of a chunk, from the place that begins at an entry of the index.
func (r *reader) chunkOf(f *os.File, size int64, chunk span, entry []byte) error {
	at, n := binary.LittleEndian.Uint64(entry), binary.LittleEndian.Uint64(entry[8:])
	if at == missing && n == missing {
		return r.lacking(chunk.intersect(r.span), errors.New("it is missing"))
	}
	if at > uint64(size) || n > uint64(size)-at {
		return fmt.Errorf("must end within the file of %d bytes, got offset %d and length %d", size, at, n)
	}
	return r.readChunk(f, int64(at), int64(n), chunk)
}

// readChunk reads the points of a chunk, from n bytes of a file.
func (r *reader) readChunk(f *os.File, at, n int64, chunk span) error {
	element := r.Element.Size()
	bytes := chunk.points() * element
	if most := int64(bytes + bytes/64 + 1<<16); n > most {
		return fmt.Errorf("must have at most %d bytes, got %d", most, n)
	}
	r.encoded = grown(r.encoded, int(n))
	if _, err := f.ReadAt(r.encoded, at); err != nil {
		return err
	}
	r.decoded = grown(r.decoded, bytes+crcBytes)
	data, err := r.codecs.decode(r.encoded, r.decoded, bytes)
	if err != nil {
		return err
	}
	copySpan(chunk.intersect(r.span), r.dst, r.span, data, chunk, element)
	return nil
}

// grown returns a buffer of n bytes.
func grown(buffer []byte, n int) []byte {
	if cap(buffer) < n {
		return make([]byte, n)
	}
	return buffer[:n]
}
