package zarr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Names of codecs.
const (
	bytesCodec = "bytes"
	zstdCodec  = "zstd"
	crcCodec   = "crc32c"
	shardCodec = "sharding_indexed"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

const crcBytes = 4

// codecs are the names of the codecs of a chunk, in the order in which they encode it.
type codecs []string

// encode returns the encoded form of a chunk, with a level of zstd, in the buffer if that has room. Without compression
// it is the chunk and its checksum.
func (c codecs) encode(chunk, buffer []byte, level int) ([]byte, error) {
	data := chunk
	for _, name := range c {
		switch name {
		case zstdCodec:
			encoder, err := encoderOf(zstd.EncoderLevelFromZstd(level))
			if err != nil {
				return nil, err
			}
			data = encoder.EncodeAll(data, buffer[:0])
		case crcCodec:
			data = binary.LittleEndian.AppendUint32(data, checksum(data))
		}
	}
	return data, nil
}

// decode returns the chunk of a number of bytes that was encoded as data, in either data or the buffer, which has room
// for a chunk with a checksum.
func (c codecs) decode(data, buffer []byte, bytes int) ([]byte, error) {
	for _, name := range slices.Backward(c) {
		switch name {
		case zstdCodec:
			decoder, err := theDecoder()
			if err != nil {
				return nil, err
			}
			if data, err = decoder.DecodeAll(data, buffer[:0]); err != nil {
				return nil, fmt.Errorf("zstd: %w", err)
			}
		case crcCodec:
			var err error
			if data, err = checked(data); err != nil {
				return nil, err
			}
		}
	}
	if len(data) != bytes {
		return nil, fmt.Errorf("must have %d bytes of values, got %d", bytes, len(data))
	}
	return data, nil
}

// checked returns data without the checksum at its end, which it compares.
func checked(data []byte) ([]byte, error) {
	if len(data) < crcBytes {
		return nil, errors.New("no room for a checksum")
	}
	content, end := data[:len(data)-crcBytes], data[len(data)-crcBytes:]
	if want, got := binary.LittleEndian.Uint32(end), checksum(content); got != want {
		return nil, fmt.Errorf("crc32c: must be %08x as stored, got %08x", want, got)
	}
	return content, nil
}

// encoders are shared: each has buffers for as many goroutines as there are processors.
var encoders sync.Map // by zstd.EncoderLevel

func encoderOf(level zstd.EncoderLevel) (*zstd.Encoder, error) {
	make, _ := encoders.LoadOrStore(level, sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderCRC(false))
	}))
	return make.(func() (*zstd.Encoder, error))()
}

// theDecoder decodes no more than the buffer that it is given has room for.
var theDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
})
