package plot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/draw"
	"image/gif"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results/internal/resultstest"
)

// testFilm moves a wave through a picture.
func testFilm(frames int) Film {
	return Film{Frames: frames, PerSecond: 4, Width: 320, Frame: func(i int) (Chart, error) {
		p := unitPicture(24, 12, func(x, y float64) float64 { return math.Sin(2*math.Pi*x + float64(i)) })
		p.Title, p.Range = fmt.Sprintf("wave, step %d", i), &Range{-1, 1}
		return p, nil
	}}
}

// Each frame of a film is the picture of its chart.
func TestFilms(t *testing.T) {
	const frames = 3
	want := func(i int) []byte {
		var data bytes.Buffer
		test.Check(t, Encode(&data, ".png", Sized(test.Must(testFilm(frames).Frame(i))(t), 320)))
		return data.Bytes()
	}
	folder := t.TempDir()
	read := func(name string) []byte {
		path := filepath.Join(folder, name)
		test.Check(t, WriteFilm(path, testFilm(frames)))
		return test.Must(os.ReadFile(path))(t)
	}
	t.Run("gif", func(t *testing.T) {
		film := test.Must(gif.DecodeAll(bytes.NewReader(read("film.gif"))))(t)
		if len(film.Image) != frames || film.LoopCount != 0 {
			t.Fatalf("%d frames, %d loops", len(film.Image), film.LoopCount)
		}
		shown := image.NewRGBA(film.Image[0].Bounds())
		for i, frame := range film.Image { // of later frames only what changes
			if got := shown.Bounds(); film.Delay[i] != 25 || got.Dx() != 320 || !frame.Bounds().In(got) {
				t.Errorf("frame %d: %v in %v, shown for %d", i, frame.Bounds(), got, film.Delay[i])
			}
			if i > 0 && frame.Bounds() == shown.Bounds() {
				t.Errorf("frame %d has the margins, which do not change", i)
			}
			draw.Draw(shown, frame.Bounds(), frame, frame.Bounds().Min, draw.Over)
			if !bytes.Equal(shown.Pix, rgba(decode(t, want(i))).Pix) {
				t.Errorf("frame %d is another picture", i)
			}
		}
	})
	t.Run("apng", func(t *testing.T) {
		data := read("film.apng")
		if img := test.Must(png.Decode(bytes.NewReader(data)))(t); img.Bounds().Dx() != 320 {
			t.Errorf("viewers without animation show %v", img.Bounds())
		}
		const magic = 8
		var kinds []string
		var head []byte
		sequence, single := uint32(0), []*bytes.Buffer{}
		for rest := data[magic:]; len(rest) > 0; {
			n := binary.BigEndian.Uint32(rest)
			kind, content, sum := string(rest[4:8]), rest[8:8+n], binary.BigEndian.Uint32(rest[8+n:])
			if sum != crc32.ChecksumIEEE(rest[4:8+n]) {
				t.Fatalf("chunk %s has a wrong checksum", kind)
			}
			if kind == "fcTL" || kind == "fdAT" {
				if got := binary.BigEndian.Uint32(content); got != sequence {
					t.Fatalf("chunk %s has number %d, want %d", kind, got, sequence)
				}
				sequence++
			}
			switch kind {
			case "IHDR":
				head = rest[:12+n]
			case "acTL":
				if !bytes.Equal(content, []byte{0, 0, 0, frames, 0, 0, 0, 0}) {
					t.Errorf("control of the film: %v", content)
				}
			case "fcTL":
				if delay := content[20:24]; !bytes.Equal(delay, []byte{0, 25, 0, 100}) {
					t.Errorf("delay %v", delay)
				}
				single = append(single, bytes.NewBuffer(append(data[:magic:magic], head...)))
			case "IDAT":
				single[len(single)-1].Write(pngChunk("IDAT", content))
			case "fdAT":
				single[len(single)-1].Write(pngChunk("IDAT", content[4:]))
			}
			if kinds = append(kinds, kind); kinds[0] != "IHDR" {
				t.Fatalf("the first chunk is %s", kind)
			}
			rest = rest[12+n:]
		}
		if len(single) != frames || kinds[len(kinds)-1] != "IEND" {
			t.Fatalf("%d frames, %v", len(single), kinds)
		}
		for i, one := range single {
			one.Write(pngChunk("IEND", nil))
			a, b := rgba(decode(t, one.Bytes())), rgba(decode(t, want(i)))
			var far float64
			for k := range b.Pix {
				far += math.Abs(float64(a.Pix[k]) - float64(b.Pix[k]))
			}
			if far /= float64(len(b.Pix)); far > 1 { // of 255, since a picture has 256 colors
				t.Errorf("frame %d is off by %v shades on average", i, far)
			}
		}
	})
	t.Run("refused", func(t *testing.T) {
		slow, broken := testFilm(1), testFilm(3)
		slow.PerSecond = 0.01
		broken.Frame = func(i int) (Chart, error) {
			return Picture{NX: 1, NY: i, DX: 1, DY: 1, Values: make([]float64, 1)}, nil
		}
		for name, tc := range map[string]struct {
			film Film
			want string
		}{
			"a.mp4": {testFilm(1), `the extension must be .gif or .apng, got ".mp4"`},
			"b.gif": {slow, "frames per second: must be between 0.1 and 50, got 0.01"}, "c.gif": {broken, "got 1 x 0"},
		} {
			path := filepath.Join(folder, name)
			resultstest.WantError(t, WriteFilm(path, tc.film), "film "+path, tc.want)
			if _, err := os.Stat(path); err == nil {
				t.Errorf("%s exists", name)
			}
		}
	})
}

// A picture has the width that was asked for, which vector formats do not have.
func TestSized(t *testing.T) {
	ramp := unitPicture(8, 8, func(x, y float64) float64 { return x - y })
	for _, width := range []int{64, 511, 2000} {
		var data bytes.Buffer
		test.Check(t, Encode(&data, ".png", Sized(ramp, width)))
		if got := decode(t, data.Bytes()).Bounds(); got.Dx() != width || math.Abs(float64(got.Dy())/float64(width)-0.89) > 0.02 {
			t.Errorf("%d pixels wide: %v", width, got)
		}
	}
	if err := Encode(&strings.Builder{}, ".svg", Sized(ramp, 100)); err == nil {
		t.Error("an SVG has a width in pixels")
	}
}
