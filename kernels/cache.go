package kernels

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"

	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/internal/nvrtc"
)

// The cache holds an entry for each compiled program, named by the hash of all that
// went into it, so that none is ever out of date, and one for what a tuner learnt of
// sweeps of a size.

// imageEntry returns the entry of a program.
func imageEntry(folder cache.Folder, source nvrtc.Source, options []string, compiler string) cache.Entry {
	h := sha256.New()
	parts := append([]string{compiler}, slices.Sorted(slices.Values(options))...)
	parts = append(parts, source.Name, source.Text)
	for _, header := range source.Headers {
		parts = append(parts, header.Name, header.Text)
	}
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return folder.Entry(hex.EncodeToString(h.Sum(nil)) + ".cubin")
}

// readImage returns the image in the entry.
func readImage(e cache.Entry) ([]byte, bool) {
	data, err := e.Read()
	if err != nil {
		return nil, false
	}
	return imageIn(data)
}

// imageIn returns the image that an entry holds behind its hash, so that a damaged entry counts as
// none.
func imageIn(data []byte) ([]byte, bool) {
	if len(data) <= sha256.Size {
		return nil, false
	}
	sum, image := data[:sha256.Size], data[sha256.Size:]
	if want := sha256.Sum256(image); string(sum) != string(want[:]) {
		return nil, false
	}
	return image, true
}

// writeImage keeps the image where that is possible: else it is compiled again.
func writeImage(e cache.Entry, image []byte) {
	sum := sha256.Sum256(image)
	_ = e.Write(sum[:], image)
}

// memory keeps what was learnt by measuring, by key, for as long as its compiler lives.
type memory struct {
	mu    sync.Mutex
	known map[string][]byte
}

// remember is what Compiler.Remember says, with entries in a folder.
func (m *memory) remember(
	folder cache.Folder, kind, key string, valid func([]byte) bool, learn func() ([]byte, error),
) (learnt []byte, known bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if learnt, known = m.known[key]; known {
		return learnt, true, nil
	}
	sum := sha256.Sum256([]byte(key))
	entry := folder.Entry(kind + "-" + hex.EncodeToString(sum[:8]) + ".json")
	if learnt, err = entry.Read(); err == nil && valid(learnt) {
		known = true
	} else if learnt, err = learn(); err != nil {
		return nil, false, err
	} else {
		_ = entry.Write(learnt) // else it is learnt again
	}
	if m.known == nil {
		m.known = map[string][]byte{}
	}
	m.known[key] = learnt
	return learnt, known, nil
}
