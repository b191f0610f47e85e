package kernels

import (
	"bytes"
	"crypto/sha256"
	"testing"
)

// For any content of an entry, an accepted image follows its hash.
func FuzzImage(f *testing.F) {
	f.Add(entryOf([]byte("image")))
	f.Add(entryOf(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		image, ok := imageIn(data)
		if !ok {
			if image != nil {
				t.Fatalf("rejected, but got %q", image)
			}
		} else if len(image) == 0 || !bytes.Equal(data, entryOf(image)) {
			t.Fatalf("%q must be the image in %q", image, data)
		}
		entry := entryOf(data)
		if image, ok := imageIn(entry); ok != (len(data) > 0) || !bytes.Equal(image, data) {
			t.Fatalf("got %q, want %q", image, data)
		}
		entry[len(entry)-1] ^= 1
		if _, ok := imageIn(entry); ok {
			t.Fatal("a damaged image must be rejected")
		}
	})
}

// entryOf returns the entry of an image.
func entryOf(image []byte) []byte {
	sum := sha256.Sum256(image)
	return append(sum[:], image...)
}
