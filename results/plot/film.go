package plot

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/gif"
	"image/png"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/halox/halox/internal/files"
)

// A Film is charts of one size that are shown one after another, in a loop. Only one is in memory at a time.
type Film struct {
	Frames    int                            // number of charts, at least 1
	Frame     func(index int) (Chart, error) // called once for each chart, in order
	PerSecond float64                        // charts per second, from 0.1 to 50
	Width     int                            // width in pixels, see Sized; default 720
}

// filmExtensions are those of the formats of films.
var filmExtensions = []string{".gif", ".apng"}

// FilmExtensions returns the extensions of the formats of films: .gif, and .apng, which has all colors.
func FilmExtensions() []string { return append([]string(nil), filmExtensions...) }

// WriteFilm draws a film into the file at path, whose extension selects the format, see [FilmExtensions].
func WriteFilm(path string, f Film) error {
	err := func() error {
		file, err := files.Create(path)
		if err != nil {
			return err
		}
		buffer := bufio.NewWriter(file)
		if err = f.encode(buffer, strings.ToLower(filepath.Ext(path))); err == nil {
			err = buffer.Flush()
		}
		if err != nil {
			return errors.Join(err, file.Abort())
		}
		return file.Commit()
	}()
	if err != nil {
		return fmt.Errorf("results: film %s: %w", path, err)
	}
	return nil
}

// encode draws the film in the format of an extension.
func (f Film) encode(w io.Writer, extension string) error {
	if !(f.PerSecond >= 0.1 && f.PerSecond <= 50) {
		return fmt.Errorf("frames per second: must be between 0.1 and 50, got %v", f.PerSecond)
	}
	delay := int(math.Round(100 / f.PerSecond)) // in hundredths of a second
	var frames interface {
		add(w io.Writer, s sheet, img *image.RGBA) error
		end(w io.Writer) error
	}
	switch extension {
	case ".gif":
		frames = &gifFrames{delay: delay}
	case ".apng":
		frames = &pngFrames{delay: delay, all: f.Frames}
	default:
		return fmt.Errorf("the extension must be %s, got %q", strings.Join(filmExtensions, " or "), extension)
	}
	width, height := f.Width, 0
	if width == 0 {
		width = 720
	}
	for i := range f.Frames {
		chart, err := f.Frame(i)
		if err != nil {
			return err
		}
		s, err := chart.layout()
		if err != nil {
			return err
		}
		if i == 0 {
			width, height = s.pixelSize(width)
		}
		if err := frames.add(w, s, s.raster(width, height)); err != nil {
			return err
		}
	}
	return frames.end(w)
}

// gifFrames writes a GIF file: image/gif encodes each frame as a file, of which the part of the frame is taken.
type gifFrames struct {
	delay int
	index indexer
	shown *image.Paletted // after the last frame; nil before the first
}

func (g *gifFrames) add(w io.Writer, s sheet, img *image.RGBA) error {
	if g.shown == nil {
		g.index = newIndexer(s.colors)
	}
	frame := g.index.paletted(img)
	var data bytes.Buffer
	if err := gif.EncodeAll(&data, &gif.GIF{
		Image: []*image.Paletted{g.changes(frame)}, Delay: []int{g.delay}, Disposal: []byte{gif.DisposalNone},
		Config: image.Config{ColorModel: g.index.colors, Width: frame.Rect.Dx(), Height: frame.Rect.Dy()},
	}); err != nil {
		return err
	}
	const head = 6 + 7 + 3*256 // magic, screen, colors
	parts := [][]byte{data.Bytes()[head : data.Len()-1]}
	if g.shown == nil {
		loop := []byte("\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00") // without end
		parts = [][]byte{data.Bytes()[:head], loop, parts[0]}
	}
	g.shown = frame
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// changes returns the part of a frame that contains all changes, with other pixels transparent.
func (g *gifFrames) changes(frame *image.Paletted) *image.Paletted {
	if g.shown == nil {
		return frame
	}
	changed := image.Rectangle{}
	for i, index := range frame.Pix {
		if x, y := i%frame.Stride, i/frame.Stride; index != g.shown.Pix[i] {
			changed = changed.Union(image.Rect(x, y, x+1, y+1))
		}
	}
	if changed.Empty() {
		changed = image.Rect(0, 0, 1, 1)
	}
	part := image.NewPaletted(changed, g.index.colors)
	for y := changed.Min.Y; y < changed.Max.Y; y++ {
		for x := changed.Min.X; x < changed.Max.X; x++ {
			part.Pix[part.PixOffset(x, y)] = transparent
			if i := frame.PixOffset(x, y); frame.Pix[i] != g.shown.Pix[i] {
				part.Pix[part.PixOffset(x, y)] = frame.Pix[i]
			}
		}
	}
	return part
}

func (g *gifFrames) end(w io.Writer) error {
	_, err := w.Write([]byte{0x3b})
	return err
}

// pngFrames writes an animated PNG file from the chunks of a PNG file per frame, see www.w3.org/TR/png-3.
type pngFrames struct {
	delay, all int
	sequence   uint32
	begun      bool
}

func (p *pngFrames) add(w io.Writer, _ sheet, img *image.RGBA) error {
	var data bytes.Buffer
	if err := png.Encode(&data, img); err != nil {
		return err
	}
	control := func() []byte { // of the frame
		c := binary.BigEndian.AppendUint32(nil, p.sequence)
		for _, v := range []int{img.Bounds().Dx(), img.Bounds().Dy(), 0, 0} {
			c = binary.BigEndian.AppendUint32(c, uint32(v))
		}
		c = binary.BigEndian.AppendUint16(c, uint16(p.delay))
		p.sequence++
		return append(c, 0, 100, 0, 0) // hundredths of a second; replaces the previous frame
	}
	const magic = 8
	var err error
	write := func(kind string, content []byte) {
		if err == nil {
			_, err = w.Write(pngChunk(kind, content))
		}
	}
	rest := data.Bytes()[magic:]
	if !p.begun {
		_, err = w.Write(data.Bytes()[:magic])
	} else {
		write("fcTL", control())
	}
	for len(rest) > 0 {
		length := binary.BigEndian.Uint32(rest)
		kind, content := string(rest[4:8]), rest[8:8+length]
		rest = rest[12+length:]
		switch {
		case kind == "IHDR" && !p.begun:
			write(kind, content)
			write("acTL", binary.BigEndian.AppendUint64(nil, uint64(p.all)<<32)) // without end
			write("fcTL", control())
		case kind == "IDAT" && !p.begun:
			write(kind, content)
		case kind == "IDAT":
			write("fdAT", append(binary.BigEndian.AppendUint32(nil, p.sequence), content...))
			p.sequence++
		}
	}
	p.begun = true
	return err
}

func (p *pngFrames) end(w io.Writer) error {
	_, err := w.Write(pngChunk("IEND", nil))
	return err
}

// pngChunk returns a chunk of a PNG file.
func pngChunk(kind string, content []byte) []byte {
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(content)))
	chunk = append(append(chunk, kind...), content...)
	return binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
}
