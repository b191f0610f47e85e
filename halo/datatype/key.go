package datatype

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// hash computes the key.
func (l *Layout) hash() Key {
	w := keyWriter{Hash: sha256.New()}
	for _, p := range l.pieces {
		w.put(p.Displacement, p.Offset, p.Length, int64(p.Rank))
		for _, d := range p.Dims[:p.Rank] {
			w.put(d.Count, d.Stride, d.Packed)
		}
	}
	w.put(-1) // no displacement, offset and length look like this
	for _, b := range l.list {
		w.put(b.Displacement, b.Length)
	}
	w.Write(w.buffer)
	return Key(w.Sum(nil))
}

// A keyWriter hashes numbers.
type keyWriter struct {
	hash.Hash
	buffer []byte
}

func (w *keyWriter) put(numbers ...int64) {
	for _, n := range numbers {
		w.buffer = binary.LittleEndian.AppendUint64(w.buffer, uint64(n))
	}
	if len(w.buffer) >= 1<<12 {
		w.Write(w.buffer)
		w.buffer = w.buffer[:0]
	}
}
