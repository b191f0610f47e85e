package zarr_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/zarr"
)

// random returns bytes of values with any bits, some of them zero.
func random(seed uint64, n int) []byte {
	source := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, n)
	for i := range data {
		if i/512%3 > 0 {
			data[i] = byte(source.Uint32())
		}
	}
	return data
}

// boxOf returns the grid of a size.
func boxOf(size []int) domain.Box {
	box := domain.Box{Hi: domain.Vec{1, 1, 1}}
	copy(box.Hi[:], size)
	return box
}

// part returns the values of a box of values in C order of a grid.
func part(values []byte, size []int, box domain.Box, element int) (data []byte) {
	n := boxOf(size).Hi
	for z := box.Lo[2]; z < box.Hi[2]; z++ {
		for y := box.Lo[1]; y < box.Hi[1]; y++ {
			row := (z*n[1] + y) * n[0]
			data = append(data, values[(row+box.Lo[0])*element:(row+box.Hi[0])*element]...)
		}
	}
	return data
}

// write writes values of a level in all shards, at the same time, and checks what WriteShard returns.
func write(t testing.TB, path string, a *zarr.Array, level int, values []byte) {
	t.Helper()
	var group errgroup.Group
	for shard := range a.Shards() {
		group.Go(func() error {
			file, err := a.WriteShard(level, shard, func(dst []byte, box domain.Box) error {
				if !a.Shard(shard).Covers(box) {
					return fmt.Errorf("box %v, not of shard %v", box, a.Shard(shard))
				}
				if n := copy(dst, part(values, a.Size, box, a.Element.Size())); n != len(dst) {
					return fmt.Errorf("box %v with room for %d bytes", box, len(dst))
				}
				return nil
			})
			if err == nil && file != describe(t, path, file.Name) {
				err = fmt.Errorf("%+v, want %+v", file, describe(t, path, file.Name))
			}
			return err
		})
	}
	test.Check(t, group.Wait())
}

// The polynomials of checksums.
const castagnoli, ieee = 0x82f63b78, 0xedb88320

// bitwise is a checksum by definition, of a reflected polynomial.
func bitwise(data []byte, polynomial uint32) uint32 {
	sum := ^uint32(0)
	for _, b := range data {
		sum ^= uint32(b)
		for range 8 {
			sum = sum>>1 ^ polynomial&-(sum&1)
		}
	}
	return ^sum
}

func describe(t testing.TB, path, name string) zarr.File {
	data := test.Must(os.ReadFile(filepath.Join(path, name)))(t)
	return zarr.File{Name: name, Size: int64(len(data)), CRC32: bitwise(data, ieee)}
}

// checkRead reads all of a level and some boxes.
func checkRead(t *testing.T, a *zarr.Array, level int, values []byte) {
	t.Helper()
	source := rand.New(rand.NewPCG(uint64(level), 2))
	for n := range 8 {
		box := boxOf(a.Size)
		for axis := range box.Hi {
			if n > 0 {
				box.Lo[axis] = source.IntN(box.Hi[axis])
				box.Hi[axis] = box.Lo[axis] + 1 + source.IntN(box.Hi[axis]-box.Lo[axis])
			}
		}
		want := part(values, a.Size, box, a.Element.Size())
		got := make([]byte, len(want))
		test.Check(t, a.Read(got, level, box))
		if !bytes.Equal(got, want) {
			t.Fatalf("level %d, box %v has other values", level, box)
		}
	}
}

type arrayCase struct {
	name   string
	spec   zarr.Spec
	levels int
}

// arrayCases are arrays of all forms and elements.
func arrayCases() (all []arrayCase) {
	elements := []domain.Element{
		domain.Float32, domain.Float64, domain.Int32, domain.Int64, domain.Complex64, domain.Uint8,
	}
	n := 0
	sizes := [][]int{{1}, {97}, {1, 1}, {40, 30}, {1, 53}, {17, 19, 23}, {1, 1, 1}, {64, 32, 16}, {130, 2, 3}}
	for _, size := range sizes {
		for _, e := range elements {
			for _, level := range []int{0, 1, 9} {
				for _, levels := range []int{1, 3} {
					if n++; n%7 != 0 && (size[0] != 17 || n%2 != 0) {
						continue
					}
					name := fmt.Sprintf("%s-%s-%d-%d", domain.Times(size), e, level, levels)
					spec := zarr.Spec{Size: size, Element: e, Series: levels > 1, Zstd: level}
					all = append(all, arrayCase{name, spec, levels})
				}
			}
		}
	}
	return all
}

// values returns those of all levels.
func (c arrayCase) values() (levels [][]byte) {
	for level := range c.levels {
		levels = append(levels, random(uint64(level)+3, int(boxOf(c.spec.Size).Points())*c.spec.Element.Size()))
	}
	return levels
}

// write writes the array in shards of at most 8 KiB and chunks of at most 1 KiB.
func (c arrayCase) write(t testing.TB, path string) {
	a := test.Must(zarr.NewOf(path, c.spec, 1<<10, 8<<10))(t)
	for level, values := range c.values() {
		write(t, path, a, level, values)
		a.Levels = level + 1
		file := test.Must(a.Commit())(t)
		if want := describe(t, path, "zarr.json"); file != want {
			t.Errorf("Commit: %+v, want %+v", file, want)
		}
	}
}

func TestArraysReadAsWritten(t *testing.T) {
	for _, c := range arrayCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a")
			c.write(t, path)
			a := test.Must(zarr.Open(path))(t)
			test.Check(t, a.Check(c.spec.Size, c.spec.Element))
			if a.Levels != c.levels || a.Series != c.spec.Series || a.Zstd != c.spec.Zstd {
				t.Errorf("%+v", a)
			}
			for level, values := range c.values() {
				checkRead(t, a, level, values)
			}
			if c.spec.Series { // it continues
				write(t, path, a, c.levels, c.values()[0])
				a.Levels++
				test.Must(a.Commit())(t)
				checkRead(t, test.Must(zarr.Open(path))(t), c.levels, c.values()[0])
			}
		})
	}
}

// Package zarr of Python reads what is written here, and the other way round: also arrays without shards, with indices
// at the start, checksums before compression, and other separators.
func TestArraysOfPython(t *testing.T) {
	testdevices.InTurn(t, 3, 4)
	const script = `
import json, sys, numpy as np, zarr
from zarr.codecs import ShardingCodec, BytesCodec, ZstdCodec, Crc32cCodec
for n, c in enumerate(json.load(open(sys.argv[1]))):
    want = np.fromfile(c["raw"], dtype=c["element"]).reshape(c["shape"])
    a = zarr.open_array(c["ours"], mode="r")
    assert a.shape == want.shape and a.dtype == want.dtype, (c, a.shape, a.dtype)
    assert a[...].tobytes() == want.tobytes(), c
    cut = tuple(slice(s // 3, s // 2 + 1) for s in a.shape)
    assert a[cut].tobytes() == want[cut].tobytes(), c
    series = c["series"]
    names = tuple(["time"] * series + ["z", "y", "x"][-(a.ndim - series):])
    assert a.metadata.dimension_names == names, a.metadata
    inner = [1 + n % 2] * series + [min(s, 8 + n % 4) for s in a.shape[series:]]
    after = [[], [Crc32cCodec()], [ZstdCodec(level=3)], [ZstdCodec(level=-2), Crc32cCodec()],
        [Crc32cCodec(), ZstdCodec(level=19, checksum=True)]][n % 5]
    if n % 7 == 0:
        chunks, codecs = inner, [BytesCodec(), *after]
    else:
        chunks = [i * (1 + n % 3) for i in inner]
        codecs = [ShardingCodec(chunk_shape=inner, codecs=[BytesCodec(), *after],
            index_location=["end", "start"][n % 2])]
    b = zarr.create(store=c["theirs"], shape=want.shape, chunks=chunks, dtype=want.dtype, codecs=codecs, zarr_format=3,
        fill_value=0, dimension_names=names, chunk_key_encoding=("default", "/."[n % 2]),
        attributes={"n": n})
    b[...] = want
g = zarr.open_group(sys.argv[2], mode="r")
assert dict(g.attrs) == {"step": 12, "units": {"t": "s"}} and sorted(g.array_keys()) == ["time", "u"], dict(g.attrs)
assert (zarr.open_array(sys.argv[2] + "/time")[...] == np.arange(5000) * 0.1).all()
assert g["time"].metadata.dimension_names == ("time",)
assert g["u"].attrs["name"] == "u" and g["u"][...].sum() == 0
zarr.open_group(sys.argv[3], mode="w", zarr_format=3, attributes={"from": "Python"})
`
	dir := t.TempDir()
	var list []map[string]any
	cases := arrayCases()
	for n, c := range cases {
		at := func(name string) string { return filepath.Join(dir, fmt.Sprint(name, n)) }
		c.write(t, at("ours"))
		shape := slices.Clone(c.spec.Size)
		slices.Reverse(shape)
		series := 0
		if c.spec.Series {
			shape, series = append([]int{c.levels}, shape...), 1
		}
		test.Check(t, os.WriteFile(at("raw"), slices.Concat(c.values()...), 0o644))
		list = append(list, map[string]any{"ours": at("ours"), "theirs": at("theirs"), "raw": at("raw"),
			"element": c.spec.Element, "shape": shape, "series": series})
	}
	names := filepath.Join(dir, "cases.json")
	test.Check(t, os.WriteFile(names, test.Must(json.Marshal(list))(t), 0o644))
	group := filepath.Join(dir, "group")
	test.Must(zarr.WriteGroup(group, json.RawMessage(`{"step": 12, "units": {"t": "s"}}`)))(t)
	u := test.Must(zarr.New(filepath.Join(group, "u"), zarr.Spec{
		Size: []int{3}, Element: domain.Float64, Series: true, Attributes: json.RawMessage(`{"name": "u"}`)}))(t)
	test.Must(u.Commit())(t) // no levels yet
	times := make([]float64, 5000)
	for i := range times {
		times[i] = float64(i) * 0.1
	}
	for _, n := range []int{1, 5000} {
		test.Check(t, zarr.WriteCoordinates(filepath.Join(group, "time"), "time", times[:n]))
	}

	test.Python(t, "zarr", script, names, group, filepath.Join(dir, "theirgroup"))

	for n, c := range cases {
		a := test.Must(zarr.Open(filepath.Join(dir, fmt.Sprint("theirs", n))))(t)
		test.Check(t, a.Check(c.spec.Size, c.spec.Element))
		if a.Levels != c.levels || string(bytes.Join(bytes.Fields(a.Attributes), nil)) != fmt.Sprintf(`{"n":%d}`, n) {
			t.Errorf("%s: levels %d, attributes %s", c.name, a.Levels, a.Attributes)
		}
		a.Sparse = true // chunks of zeros are not stored
		for level, values := range c.values() {
			checkRead(t, a, level, values)
		}
	}
	attributes := test.Must(zarr.ReadGroup(filepath.Join(dir, "theirgroup")))(t)
	if !strings.Contains(string(attributes), "Python") {
		t.Errorf("attributes: %s", attributes)
	}
}

// Shards have 64 to 128 MiB, inner chunks 1 to 2 MiB, or the array has one. They waste little and cover the grid.
func TestLayout(t *testing.T) {
	for _, c := range []struct {
		size    []int
		element domain.Element
		shards  int
	}{
		{[]int{1}, domain.Float64, 1},
		{[]int{1 << 20}, domain.Float64, 1},
		{[]int{1<<24 + 1}, domain.Float64, 2},
		{[]int{3000, 3000}, domain.Float64, 1},
		{[]int{130, 130, 130}, domain.Float64, 1},
		{[]int{256, 256, 256}, domain.Float64, 1},
		{[]int{512, 512, 512}, domain.Float64, 8},
		{[]int{1000, 1000, 1000}, domain.Float32, 32},
		{[]int{4097, 5, 4099}, domain.Float64, 8},
		{[]int{3, 1 << 30}, domain.Complex128, 512},
		{[]int{4096, 4096, 4096}, domain.Float64, 4096},
	} {
		t.Run(domain.Times(c.size), func(t *testing.T) {
			path := t.TempDir()
			a := test.Must(zarr.New(path, zarr.Spec{Size: c.size, Element: c.element}))(t)
			test.Must(a.Commit())(t)
			var m struct {
				Grid   struct{ Configuration struct{ Chunk_shape []int } } `json:"chunk_grid"`
				Codecs []struct{ Configuration struct{ Chunk_shape []int } }
			}
			test.Check(t, json.Unmarshal(test.Must(os.ReadFile(filepath.Join(path, "zarr.json")))(t), &m))
			bytes := func(shape []int) (n int) {
				n = c.element.Size()
				for _, k := range shape {
					n *= k
				}
				return n
			}
			chunk := m.Codecs[0].Configuration.Chunk_shape
			shard := m.Grid.Configuration.Chunk_shape
			if n := bytes(chunk); n > 2<<20 || n <= 1<<20 && n != bytes(c.size) {
				t.Errorf("chunks %v of %d bytes", chunk, n)
			}
			if n := bytes(shard); n > 128<<20 || n < 64<<20 && a.Shards() > 1 {
				t.Errorf("shards %v of %d bytes", shard, n)
			}
			padded := c.element.Size()
			for axis, n := range chunk {
				padded *= (c.size[len(c.size)-1-axis] + n - 1) / n * n
			}
			if float64(padded) > 1.1*float64(bytes(c.size)) {
				t.Errorf("chunks %v: %d bytes for %d", chunk, padded, bytes(c.size))
			}
			points, last := int64(0), domain.Box{}
			for i := range a.Shards() {
				points, last = points+a.Shard(i).Points(), a.Shard(i)
			}
			if points != boxOf(c.size).Points() || last.Hi != boxOf(c.size).Hi || a.Shards() != c.shards {
				t.Errorf("%d shards have %d points and end at %v", a.Shards(), points, last.Hi)
			}
		})
	}
}

func TestValues(t *testing.T) {
	path := t.TempDir()
	a := test.Must(zarr.New(path, zarr.Spec{Size: []int{2, 3}, Element: domain.Int32}))(t)
	values := make([]byte, 24)
	for i := range 6 {
		values[4*i] = byte(i)
	}
	values[3] = 0x80
	write(t, path, a, 0, values)
	got := make([]int32, 2)
	test.Check(t, zarr.ReadValues(a, got, 0, domain.Box{Lo: domain.Vec{0, 0, 0}, Hi: domain.Vec{1, 2, 1}}))
	if got[0] != -1<<31 || got[1] != 2 {
		t.Errorf("%v", got)
	}
	test.Says(t, zarr.ReadValues(a, make([]float32, 6), 0, boxOf(a.Size)), "element: must be float32, got int32")
}

// small is an array of 2 x 3 shards of 2 x 2 chunks of 3 x 2 values.
func small(t testing.TB, path string, level int) (a *zarr.Array, values []byte) {
	a = test.Must(zarr.NewOf(path, zarr.Spec{Size: []int{11, 12}, Element: domain.Float64, Zstd: level}, 80, 320))(t)
	values = random(7, 11*12*8)
	write(t, path, a, 0, values)
	test.Must(a.Commit())(t)
	return test.Must(zarr.Open(path))(t), values
}

// Every byte of a shard counts: an error names the file when one is changed, or the end is missing.
func TestDamageIsFound(t *testing.T) {
	for _, level := range []int{0, 3} {
		path := t.TempDir()
		a, values := small(t, path, level)
		if a.Shards() != 6 {
			t.Fatalf("%d shards", a.Shards())
		}
		name := filepath.Join(path, "c", "0", "1")
		data := test.Must(os.ReadFile(name))(t)
		got := make([]byte, len(values))
		check := func(what string, damaged []byte, says string) {
			t.Helper()
			test.Check(t, os.WriteFile(name, damaged, 0o644))
			err := a.Read(got, 0, boxOf(a.Size))
			if err == nil || !strings.Contains(err.Error(), name+": ") || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for i := range data {
			damaged := bytes.Clone(data)
			damaged[i] ^= 0x10
			check(fmt.Sprintf("byte %d changed", i), damaged, "crc32c: must be")
			check(fmt.Sprintf("cut to %d bytes", i), data[:i], "index: ")
		}
		index := data[len(data)-4*16-4:]
		for _, c := range []struct {
			name string
			at   int
			to   byte
			says string
		}{
			{"offset", 7, 1, "chunk [0 2]: must end within the file of"},
			{"negative", 15, 0xff, "chunk [0 2]: must end within"},
			{"length", 8, 0, "chunk [0 2]: "},
			{"missing", -1, 0xff, "chunk [0 2]: it is missing"},
		} {
			damaged := bytes.Clone(data)
			entry := damaged[len(data)-len(index):]
			if c.at >= 0 {
				entry[c.at] = c.to
			} else {
				copy(entry, bytes.Repeat([]byte{c.to}, 16))
			}
			sum := bitwise(entry[:4*16], castagnoli)
			copy(entry[4*16:], []byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24)})
			check(c.name, damaged, c.says)
		}
		test.Check(t, os.Remove(name))
		test.Says(t, a.Read(got, 0, boxOf(a.Size)), name+": the file is missing")
		test.Check(t, os.Mkdir(name, 0o755))
		test.Says(t, a.Read(got, 0, boxOf(a.Size)), "it is a folder")
		test.Check(t, a.Read(got[:8], 0, domain.Box{Hi: domain.Vec{1, 1, 1}})) // of another shard
	}
}

// Points that were never written are an error or, in a sparse array, have the fill value.
func TestFillValues(t *testing.T) {
	for _, c := range []struct {
		element domain.Element
		text    string
		want    []byte // one value
	}{
		{domain.Float64, `0.5`, []byte{0, 0, 0, 0, 0, 0, 0xe0, 0x3f}},
		{domain.Float64, `"-Infinity"`, []byte{0, 0, 0, 0, 0, 0, 0xf0, 0xff}},
		{domain.Float32, `"0x7fc00001"`, []byte{1, 0, 0xc0, 0x7f}},
		{domain.Float32, `-2`, []byte{0, 0, 0, 0xc0}},
		{domain.Complex64, `[1, -2]`, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}},
		{domain.Int16, `-2`, []byte{0xfe, 0xff}},
		{domain.Int64, `9007199254740993`, []byte{1, 0, 0, 0, 0, 0, 0x20, 0}},
		{domain.Uint64, `18446744073709551615`, bytes.Repeat([]byte{0xff}, 8)},
		{domain.Uint8, `256`, nil},
		{domain.Int32, `1.5`, nil},
		{domain.Float32, `1e99`, nil},
		{domain.Complex64, `[1]`, nil},
		{domain.Float64, `"zero"`, nil},
	} {
		path := t.TempDir()
		a := test.Must(zarr.New(path, zarr.Spec{Size: []int{3, 2}, Element: c.element}))(t)
		test.Must(a.Commit())(t)
		name := filepath.Join(path, "zarr.json")
		text := regexp.MustCompile(`(?s)"fill_value": .*"codecs": \[.*"sharding`).ReplaceAll(
			test.Must(os.ReadFile(name))(t), []byte(`"fill_value": `+c.text+`, "codecs": [{"name": "sharding`))
		test.Check(t, os.WriteFile(name, text, 0o644))
		a, err := zarr.Open(path)
		if c.want == nil {
			test.Says(t, err, "fill_value: must be a value of "+string(c.element)+", got "+c.text)
			continue
		}
		test.Check(t, err)
		got := make([]byte, 4*c.element.Size())
		box := domain.Box{Lo: domain.Vec{1, 0, 0}, Hi: domain.Vec{3, 2, 1}}
		test.Says(t, a.Read(got, 0, box), "the file is missing")
		a.Sparse = true
		test.Check(t, a.Read(got, 0, box))
		if !bytes.Equal(got, bytes.Repeat(c.want, 4)) {
			t.Errorf("%s: % x", c.text, got)
		}
	}
}

// A write that fails, or a process that ends, leaves the old shard.
func TestFailedWrite(t *testing.T) {
	path := t.TempDir()
	a, values := small(t, path, 1)
	n := 0
	_, err := a.WriteShard(0, 0, func(dst []byte, _ domain.Box) error {
		if n++; n == 3 {
			return errors.New("the device is lost")
		}
		return nil
	})
	test.Says(t, err, filepath.Join(path, "c", "0", "0")+": the device is lost")
	checkRead(t, a, 0, values)
	if entries := test.Must(os.ReadDir(filepath.Join(path, "c", "0")))(t); len(entries) != 2 {
		t.Errorf("files: %v", entries)
	}
}

func TestBadCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	good := zarr.Spec{Size: []int{4, 5}, Element: domain.Float32}
	for _, c := range []struct {
		change func(*zarr.Spec)
		says   string
	}{
		{func(s *zarr.Spec) { s.Size = nil }, "number of axes: must be between 1 and 3, got 0"},
		{func(s *zarr.Spec) { s.Size = []int{4, 0} }, "size [4 0]: every axis must have at least 1 point"},
		{func(s *zarr.Spec) { s.Size = []int{1 << 40, 1 << 30} }, "must have less than 2^62 bytes"},
		{func(s *zarr.Spec) { s.Element = "8 bytes" }, `element: must be a number, got "8 bytes"`},
		{func(s *zarr.Spec) { s.Zstd = 23 }, "zstd: must be between 0 and 22, got 23"},
		{func(s *zarr.Spec) { s.Attributes = json.RawMessage("[1]") }, "attributes: must be a JSON object"},
	} {
		spec := good
		c.change(&spec)
		err := test.ErrorOf(zarr.New(path, spec))
		test.Says(t, err, path+": ")
		test.Says(t, err, c.says)
	}
	a := test.Must(zarr.New(path, good))(t)
	fill := func([]byte, domain.Box) error { return nil }
	for _, at := range [][2]int{{0, 1}, {0, -1}, {1, 0}, {-1, 0}} {
		test.Says(t, test.ErrorOf(a.WriteShard(at[0], at[1], fill)), "it has no shard")
	}
	test.Says(t, a.Check([]int{5, 4}, domain.Float32), path+": size: must be 5 x 4 points, got 4 x 5")
	test.Says(t, a.Check([]int{4, 5}, domain.Float64), path+": element: must be float64, got float32")
	test.Says(t, a.Read(nil, 1, boxOf(a.Size)), "level: must be between 0 and 0, got 1")
	test.Says(t, a.Read(nil, 0, domain.Box{}), "box: must have points of the grid of 4 x 5")
	test.Says(t, a.Read(nil, 0, boxOf([]int{4, 6})), "box: must have points of the grid of 4 x 5")
	test.Says(t, a.Read(nil, 0, boxOf(a.Size)), "has 80 bytes, got room for 0")
	test.Is(t, test.ErrorOf(zarr.Open(path)), os.ErrNotExist)
	test.Must(zarr.WriteGroup(path, nil))(t)
	test.Says(t, test.ErrorOf(zarr.Open(path)), `zarr.json: node_type: must be "array", got "group"`)
}

// Metadata that cannot be read is an error that names the file and the entry.
func TestBadMetadata(t *testing.T) {
	path := t.TempDir()
	small(t, path, 3)
	name := filepath.Join(path, "zarr.json")
	text := string(test.Must(os.ReadFile(name))(t))
	text = strings.Join(strings.Fields(text), " ")
	for _, c := range []struct{ from, to, says string }{
		{`"zarr_format": 3`, `"zarr_format": 2`, "zarr_format: must be 3, got 2"},
		{`{`, ``, "invalid character"},
		{`[ 12, 11 ]`, `[ 12, 1e30 ]`, "cannot unmarshal number 1e30"},
		{`[ 12, 11 ]`, `[ 12, -11 ]`, "every axis must have at least 1 point"},
		{`[ 12, 11 ]`, `[ 4611686018427387904, 4611686018427387904 ]`, "must have less than 2^62 bytes"},
		{`[ 12, 11 ]`, `[ 1, 2, 3, 4, 5 ]`, "number of axes: must be between 1 and 3, got 5"},
		{`[ 12, 11 ]`, `[]`, "number of axes: must be between 1 and 3, got 0"},
		{`"float64"`, `"bfloat16"`, `element: must be a number, got "bfloat16"`},
		{`"regular"`, `"rectangular"`, "chunk_grid: must be regular"},
		{`"chunk_shape": [ 4, 6 ]`, `"chunk_shape": [ 6 ]`, "chunk_shape: must have 2 axes, got 1"},
		{`"chunk_shape": [ 4, 6 ]`, `"chunk_shape": [ 4, 0 ]`, "must be at least 1 on each axis, got [4 0]"},
		{`"chunk_shape": [ 4, 6 ]`, `"chunk_shape": [ 4, 7 ]`, "chunk_shape: [4 7] must be multiples of [2 3]"},
		{`"chunk_shape": [ 4, 6 ]`, `"chunk_shape": [ 9000, 9000 ]`, "a shard must have at most 4194304 inner chunks"},
		{`"sharding_indexed"`, `"bytes"`, `codecs: bytes: endian: must be "little", got ""`},
		{`"chunk_shape": [ 2, 3 ]`, `"chunk_shape": []`, "chunk_shape: must have 2 axes, got 0"},
		{`"chunk_shape": [ 4, 6 ]`, `"chunk_shape": [ 2, 3000000000000000000 ]`, "inner chunks"},
		{`"endian": "little"`, `"endian": "big"`, `endian: must be "little", got "big"`},
		{`"zstd"`, `"blosc"`, `codecs: must be sharding_indexed, zstd or crc32c, got "blosc"`},
		{`"zstd"`, `"crc32c"`, "codecs: must have crc32c once"},
		{`"index_codecs": [`, `"index_codecs": [], "x": [`, "index_codecs: must be bytes and crc32c"},
		{`"end"`, `"middle"`, `index_location: must be "start" or "end", got "middle"`},
		{`"default"`, `"v2"`, "chunk_key_encoding: must be default"},
		{`"separator": "/"`, `"separator": "/../"`, `separator: must be "/" or ".", got "/../"`},
		{`"fill_value": 0`, `"fill_value": true`, "fill_value: must be a value of float64, got true"},
		{`"codecs"`, `"storage_transformers": [{}], "codecs"`, "storage_transformers: must be empty"},
	} {
		changed := strings.Replace(text, c.from, c.to, 1)
		if changed == text {
			t.Errorf("%s is not in %s", c.from, text)
		}
		test.Check(t, os.WriteFile(name, []byte(changed), 0o644))
		err := test.ErrorOf(zarr.Open(path))
		test.Says(t, err, name+": ")
		test.Says(t, err, c.says)
	}
	large := strings.NewReplacer("[ 4, 6 ]", "[ 4, 60000000 ]", "[ 2, 3 ]", "[ 2, 60000000 ]").Replace(text)
	test.Check(t, os.WriteFile(name, []byte(large), 0o644))
	test.Says(t, test.ErrorOf(zarr.Open(path)), "chunk_shape: a chunk must have at most 268435456 bytes")
}

// hostile returns a text with other numbers in place of some, one or two at a time.
func hostile(text []byte) (all [][]byte) {
	numbers := regexp.MustCompile(`\b\d+\b`).FindAllIndex(text, -1)
	source := rand.New(rand.NewPCG(1, 2))
	others := []string{"0", "1", "2", "5", "-1", "65536", "2097152", "2147483648", "4611686018427387904", "9223372036854775807"}
	replaced := func(text []byte, i int, other string) []byte {
		return slices.Concat(text[:numbers[i][0]], []byte(other), text[numbers[i][1]:])
	}
	for i := range numbers {
		for _, other := range others {
			all = append(all, replaced(text, i, other))
			if j := source.IntN(len(numbers)); j < i {
				all = append(all, replaced(all[len(all)-1], j, others[source.IntN(len(others))]))
			}
		}
	}
	return all
}

// Whatever the files of an array hold, reading it returns values or an error, and takes memory for a file, a chunk and
// what is read.
func FuzzArray(f *testing.F) {
	f.Cleanup(zarr.SetMaxChunk(1 << 20))
	path := f.TempDir()
	const index = 4*16 + 4
	for level := range 2 {
		a, values := small(f, path, level)
		test.Check(f, a.Read(values, 0, boxOf(a.Size))) // it makes the decoder
		shard := test.Must(os.ReadFile(filepath.Join(path, "c", "0", "0")))(f)
		text := test.Must(os.ReadFile(filepath.Join(path, "zarr.json")))(f)
		start := bytes.Replace(text, []byte(`"end"`), []byte(`"start"`), 1)
		f.Add(start, slices.Concat(shard[len(shard)-index:], shard[:len(shard)-index]), false)
		for _, text := range append(hostile(text), text) {
			f.Add(text, shard, false)
		}
		for i := range 16 { // offsets and lengths of the index
			changed := bytes.Clone(shard)
			changed[len(shard)-index+i] ^= 0x81
			f.Add(text, changed, true)
		}
	}
	f.Add([]byte(`{"zarr_format": 3, "node_type": "array", "shape": [9, 9], "data_type": "uint8", "fill_value": 1,
		"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5, 1000]}}, "codecs": [
		{"name": "bytes"}, {"name": "zstd", "configuration": {"level": 1}}], "chunk_key_encoding": {"name": "default"}}`),
		[]byte("(\xb5/\xfd\xa0\xff\xff\xff\x7f\x02\x00\x00\x08\x03\xfe\xff\x7f"), false) // zstd of 2 GiB
	f.Fuzz(func(t *testing.T, text, shard []byte, sum bool) {
		if n := len(shard) - 4; sum && n >= index {
			shard = binary.LittleEndian.AppendUint32(bytes.Clone(shard[:n]), bitwise(shard[n+4-index:n], castagnoli))
		}
		path := t.TempDir()
		test.Check(t, os.MkdirAll(filepath.Join(path, "c", "0"), 0o755))
		for _, name := range []string{"c/0/0", "c/0/1", "c.0", "c.0.0", "c.0.0.0"} {
			test.Check(t, os.WriteFile(filepath.Join(path, name), shard, 0o644))
		}
		test.Check(t, os.WriteFile(filepath.Join(path, "zarr.json"), text, 0o644))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a, err := zarr.Open(path)
		if err == nil {
			box := boxOf(a.Size)
			for axis := range box.Hi {
				box.Hi[axis] = min(box.Hi[axis], 32)
			}
			a.Sparse = len(shard)%2 > 0
			_ = a.Read(make([]byte, int(box.Points())*a.Element.Size()), max(a.Levels, 1)-1, box)
			_ = a.Shard(a.Shards() - 1)
		}
		runtime.ReadMemStats(&after)
		// The metadata is decoded more than once, buffers are for one chunk.
		limit := 8<<20 + 100*uint64(len(text)) + 4*uint64(len(shard))
		if taken := after.TotalAlloc - before.TotalAlloc; taken > limit {
			t.Errorf("%d bytes of memory for files of %d and %d: %s", taken, len(text), len(shard), text)
		}
	})
}
