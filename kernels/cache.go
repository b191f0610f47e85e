package kernels

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/halox/halox/internal/nvrtc"
)

// The cache holds one file a compiled program, named by the hash of all that
// went into it, so that no entry is ever out of date, and one for what a tuner learnt of
// sweeps of a size. It only saves time: what cannot be read or written is compiled, or
// measured, again.

// cacheFile returns the file for a program, "" without a folder.
func cacheFile(dir string, source nvrtc.Source, options []string, compiler string) string {
	if dir == "" {
		return ""
	}
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
	return filepath.Join(dir, hex.EncodeToString(h.Sum(nil))+".cubin")
}

// readCache returns the image in the file. The image follows its own hash, so
// that a damaged file counts as none.
func readCache(file string) ([]byte, bool) {
	data, err := os.ReadFile(file)
	if err != nil || len(data) <= sha256.Size {
		return nil, false
	}
	sum, image := data[:sha256.Size], data[sha256.Size:]
	if want := sha256.Sum256(image); string(sum) != string(want[:]) {
		return nil, false
	}
	return image, true
}

// writeCache keeps the image.
func writeCache(file string, image []byte) {
	sum := sha256.Sum256(image)
	writeFile(file, sum[:], image)
}

// writeFile writes a file of the cache, under a temporary name until it is whole.
func writeFile(file string, parts ...[]byte) {
	if file == "" || os.MkdirAll(filepath.Dir(file), 0o755) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(file), "new-*")
	if err != nil {
		return
	}
	for _, part := range parts {
		_, wrong := f.Write(part)
		err = errors.Join(err, wrong)
	}
	if err = errors.Join(err, f.Close()); err != nil || os.Rename(f.Name(), file) != nil {
		os.Remove(f.Name())
	}
}
