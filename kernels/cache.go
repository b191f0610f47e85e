package kernels

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"

	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/internal/nvrtc"
)

// The cache holds an entry for each compiled program, named by the hash of everything that
// went into it, so that none is ever out of date, and one for each result of a tuner.

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

// remembered holds by kind and key what Remember returned, for as long as its compiler lives.
type remembered struct {
	mu     sync.Mutex
	values map[[2]string]any
}
