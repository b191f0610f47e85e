package plot

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
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
	Colors    string                         // scale of colors of the charts, one of ColorMaps; default the first
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
		add(w io.Writer, img image.Image) error
		end(w io.Writer) error
	}
	switch extension {
	case ".gif":
		frames = &gifFrames{delay: delay, colors: filmPalette(f.Colors), known: map[color.RGBA]uint8{}}
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
		if err := frames.add(w, s.raster(width, height)); err != nil {
			return err
		}
	}
	return frames.end(w)
}

// gifFrames writes a GIF file: image/gif encodes each frame as a file, of which the part of the frame is taken.
type gifFrames struct {
	delay  int
	colors color.Palette // 256 colors
	known  map[color.RGBA]uint8
	begun  bool
}

func (g *gifFrames) add(w io.Writer, img image.Image) error {
	frame := image.NewPaletted(img.Bounds(), g.colors)
	for i := range frame.Pix {
		c := color.RGBAModel.Convert(img.At(i%frame.Stride, i/frame.Stride)).(color.RGBA)
		index, ok := g.known[c]
		if !ok {
			index = uint8(g.colors.Index(c))
			g.known[c] = index
		}
		frame.Pix[i] = index
	}
	var data bytes.Buffer
	if err := gif.EncodeAll(&data, &gif.GIF{
		Image: []*image.Paletted{frame}, Delay: []int{g.delay},
		Config: image.Config{ColorModel: g.colors, Width: frame.Rect.Dx(), Height: frame.Rect.Dy()},
	}); err != nil {
		return err
	}
	const head = 6 + 7 + 3*256 // magic, screen, colors
	parts := [][]byte{data.Bytes()[head : data.Len()-1]}
	if !g.begun {
		loop := []byte("\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00") // without end
		parts, g.begun = [][]byte{data.Bytes()[:head], loop, parts[0]}, true
	}
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func (g *gifFrames) end(w io.Writer) error {
	_, err := w.Write([]byte{0x3b})
	return err
}

// filmPalette returns 256 colors for charts in a scale of colors: the scale, grays, and the colors of curves on white.
func filmPalette(name string) color.Palette {
	all := color.Palette{notFinite}
	for _, c := range shades(max(0, colorMap(name)), 192) {
		all = append(all, c)
	}
	for i := range 32 {
		v := uint8(i * 255 / 31)
		all = append(all, color.RGBA{v, v, v, 0xff})
	}
	for _, c := range palette[:gray-1] { // black is a gray
		for i := range 5 {
			mix := func(v uint8) uint8 { return uint8((int(v)*(5-i) + 0xff*i) / 5) }
			all = append(all, color.RGBA{mix(c.R), mix(c.G), mix(c.B), 0xff})
		}
	}
	for len(all) < 256 {
		all = append(all, color.RGBA{0xff, 0xff, 0xff, 0xff})
	}
	return all
}

// pngFrames writes an animated PNG file from the chunks of a PNG file per frame, see www.w3.org/TR/png-3.
type pngFrames struct {
	delay, all int
	sequence   uint32
	begun      bool
}

func (p *pngFrames) add(w io.Writer, img image.Image) error {
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
