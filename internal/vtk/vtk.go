// Package vtk writes fields in the XML files of VTK, which ParaView and other programs read:
//
//   - .vti (image data): the values of a box of a grid, for one or more fields, by an [Encoder];
//   - .pvti: a grid of several .vti files, by [WritePieces];
//   - .pvd: the files of several times, by [WriteCollection].
//
// Values are raw and follow the text of a .vti file in little-endian order. Sizes and offsets have 64 bits. A grid of
// two dimensions is one plane of constant z, a grid of one dimension a line.
//
// The values belong to points. VTK draws cells between points, so that the pieces of a grid share points: a piece has
// the points of its box and, where the grid goes on, one more layer behind it on each axis. See [Piece].
package vtk

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/files"
)

// An Image describes a grid and its fields.
type Image struct {
	Size    []int     // points along x, y and z: one to three axes, each at least 1
	Origin  []float64 // coordinates of the first point, one per axis; default 0
	Spacing []float64 // distance between points, one per axis, above 0; default 1
	Arrays  []Array   // at least one
}

// An Array is a field: one number per point.
type Array struct {
	Name    string         // shown by viewers
	Element domain.Element // a real number or an integer
	Unit    string         // unit of the values, such as "m/s"; default none
}

// unit returns the text inside an array's element that gives the unit, as VTK writes it.
func (a Array) unit() string {
	if a.Unit == "" {
		return ""
	}
	return fmt.Sprintf("<InformationKey name=%q location=\"vtkDataArray\">%s</InformationKey>", unitsKey, escape(a.Unit))
}

// unitsKey is vtkDataArray::UNITS_LABEL.
const unitsKey = "UNITS_LABEL"

// typeName returns VTK's name of the element, such as UInt8.
func (a Array) typeName() string {
	name := string(a.Element)
	if unsigned, ok := strings.CutPrefix(name, "u"); ok {
		return "UI" + unsigned[1:]
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// check returns an error unless the image can be written.
func (m Image) check() error {
	if len(m.Size) < 1 || len(m.Size) > 3 {
		return fmt.Errorf("number of axes: must be between 1 and 3, got %d", len(m.Size))
	}
	for axis, n := range m.Size {
		if n < 1 {
			return fmt.Errorf("size %v: every axis must have at least 1 point", m.Size)
		}
		for name, list := range map[string][]float64{"origin": m.Origin, "spacing": m.Spacing} {
			if len(list) != 0 && len(list) != len(m.Size) {
				return fmt.Errorf("%s: must have one entry per axis or none, got %d", name, len(list))
			}
			if len(list) > 0 && (math.IsInf(list[axis], 0) || math.IsNaN(list[axis])) {
				return fmt.Errorf("%s: must be finite, got %v", name, list[axis])
			}
		}
		if len(m.Spacing) > 0 && m.Spacing[axis] <= 0 {
			return fmt.Errorf("spacing: must be above 0, got %v", m.Spacing[axis])
		}
	}
	names := map[string]bool{}
	for _, a := range m.Arrays {
		if !a.Element.IsReal() && !a.Element.IsInteger() {
			return fmt.Errorf("element of %q: must be a real number or an integer, got %q", a.Name, a.Element)
		}
		if a.Name == "" || names[a.Name] || !isPrintable(a.Name) {
			return fmt.Errorf("name of an array: must be a text of its own, got %q", a.Name)
		}
		if !isPrintable(a.Unit) {
			return fmt.Errorf("unit of %q: must be printable, got %q", a.Name, a.Unit)
		}
		names[a.Name] = true
		if m.grid().Points() > math.MaxInt64/int64(16*len(m.Arrays)) {
			return fmt.Errorf("size %v: must have less than 2^63 bytes", m.Size)
		}
	}
	if len(names) == 0 {
		return errors.New("arrays: must be at least one")
	}
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return errors.New("files of VTK need a little-endian machine")
	}
	return nil
}

func isPrintable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// grid returns all points.
func (m Image) grid() domain.Box {
	box := domain.Box{Hi: domain.Vec{1, 1, 1}}
	copy(box.Hi[:], m.Size)
	return box
}

// extent returns a box in VTK's notation: first and last index per axis.
func extent(b domain.Box) string {
	return fmt.Sprintf("%d %d %d %d %d %d", b.Lo[0], b.Hi[0]-1, b.Lo[1], b.Hi[1]-1, b.Lo[2], b.Hi[2]-1)
}

// place returns the attributes that say where a box is.
func (m Image) place(b domain.Box) string {
	numbers := func(list []float64, missing string) string {
		text := []string{missing, missing, missing}
		for axis, v := range list {
			text[axis] = strconv.FormatFloat(v, 'g', -1, 64)
		}
		return strings.Join(text, " ")
	}
	origin, spacing := numbers(m.Origin, "0"), numbers(m.Spacing, "1")
	return fmt.Sprintf(`WholeExtent="%s" Origin="%s" Spacing="%s"`, extent(b), origin, spacing)
}

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // writing to a buffer does not fail
	return b.String()
}

const head = `<?xml version="1.0"?>
<VTKFile type="%s" version="1.0" byte_order="LittleEndian" header_type="UInt64">
`

// An Encoder writes a .vti file. It writes nothing after an error, which all later calls return.
type Encoder struct {
	w      io.Writer
	bytes  []int64 // of the values of each array
	array  int     // that is written
	within int64   // bytes of it that are written
	err    error
}

// NewEncoder begins a file with the points of a box of the grid, which is all of it or the box of a [Piece].
func NewEncoder(w io.Writer, m Image, box domain.Box) (*Encoder, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("vtk: %w", err)
	}
	if box.Empty() || !m.grid().Covers(box) {
		return nil, fmt.Errorf("vtk: box: must have points of the grid of %s, got %v", domain.Times(m.Size), box)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, head+"<ImageData %s>\n<Piece Extent=\"%s\">\n", "ImageData", m.place(box), extent(box))
	fmt.Fprintf(&text, "<PointData Scalars=\"%s\">\n", escape(m.Arrays[0].Name))
	e := &Encoder{w: w}
	offset := int64(0)
	for _, a := range m.Arrays {
		fmt.Fprintf(&text, "<DataArray type=\"%s\" Name=\"%s\" format=\"appended\" offset=\"%d\">%s</DataArray>\n",
			a.typeName(), escape(a.Name), offset, a.unit())
		e.bytes = append(e.bytes, box.Points()*int64(a.Element.Size()))
		offset += 8 + e.bytes[len(e.bytes)-1]
	}
	text.WriteString("</PointData>\n</Piece>\n</ImageData>\n<AppendedData encoding=\"raw\">\n_")
	_, err := w.Write(binary.LittleEndian.AppendUint64(text.Bytes(), uint64(e.bytes[0])))
	return e, err
}

// Write appends values, as the machine stores them: those of the first array, x fastest, then those of the next. They
// come in any parts. More values than the arrays have points are an error.
func (e *Encoder) Write(values []byte) (int, error) {
	written := 0
	for len(values) > 0 && e.err == nil {
		if e.array == len(e.bytes) {
			e.err = errors.New("vtk: more values than points")
			break
		}
		var n int
		n, e.err = e.w.Write(values[:min(int64(len(values)), e.bytes[e.array]-e.within)])
		written, values = written+n, values[n:]
		if e.within += int64(n); e.err == nil && e.within == e.bytes[e.array] {
			e.array, e.within = e.array+1, 0
			if e.array < len(e.bytes) {
				_, e.err = e.w.Write(binary.LittleEndian.AppendUint64(nil, uint64(e.bytes[e.array])))
			}
		}
	}
	return written, e.err
}

// Close writes the end of the file. Too few values are an error.
func (e *Encoder) Close() error {
	if e.err == nil && e.array < len(e.bytes) {
		e.err = fmt.Errorf("vtk: array %d has %d of %d bytes", e.array, e.within, e.bytes[e.array])
	}
	if e.err == nil {
		_, e.err = io.WriteString(e.w, "\n</AppendedData>\n</VTKFile>\n")
	}
	return e.err
}

// A Piece is a file with a part of a grid.
type Piece struct {
	Points domain.Box // the points that the piece owns; each point of the grid belongs to one piece
	File   string     // a .vti file with the points of Box, relative to the folder of the .pvti file
}

// Box returns the points that the file of a piece has: those that it owns, and the next layer on each axis of the grid.
func (p Piece) Box(m Image) domain.Box {
	box, grid := p.Points, m.grid()
	for axis := range box.Hi {
		box.Hi[axis] = min(box.Hi[axis]+1, grid.Hi[axis])
	}
	return box
}

// WritePieces writes the .pvti file of a grid, completely or not at all. The files of the pieces may be written before
// or after it.
func WritePieces(path string, m Image, pieces []Piece) error {
	var text bytes.Buffer
	err := m.check()
	if err == nil {
		err = m.checkPieces(pieces)
	}
	if err == nil {
		fmt.Fprintf(&text, head+"<PImageData GhostLevel=\"0\" %s>\n", "PImageData", m.place(m.grid()))
		fmt.Fprintf(&text, "<PPointData Scalars=\"%s\">\n", escape(m.Arrays[0].Name))
		for _, a := range m.Arrays {
			fmt.Fprintf(&text, "<PDataArray type=\"%s\" Name=\"%s\">%s</PDataArray>\n", a.typeName(), escape(a.Name),
				a.unit())
		}
		text.WriteString("</PPointData>\n")
		for _, p := range pieces {
			source := escape(filepath.ToSlash(p.File))
			fmt.Fprintf(&text, "<Piece Extent=\"%s\" Source=\"%s\"/>\n", extent(p.Box(m)), source)
		}
		text.WriteString("</PImageData>\n</VTKFile>\n")
		err = files.Write(path, text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("vtk: write %s: %w", path, err)
	}
	return nil
}

// checkPieces returns an error unless each point belongs to one piece.
func (m Image) checkPieces(pieces []Piece) error {
	left := m.grid().Points()
	for i, p := range pieces {
		if p.Points.Empty() || !m.grid().Covers(p.Points) {
			size := domain.Times(m.Size)
			return fmt.Errorf("piece %s: must have points of the grid of %s, got %v", p.File, size, p.Points)
		}
		for _, q := range pieces[:i] {
			if both := p.Points.Intersect(q.Points); !both.Empty() {
				return fmt.Errorf("pieces %s and %s: both have the points %v", q.File, p.File, both)
			}
		}
		left -= p.Points.Points()
	}
	if left != 0 {
		return fmt.Errorf("pieces: must have all points of the grid, %d are missing", left)
	}
	return nil
}
