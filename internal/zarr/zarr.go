// Package zarr stores arrays of a grid in a local folder, in the format Zarr version 3.
//
// An array is a folder with a file zarr.json and files of values, named c/2/0/1 after their position. The shape is in C
// order, so that the last axis is x and runs fastest: (nx,), (ny, nx) or (nz, ny, nx), with a time axis in front of it
// in a series. Functions of this package take sizes and boxes as the rest of halox does, x first.
//
// A file of values is a shard: a box of inner chunks, each of which is compressed (zstd) and checked (crc32c)
// separately, and an index of their places at the end. Arrays of up to 128 MiB have one shard, larger ones have shards
// of 64 to 128 MiB. Inner chunks have 1 to 2 MiB. Both depend on the size and the element only, so that any number of
// processes can write or read an array, each a different part of it.
//
// To write an array, all processes call [New] with the same arguments. Each calls [Array.WriteShard] for some of the
// shards, from as many goroutines as it likes. When all shards are on disk, one calls [Array.Commit], which writes
// zarr.json. A series continues with the shards of the next level and another Commit: until then, readers see the
// levels before it. Each file is written under a temporary name, synced and renamed.
//
// [Open] also reads arrays of other programs, with the same codecs or without sharding. Names, sizes and counts in a
// file are compared with limits and the sizes of files before memory is allocated.
package zarr

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/halox/halox/domain"
)

const (
	maxBytes  = 1 << 62 // of an array
	maxChunks = 1 << 22 // inner chunks of a shard

	chunkBytes = 2 << 20   // of inner chunks of new arrays, at most
	shardBytes = 128 << 20 // of shards of new arrays, at most, not compressed
)

// maxChunk is the size of the largest inner chunk that is read, in bytes, not compressed.
var maxChunk = 256 << 20

// A Spec describes an array.
type Spec struct {
	Size       []int           // points along x, y and z: one to three axes, each at least 1
	Element    domain.Element  // a number
	Series     bool            // whether a time axis precedes the others; default false
	Zstd       int             // level of compression, 1 (fast) to 22; default 0: not compressed
	Attributes json.RawMessage // a JSON object; default none

	// Largest sizes of inner chunks and of shards of a new array in bytes, not compressed; default 0: 2 and 128 MiB.
	Chunk, Shard int
}

// An Array is an array in a folder. Its methods may be called concurrently, while its fields do not change.
type Array struct {
	Spec
	Levels int  // length of the time axis; 1 without one
	Sparse bool // whether points that were never written have the fill value; default false: reading them is an error

	path      string
	metadata  metadata // as read, or of a new array; without what fields say
	chunk     index    // points of a shard
	inner     index    // points of an inner chunk
	sharded   bool     // whether files are shards; otherwise each is one chunk
	atStart   bool     // whether the index of a shard precedes its chunks
	codecs    codecs
	fill      []byte // one element
	separator string // between the numbers of a file name
}

// New returns an array at a folder, which need not exist. It reads and writes nothing. Shards that the folder already
// has are replaced one by one, so a new array belongs into a new folder.
func New(path string, spec Spec) (*Array, error) {
	return newArray(path, spec, cmp.Or(spec.Chunk, chunkBytes), cmp.Or(spec.Shard, shardBytes))
}

func newArray(path string, spec Spec, chunkBytes, shardBytes int) (*Array, error) {
	a := &Array{Spec: spec, Levels: 1, path: path, sharded: true, codecs: codecs{crcCodec}, separator: "/"}
	if a.Series {
		a.Levels = 0
	}
	if a.Zstd != 0 {
		a.codecs = codecs{zstdCodec, crcCodec}
	}
	if err := a.check(); err != nil {
		return nil, fmt.Errorf("zarr: new array %s: %w", path, err)
	}
	a.fill = make([]byte, a.Element.Size())
	shape := a.shape()
	shape[0] = 1
	a.inner = divide(shape, index{1, 1, 1, 1}, a.Element.Size(), chunkBytes)
	count := span{hi: shape}.cells(a.inner).hi
	count = divide(count, a.inner, a.Element.Size(), shardBytes)
	for i := range a.chunk {
		a.chunk[i] = count[i] * a.inner[i]
	}
	names := []string{"z", "y", "x"}[3-len(a.Size):]
	if a.Series {
		names = append([]string{timeName}, names...)
	}
	a.describe(names)
	return a, nil
}

// shape returns the points along each axis.
func (a *Array) shape() index {
	n := index{a.Levels, 1, 1, 1}
	for axis, points := range a.Size {
		n[3-axis] = points
	}
	return n
}

// axes returns the components of an index that the array has, in C order.
func (a *Array) axes(i index) []int {
	axes := i[4-len(a.Size):]
	if a.Series {
		return append([]int{i[0]}, axes...)
	}
	return slices.Clone(axes)
}

// check returns an error unless the description is one that can be stored.
func (a *Array) check() error {
	if !a.Element.IsNumber() {
		return fmt.Errorf("element: must be a number, got %q", a.Element)
	}
	if len(a.Size) < 1 || len(a.Size) > 3 {
		return fmt.Errorf("number of axes: must be between 1 and 3, got %d", len(a.Size))
	}
	bytes := max(a.Levels, 1) // of one level, too
	for _, n := range append([]int{a.Element.Size()}, a.Size...) {
		if n < 1 {
			return fmt.Errorf("size %v: every axis must have at least 1 point", a.Size)
		}
		if bytes > maxBytes/n {
			return fmt.Errorf("size %v: must have less than 2^62 bytes", a.Size)
		}
		bytes *= n
	}
	if a.Levels < 0 || !a.Series && a.Levels != 1 {
		return fmt.Errorf("levels: must be 1, or at least 0 in a series, got %d", a.Levels)
	}
	if a.Zstd < 0 || a.Zstd > 22 {
		return fmt.Errorf("zstd: must be between 0 and 22, got %d", a.Zstd)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(a.Attributes, &object); len(a.Attributes) > 0 && (err != nil || object == nil) {
		return errors.New("attributes: must be a JSON object")
	}
	if math.MaxInt < maxBytes || binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return errors.New("arrays need a little-endian machine with 64 bits")
	}
	return nil
}

// timeName is the name of the time axis.
const timeName = "time"

// describe sets the metadata of a new array with names of its axes.
func (a *Array) describe(names []string) {
	little := extension{bytesCodec, &config{Endian: "little"}}
	list, index := []extension{little}, []extension{little, {Name: crcCodec}}
	for _, name := range a.codecs {
		e := extension{Name: name}
		if name == zstdCodec {
			e.With = &config{Level: &a.Zstd, Checksum: new(bool)}
		}
		list = append(list, e)
	}
	a.metadata = metadata{
		Node: "array", DataType: string(a.Element),
		Grid:   &extension{"regular", &config{Chunk: a.axes(a.chunk)}},
		Keys:   &extension{"default", &config{Separator: a.separator}},
		Fill:   json.RawMessage("0"),
		Codecs: []extension{{shardCodec, &config{Chunk: a.axes(a.inner), Codecs: list, Index: index, Location: "end"}}},
	}
	if a.Element.IsComplex() {
		a.metadata.Fill = json.RawMessage("[0,0]")
	}
	for _, name := range names {
		a.metadata.Names = append(a.metadata.Names, &name)
	}
}

// Open reads the metadata of an array, and none of its values.
func Open(path string) (*Array, error) {
	m, err := readMetadata(path, "array")
	if err != nil {
		return nil, err
	}
	a, err := arrayOf(m, path)
	if err != nil {
		return nil, fmt.Errorf("zarr: read %s: %w", filepath.Join(path, metadataName), err)
	}
	return a, nil
}

// arrayOf returns the array that metadata describe.
func arrayOf(m metadata, path string) (*Array, error) {
	a := &Array{path: path, metadata: m, Levels: 1, separator: "/"}
	a.Element, a.Attributes = domain.Element(m.DataType), m.Attributes
	named := len(m.Names) > 0 && m.Names[0] != nil && *m.Names[0] == timeName
	a.Series = len(m.Shape) == 4 || named && len(m.Shape) > 1
	a.Size = slices.Clone(m.Shape)
	if a.Series {
		a.Levels, a.Size = a.Size[0], a.Size[1:]
	}
	slices.Reverse(a.Size)
	if err := a.check(); err != nil {
		return nil, err
	}
	if len(m.Transformers) > 0 {
		return nil, errors.New("storage_transformers: must be empty")
	}
	if m.Grid == nil || m.Grid.Name != "regular" {
		return nil, errors.New("chunk_grid: must be regular")
	}
	if m.Keys == nil || m.Keys.Name != "default" {
		return nil, errors.New("chunk_key_encoding: must be default")
	}
	if s := m.Keys.with().Separator; s != "" {
		a.separator = s
	}
	if a.separator != "/" && a.separator != "." {
		return nil, fmt.Errorf(`chunk_key_encoding: separator: must be "/" or ".", got %q`, a.separator)
	}
	if err := a.setChunks(m.Grid.with().Chunk, m.Codecs); err != nil {
		return nil, err
	}
	var err error
	if a.fill, err = fillOf(m.Fill, a.Element); err != nil {
		return nil, fmt.Errorf("fill_value: must be a value of %s, got %.40s", a.Element, m.Fill)
	}
	return a, nil
}

// setChunks sets the chunks and how they are encoded.
func (a *Array) setChunks(shape []int, list []extension) error {
	outer, err := a.index(shape)
	if err != nil {
		return err
	}
	a.chunk, a.inner = outer, outer
	if len(list) == 1 && list[0].Name == shardCodec {
		with := list[0].with()
		if a.inner, err = a.index(with.Chunk); err != nil {
			return err
		}
		chunks := 1
		for i, n := range a.inner {
			if outer[i]%n != 0 {
				return fmt.Errorf("%s: chunk_shape: %v must be multiples of %v", shardCodec, shape, with.Chunk)
			}
			if outer[i]/n > maxChunks/chunks {
				return fmt.Errorf("%s: a shard must have at most %d inner chunks", shardCodec, maxChunks)
			}
			chunks *= outer[i] / n
		}
		if names, _, err := codecNames(with.Index, 1); err != nil || !slices.Equal(names, []string{crcCodec}) {
			return fmt.Errorf("%s: index_codecs: must be %s and %s", shardCodec, bytesCodec, crcCodec)
		}
		switch with.Location {
		case "", "end":
		case "start":
			a.atStart = true
		default:
			return fmt.Errorf(`%s: index_location: must be "start" or "end", got %q`, shardCodec, with.Location)
		}
		a.sharded, list = true, with.Codecs
	}
	bytes := a.Element.Size()
	for _, n := range a.inner {
		if n > maxChunk/bytes {
			return fmt.Errorf("chunk_shape: a chunk must have at most %d bytes", maxChunk)
		}
		bytes *= n
	}
	a.codecs, a.Zstd, err = codecNames(list, a.Element.Size())
	return err
}

// index returns a shape of chunks.
func (a *Array) index(shape []int) (index, error) {
	if len(shape) != len(a.axes(index{})) {
		return index{}, fmt.Errorf("chunk_shape: must have %d axes, got %d", len(a.axes(index{})), len(shape))
	}
	i := index{1, 1, 1, 1}
	copy(i[4-len(a.Size):], shape[len(shape)-len(a.Size):])
	if a.Series {
		i[0] = shape[0]
	}
	for _, n := range i {
		if n < 1 {
			return index{}, fmt.Errorf("chunk_shape: must be at least 1 on each axis, got %v", shape)
		}
	}
	return i, nil
}

// Commit writes zarr.json, with the values that Levels and Attributes have then. Shards must have been written before
// it.
func (a *Array) Commit() (File, error) {
	if err := a.check(); err != nil {
		return File{}, fmt.Errorf("zarr: commit array %s: %w", a.path, err)
	}
	m := a.metadata
	m.Shape, m.Attributes = a.axes(a.shape()), a.Attributes
	return m.write(a.path)
}

// Check returns an error unless the array has a size, x first, and an element.
func (a *Array) Check(size []int, e domain.Element) error {
	var err error
	if !slices.Equal(a.Size, size) {
		err = fmt.Errorf("size: must be %s points, got %s", domain.Times(size), domain.Times(a.Size))
	} else if a.Element != e {
		err = fmt.Errorf("element: must be %s, got %s", e, a.Element)
	}
	if err != nil {
		return fmt.Errorf("zarr: array %s: %w", a.path, err)
	}
	return nil
}

// shards returns the positions of the shards of a level.
func (a *Array) shards() span {
	level := a.shape()
	level[0] = 1
	return span{hi: level}.cells(index{1, a.chunk[1], a.chunk[2], a.chunk[3]})
}

// Shards returns the number of shards of one level.
func (a *Array) Shards() int { return a.shards().points() }

// Shard returns the points of a shard of any level. Shards are numbered from 0 in C order and cover the grid, each
// point once.
func (a *Array) Shard(shard int) domain.Box {
	return a.clip(cell(a.shardIndex(0, shard), a.chunk)).box()
}

func (a *Array) shardIndex(level, shard int) index {
	n := a.shards().hi
	return index{level, shard / n[3] / n[2], shard / n[3] % n[2], shard % n[3]}
}

// clip returns the points of a span that the grid has, at any time.
func (a *Array) clip(s span) span {
	whole := a.shape()
	whole[0] = math.MaxInt
	return s.intersect(span{hi: whole})
}

// name returns the file of a shard or chunk within the folder of the array.
func (a *Array) name(i index) string {
	name := "c"
	for _, n := range a.axes(i) {
		name += a.separator + strconv.Itoa(n)
	}
	return name
}
