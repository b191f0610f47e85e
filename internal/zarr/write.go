package zarr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/files"
)

var errForeign = errors.New("must be an array of shards with the index at the end, one level per shard")

// writable reports whether files can be added to the array.
func (a *Array) writable() bool { return a.sharded && !a.atStart && a.chunk[0] == 1 }

// missing is the offset and the length of a chunk that is not stored.
const missing = ^uint64(0)

// WriteShard writes a shard of a level, 0 without a time axis. It calls fill for one inner chunk after another, in C
// order, with the box of its points; fill sets dst to their values, x fastest, as the machine stores them. The values
// are in memory for one inner chunk only. A shard that exists is replaced. After an error it is as it was.
func (a *Array) WriteShard(level, shard int, fill func(dst []byte, box domain.Box) error) (File, error) {
	if shard < 0 || shard >= a.Shards() || level < 0 || !a.Series && level > 0 {
		return File{}, fmt.Errorf("zarr: write array %s: it has no shard %d of level %d", a.path, shard, level)
	}
	at := a.shardIndex(level, shard)
	file, err := a.writeShard(at, fill)
	if err != nil {
		return File{}, fmt.Errorf("zarr: write %s: %w", filepath.Join(a.path, a.name(at)), err)
	}
	return file, nil
}

func (a *Array) writeShard(at index, fill func([]byte, domain.Box) error) (File, error) {
	if !a.writable() {
		return File{}, errForeign
	}
	name := a.name(at)
	output, err := files.Create(filepath.Join(a.path, name))
	if err != nil {
		return File{}, err
	}
	w := &summed{output: output}
	err = a.writeChunks(w, at, fill)
	if err != nil {
		return File{}, errors.Join(err, output.Abort())
	}
	return File{name, w.size, w.sum}, output.Commit()
}

// coordinatesPerFile is the number of values in a file of WriteCoordinates.
const coordinatesPerFile = 4096

// WriteCoordinates writes numbers along an axis, such as "time" or "x", as an array of one dimension with that name.
// Programs such as xarray take it as the coordinates of the arrays next to it if it has the name of the axis. More
// values are added by writing all of them again: readers then see those before or all.
func WriteCoordinates(path, axis string, values []float64) error {
	a, err := New(path, Spec{Size: []int{len(values)}, Element: domain.Float64})
	if err != nil {
		return err
	}
	a.chunk[3], a.inner[3] = coordinatesPerFile, coordinatesPerFile // for any number of them
	a.describe([]string{axis})
	for shard := range a.Shards() {
		if _, err := a.WriteShard(0, shard, func(dst []byte, box domain.Box) error {
			_, err := binary.Encode(dst, binary.LittleEndian, values[box.Lo[0]:box.Hi[0]])
			return err
		}); err != nil {
			return err
		}
	}
	_, err = a.Commit()
	return err
}

// summed counts and sums what is written.
type summed struct {
	output *files.Output
	size   int64
	sum    uint32
}

func (w *summed) write(data []byte) error {
	n, err := w.output.Write(data)
	w.size += int64(n)
	w.sum = crc32.Update(w.sum, crc32.IEEETable, data)
	return err
}

func (a *Array) writeChunks(w *summed, at index, fill func([]byte, domain.Box) error) error {
	shard := cell(at, a.chunk)
	places := make([]byte, 0, shard.cells(a.inner).points()*16+crcBytes)
	element := a.Element.Size()
	size := span{hi: a.inner}.points() * element
	chunk, part := make([]byte, size, size+crcBytes), []byte(nil)
	var buffer []byte
	for i := range shard.cells(a.inner).all() {
		whole := cell(i, a.inner)
		stored := a.clip(whole)
		if stored.points() == 0 {
			places = binary.LittleEndian.AppendUint64(places, missing)
			places = binary.LittleEndian.AppendUint64(places, missing)
			continue
		}
		values := chunk
		if stored != whole {
			clear(chunk)
			if part == nil {
				part = make([]byte, size)
			}
			values = part[:stored.points()*element]
		}
		if err := fill(values, stored.box()); err != nil {
			return err
		}
		if stored != whole {
			copySpan(stored, chunk, whole, values, stored, element)
		}
		data, err := a.codecs.encode(chunk, buffer, a.Zstd)
		if err != nil {
			return err
		}
		if slices.Contains(a.codecs, zstdCodec) {
			buffer = data
		}
		places = binary.LittleEndian.AppendUint64(places, uint64(w.size))
		places = binary.LittleEndian.AppendUint64(places, uint64(len(data)))
		if err := w.write(data); err != nil {
			return err
		}
	}
	return w.write(binary.LittleEndian.AppendUint32(places, checksum(places)))
}
