package kernels

import (
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/internal/nvrtc"
)

// The cache has one entry per compiled program, named by the hash of its source and options, so that entries are
// never outdated, and one entry per result of a tuner.

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
	return folder.Hashed("", h.Sum(nil), ".cubin")
}

// readImage returns the image in the entry.
func readImage(e cache.Entry) ([]byte, bool) {
	data, err := e.Read()
	if err != nil {
		return nil, false
	}
	return imageIn(data)
}

// imageIn returns the image in an entry, which follows its hash. A damaged entry counts as missing.
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

// writeImage stores the image. If that fails, the program is compiled again later.
func writeImage(e cache.Entry, image []byte) {
	sum := sha256.Sum256(image)
	_ = e.Write(sum[:], image)
}

// maxRemembered is the largest number of results of Remember that a compiler keeps in memory.
const maxRemembered = 4096

// remembered holds the last results of Remember by kind and key, for the lifetime of the compiler.
type remembered struct {
	mu     sync.Mutex
	values map[[2]string]any
}
