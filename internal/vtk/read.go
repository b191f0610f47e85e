package vtk

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/files"
)

// A Reader reads fields from a .vti or .pvti file that this package wrote. It may be used concurrently.
type Reader struct {
	Image  // trailing axes of one point are left out
	path   string
	whole  domain.Box // the points in indices of the file, which do not begin at 0 in that of a piece
	pieces []readPiece
}

// readPiece is a box of the grid in a file; offsets of the values of each array are known for the file of the Reader.
type readPiece struct {
	box     domain.Box
	file    string
	offsets []int64
}

// maxHead is the largest size of the text before the values, in bytes.
const maxHead = 1 << 20

// imageText is the text of a .vti or .pvti file.
type imageText struct {
	Type   string `xml:"type,attr"`
	Order  string `xml:"byte_order,attr"`
	Header string `xml:"header_type,attr"`
	Single *struct {
		gridText
		Arrays []arrayText `xml:"Piece>PointData>DataArray"`
	} `xml:"ImageData"`
	Several *struct {
		gridText
		Arrays []arrayText `xml:"PPointData>PDataArray"`
		Pieces []struct {
			Extent string `xml:"Extent,attr"`
			Source string `xml:"Source,attr"`
		} `xml:"Piece"`
	} `xml:"PImageData"`
}

type gridText struct {
	Whole   string `xml:"WholeExtent,attr"`
	Origin  string `xml:"Origin,attr"`
	Spacing string `xml:"Spacing,attr"`
}

type arrayText struct {
	Type   string `xml:"type,attr"`
	Name   string `xml:"Name,attr"`
	Format string `xml:"format,attr"`
	Offset int64  `xml:"offset,attr"`
	Keys   []struct {
		Name  string `xml:"name,attr"`
		Value string `xml:",chardata"`
	} `xml:"InformationKey"`
}

// Open reads the text of a .vti or .pvti file, and none of the values.
func Open(path string) (*Reader, error) {
	r := &Reader{path: path}
	if err := r.open(); err != nil {
		return nil, fmt.Errorf("vtk: read %s: %w", path, err)
	}
	return r, nil
}

func (r *Reader) open() error {
	file, err := files.Open(r.path)
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxHead))
	if err != nil {
		return err
	}
	const begin = "<AppendedData encoding=\"raw\">\n_"
	start := bytes.Index(data, []byte(begin))
	head := data
	if start >= 0 {
		head = append(bytes.Clone(data[:start]), "</VTKFile>"...)
	}
	var text imageText
	if err := xml.Unmarshal(head, &text); err != nil {
		return err
	}
	var grid gridText
	var arrays []arrayText
	switch {
	case text.Single != nil && start >= 0 && text.Order == "LittleEndian" && text.Header == "UInt64":
		grid, arrays = text.Single.gridText, text.Single.Arrays
	case text.Several != nil:
		grid, arrays = text.Several.gridText, text.Several.Arrays
	default:
		return errors.New("must be image data with raw appended values in little-endian order and 64-bit sizes")
	}
	if err := r.place(grid); err != nil {
		return err
	}
	for _, a := range arrays {
		one := Array{Name: a.Name, Element: domain.Element(strings.ToLower(a.Type))}
		for _, key := range a.Keys {
			if key.Name == unitsKey {
				one.Unit = strings.TrimSpace(key.Value)
			}
		}
		r.Arrays = append(r.Arrays, one)
	}
	if err := r.check(); err != nil {
		return err
	}
	if text.Several == nil {
		info, err := file.Stat()
		if err != nil {
			return err
		}
		piece := readPiece{box: r.whole, file: r.path}
		for i, a := range arrays {
			at := int64(start+len(begin)) + a.Offset + 8
			if bytes := r.whole.Points() * int64(r.Arrays[i].Element.Size()); a.Format != "appended" || a.Offset < 0 ||
				bytes > info.Size() || at > info.Size()-bytes {
				return fmt.Errorf("array %q: must have %d bytes at %d", a.Name, bytes, at)
			}
			piece.offsets = append(piece.offsets, at)
		}
		r.pieces = append(r.pieces, piece)
		return nil
	}
	for _, p := range text.Several.Pieces {
		box, err := parseExtent(p.Extent)
		if err != nil {
			return err
		}
		path := filepath.Join(filepath.Dir(r.path), filepath.FromSlash(p.Source))
		r.pieces = append(r.pieces, readPiece{box: box, file: path})
	}
	if len(r.pieces) == 0 {
		return errors.New("must have pieces")
	}
	return nil
}

// place sets the size and the position of the grid.
func (r *Reader) place(grid gridText) (err error) {
	if r.whole, err = parseExtent(grid.Whole); err != nil {
		return err
	}
	size, axes := r.whole.Size(), 3
	for axes > 1 && size[axes-1] == 1 {
		axes--
	}
	r.Size = size[:axes]
	r.Origin, r.Spacing = make([]float64, 3), make([]float64, 3)
	for i, text := range []string{grid.Origin, grid.Spacing} {
		to := [][]float64{r.Origin, r.Spacing}[i]
		if _, err := fmt.Sscan(text, &to[0], &to[1], &to[2]); err != nil {
			return fmt.Errorf("origin and spacing: must be three numbers, got %q", text)
		}
	}
	r.Origin, r.Spacing = r.Origin[:axes], r.Spacing[:axes]
	for a := range axes {
		r.Origin[a] += float64(r.whole.Lo[a]) * r.Spacing[a]
	}
	return nil
}

func parseExtent(text string) (b domain.Box, err error) {
	if _, err := fmt.Sscan(text, &b.Lo[0], &b.Hi[0], &b.Lo[1], &b.Hi[1], &b.Lo[2], &b.Hi[2]); err != nil {
		return b, fmt.Errorf("extent: must be six numbers, got %q", text)
	}
	b.Hi = b.Hi.Add(domain.Vec{1, 1, 1})
	for axis, lo := range b.Lo {
		const most = 1 << 40
		if lo < 0 || b.Hi[axis] <= lo || b.Hi[axis] > most {
			return b, fmt.Errorf("extent: must have points, got %q", text)
		}
	}
	return b, nil
}

// Read sets dst to the values of an array in a box, x fastest. The box counts from the first point of the grid.
func (r *Reader) Read(array int, dst []float64, box domain.Box) error {
	box.Lo, box.Hi = box.Lo.Add(r.whole.Lo), box.Hi.Add(r.whole.Lo)
	left := box.Points()
	for _, piece := range r.pieces {
		own := piece.box
		for axis, hi := range own.Hi {
			if hi < r.whole.Hi[axis] {
				own.Hi[axis]-- // the next piece has these points too
			}
		}
		part := own.Intersect(box)
		if part.Empty() {
			continue
		}
		left -= part.Points()
		if err := r.readPart(piece, array, dst, box, part); err != nil {
			return fmt.Errorf("vtk: read %s: %w", piece.file, err)
		}
	}
	if left > 0 {
		return fmt.Errorf("vtk: read %s: it lacks points of %v", r.path, box)
	}
	return nil
}

// readPart reads the part of a box that a piece has.
func (r *Reader) readPart(piece readPiece, array int, dst []float64, box, part domain.Box) error {
	if piece.offsets == nil {
		one, err := Open(piece.file)
		if err != nil {
			return err
		}
		if one.pieces[0].offsets == nil || one.pieces[0].box != piece.box ||
			len(one.Arrays) <= array || one.Arrays[array] != r.Arrays[array] {
			return fmt.Errorf("must have the points %v of %s", piece.box, r.Arrays[array].Name)
		}
		piece = one.pieces[0]
	}
	file, err := os.Open(piece.file)
	if err != nil {
		return err
	}
	defer file.Close()
	e := r.Arrays[array].Element
	have, n := piece.box.Size(), part.Size()[0]
	row := make([]byte, n*e.Size())
	for z := part.Lo[2]; z < part.Hi[2]; z++ {
		for y := part.Lo[1]; y < part.Hi[1]; y++ {
			from := domain.Vec{part.Lo[0], y, z}.Sub(piece.box.Lo)
			to := domain.Vec{part.Lo[0], y, z}.Sub(box.Lo)
			index := int64(from[2]*have[1]+from[1])*int64(have[0]) + int64(from[0])
			if _, err := file.ReadAt(row, piece.offsets[array]+index*int64(e.Size())); err != nil {
				return err
			}
			at := (to[2]*box.Size()[1]+to[1])*box.Size()[0] + to[0]
			if err := numbers(dst[at:at+n], row, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// numbers converts values.
func numbers(dst []float64, data []byte, e domain.Element) error {
	switch e {
	case domain.Float64:
		_, err := binary.Decode(data, binary.LittleEndian, dst)
		return err
	case domain.Float32:
		return convert(dst, data, make([]float32, len(dst)))
	case domain.Int32:
		return convert(dst, data, make([]int32, len(dst)))
	case domain.Int64:
		return convert(dst, data, make([]int64, len(dst)))
	case domain.Uint8:
		return convert(dst, data, make([]uint8, len(dst)))
	}
	return fmt.Errorf("element: must be a number, got %q", e)
}

func convert[T float32 | int32 | int64 | uint8](dst []float64, data []byte, values []T) error {
	_, err := binary.Decode(data, binary.LittleEndian, values)
	for i, v := range values {
		dst[i] = float64(v)
	}
	return err
}
