package zarr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/files"
)

const (
	metadataName = "zarr.json"
	maxMetadata  = 64 << 20 // bytes of it
)

// metadata is a zarr.json.
type metadata struct {
	Format       int               `json:"zarr_format"`
	Node         string            `json:"node_type"`
	Shape        []int             `json:"shape,omitempty"`
	DataType     string            `json:"data_type,omitempty"`
	Grid         *extension        `json:"chunk_grid,omitempty"`
	Keys         *extension        `json:"chunk_key_encoding,omitempty"`
	Fill         json.RawMessage   `json:"fill_value,omitempty"`
	Codecs       []extension       `json:"codecs,omitempty"`
	Attributes   json.RawMessage   `json:"attributes,omitempty"`
	Names        []*string         `json:"dimension_names,omitempty"`
	Transformers []json.RawMessage `json:"storage_transformers,omitempty"`
}

// extension is a named part of the metadata.
type extension struct {
	Name string  `json:"name"`
	With *config `json:"configuration,omitempty"`
}

// config has the settings of all extensions.
type config struct {
	Chunk     []int       `json:"chunk_shape,omitempty"`
	Separator string      `json:"separator,omitempty"`
	Endian    string      `json:"endian,omitempty"`
	Level     *int        `json:"level,omitempty"`
	Checksum  *bool       `json:"checksum,omitempty"`
	Codecs    []extension `json:"codecs,omitempty"`
	Index     []extension `json:"index_codecs,omitempty"`
	Location  string      `json:"index_location,omitempty"`
}

// with returns the settings, also where there are none.
func (e *extension) with() config {
	if e == nil || e.With == nil {
		return config{}
	}
	return *e.With
}

// A File is a file that was written.
type File struct {
	Name  string `json:"name"`  // path within the folder of the array or group, with slashes
	Size  int64  `json:"size"`  // bytes
	CRC32 uint32 `json:"crc32"` // checksum of the content, by IEEE: a CRC32C of chunks that end with theirs is constant
}

// WriteGroup makes a folder a group: a folder of arrays and groups, with attributes, a JSON object or nil.
func WriteGroup(path string, attributes json.RawMessage) (File, error) {
	return metadata{Node: "group", Attributes: attributes}.write(path)
}

func (m metadata) write(path string) (File, error) {
	m.Format = 3
	name := filepath.Join(path, metadataName)
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil && len(text) > maxMetadata {
		err = fmt.Errorf("must have at most %d bytes, got %d", maxMetadata, len(text))
	}
	if err == nil {
		err = files.Write(name, text)
	}
	if err != nil {
		return File{}, fmt.Errorf("zarr: write %s: %w", name, err)
	}
	return File{metadataName, int64(len(text)), crc32.ChecksumIEEE(text)}, nil
}

// ReadGroup returns the attributes of a group, a JSON object or nil.
func ReadGroup(path string) (attributes json.RawMessage, err error) {
	m, err := readMetadata(path, "group")
	return m.Attributes, err
}

func readMetadata(path, node string) (metadata, error) {
	path = filepath.Join(path, metadataName)
	var m metadata
	text, err := files.Read(path, maxMetadata)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	switch {
	case err != nil:
	case m.Format != 3:
		err = fmt.Errorf("zarr_format: must be 3, got %d", m.Format)
	case m.Node != node:
		err = fmt.Errorf("node_type: must be %q, got %q", node, m.Node)
	case bytes.Equal(m.Attributes, []byte("null")):
		m.Attributes = nil
	}
	if err != nil {
		return m, fmt.Errorf("zarr: read %s: %w", path, err)
	}
	return m, nil
}

// codecNames returns the codecs that follow the codec of values, and the level of zstd.
func codecNames(list []extension, element int) (names []string, level int, err error) {
	if len(list) == 0 || list[0].Name != bytesCodec {
		return nil, 0, fmt.Errorf("codecs: the first must be %s or %s", bytesCodec, shardCodec)
	}
	if e := list[0].with().Endian; e != "little" && (e != "" || element > 1) {
		return nil, 0, fmt.Errorf(`codecs: %s: endian: must be "little", got %q`, bytesCodec, e)
	}
	for _, c := range list[1:] {
		switch {
		case slices.Contains(names, c.Name):
			return nil, 0, fmt.Errorf("codecs: must have %s once", c.Name)
		case c.Name == zstdCodec:
			if l := c.with().Level; l != nil {
				level = min(max(*l, 1), 22) // Zstandard has levels below 1
			}
		case c.Name != crcCodec:
			return nil, 0, fmt.Errorf("codecs: must be %s, %s or %s, got %q", shardCodec, zstdCodec, crcCodec, c.Name)
		}
		names = append(names, c.Name)
	}
	return names, level, nil
}

// fillOf returns the bytes of a fill value.
func fillOf(text json.RawMessage, e domain.Element) ([]byte, error) {
	var parts []json.RawMessage
	if e.IsComplex() {
		if err := json.Unmarshal(text, &parts); err != nil || len(parts) != 2 {
			return nil, errors.New("two numbers")
		}
	} else {
		parts = []json.RawMessage{text}
	}
	var fill []byte
	for _, part := range parts {
		value, err := scalarOf(strings.Trim(string(part), `"`), e.Scalar())
		if err != nil {
			return nil, err
		}
		fill = append(fill, value...)
	}
	return fill, nil
}

// scalarOf returns the bytes of a number: of decimal digits, Infinity, NaN, or of its bits, such as 0x7fc00000.
func scalarOf(text string, e domain.Element) ([]byte, error) {
	bits, size := uint64(0), 8*e.Size()
	var err error
	switch hex, isHex := strings.CutPrefix(text, "0x"); {
	case isHex && e.IsReal():
		bits, err = strconv.ParseUint(hex, 16, size)
	case e.IsReal():
		var v float64
		v, err = strconv.ParseFloat(text, size)
		if bits = math.Float64bits(v); e == domain.Float32 {
			bits = uint64(math.Float32bits(float32(v)))
		}
	case strings.HasPrefix(string(e), "u"):
		bits, err = strconv.ParseUint(text, 10, size)
	default:
		var v int64
		v, err = strconv.ParseInt(text, 10, size)
		bits = uint64(v)
	}
	if err != nil {
		return nil, err
	}
	value := make([]byte, 8)
	for i := range value {
		value[i] = byte(bits >> (8 * i))
	}
	return value[:e.Size()], nil
}
