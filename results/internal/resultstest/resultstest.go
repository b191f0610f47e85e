// Package resultstest has what tests of package results and of the rooms below it share: golden files, sample records
// and a sample trace.
package resultstest

import (
	"bytes"
	"flag"
	"image"
	"image/draw"
	_ "image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files under testdata anew")

// Golden returns the expected content of a file under testdata, which becomes
// got when the tests run with -update.
func Golden(t *testing.T, name string, got []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return ReadFile(t, path)
}

// ReadFile returns what a file holds.
func ReadFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Files lists what is in a folder, hidden files too.
func Files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// Decode returns the picture of a PNG file.
func Decode(t *testing.T, data []byte) image.Image {
	t.Helper()
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// Alike fails unless two pictures have one size and all but one in a thousand
// of their bytes, a colour of a pixel each, are within a few shades: how glyphs
// and colours round differs between processors.
func Alike(t *testing.T, got, want image.Image) {
	t.Helper()
	if got.Bounds() != want.Bounds() {
		t.Fatalf("the picture covers %v, want %v", got.Bounds(), want.Bounds())
	}
	a, b := RGBA(got), RGBA(want)
	wrong := 0
	for i, shade := range b.Pix {
		if Far(a.Pix[i], shade) {
			if wrong++; wrong == 1 {
				t.Logf("first at pixel (%d, %d)", i%a.Stride/4, i/a.Stride)
			}
		}
	}
	if allowed := len(b.Pix) / 1000; wrong > allowed {
		t.Errorf("%d bytes differ from the golden picture, allowed are %d", wrong, allowed)
	}
}

// Far reports whether two shades differ by more than rounding.
func Far(a, b uint8) bool { return max(a, b)-min(a, b) > 8 }

// RGBA returns a picture by its pixels.
func RGBA(img image.Image) *image.RGBA {
	plain := image.NewRGBA(img.Bounds())
	draw.Draw(plain, plain.Rect, img, img.Bounds().Min, draw.Src)
	return plain
}

// WantError expects an error that has all the words.
func WantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q, want it to have %q", err, word)
		}
	}
}
