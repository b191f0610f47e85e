package kernels

import (
	"bytes"
	"crypto/sha256"
	"testing"
)

// Whatever an entry of a compiled program holds, what is taken for its image has the hash in front
// of it.
func FuzzImage(f *testing.F) {
	f.Add(entryOf([]byte("image")))
	f.Add(entryOf(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		image, ok := imageIn(data)
		if !ok {
			if image != nil {
				t.Fatalf("no image, and %q", image)
			}
		} else if len(image) == 0 || !bytes.Equal(data, entryOf(image)) {
			t.Fatalf("%q is not what %q holds", image, data)
		}
		entry := entryOf(data)
		if image, ok := imageIn(entry); ok != (len(data) > 0) || !bytes.Equal(image, data) {
			t.Fatalf("%q is not taken for %q", image, data)
		}
		entry[len(entry)-1] ^= 1
		if _, ok := imageIn(entry); ok {
			t.Fatal("a damaged image was taken")
		}
	})
}

// entryOf returns the entry of an image.
func entryOf(image []byte) []byte {
	sum := sha256.Sum256(image)
	return append(sum[:], image...)
}
