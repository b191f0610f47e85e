package vtk

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"github.com/halox/halox/internal/files"
)

// maxCollection is the size of the largest .pvd file that is read, in bytes.
const maxCollection = 64 << 20

// A Frame is one time of a collection.
type Frame struct {
	Time float64 // finite
	File string  // a .vti or .pvti file, relative to the folder of the collection
}

// WriteCollection writes a .pvd file, completely or not at all: readers of an older one see either that or the new one.
func WriteCollection(path string, frames []Frame) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, head+"<Collection>\n", "Collection")
	var err error
	for _, f := range frames {
		if math.IsNaN(f.Time) || math.IsInf(f.Time, 0) {
			err = fmt.Errorf("time of %s: must be finite, got %v", f.File, f.Time)
		}
		fmt.Fprintf(&text, "<DataSet timestep=\"%s\" part=\"0\" file=\"%s\"/>\n",
			strconv.FormatFloat(f.Time, 'g', -1, 64), escape(filepath.ToSlash(f.File)))
	}
	text.WriteString("</Collection>\n</VTKFile>\n")
	if err == nil {
		err = files.Write(path, text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("vtk: write %s: %w", path, err)
	}
	return nil
}

// ReadCollection returns the frames of a .pvd file, to continue it.
func ReadCollection(path string) ([]Frame, error) {
	data, err := files.Read(path, maxCollection)
	var frames []Frame
	if err == nil {
		frames, err = decodeCollection(data)
	}
	if err != nil {
		return nil, fmt.Errorf("vtk: read %s: %w", path, err)
	}
	return frames, nil
}

func decodeCollection(data []byte) ([]Frame, error) {
	var file struct {
		XMLName xml.Name `xml:"VTKFile"`
		Type    string   `xml:"type,attr"`
		Sets    []struct {
			Time string `xml:"timestep,attr"`
			File string `xml:"file,attr"`
		} `xml:"Collection>DataSet"`
	}
	if err := xml.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	if file.Type != "Collection" {
		return nil, fmt.Errorf("type: must be Collection, got %q", file.Type)
	}
	frames := make([]Frame, len(file.Sets))
	for i, set := range file.Sets {
		time, err := strconv.ParseFloat(set.Time, 64)
		if err != nil || math.IsNaN(time) || math.IsInf(time, 0) {
			return nil, fmt.Errorf("timestep of %q: must be a finite number, got %q", set.File, set.Time)
		}
		frames[i] = Frame{time, set.File}
	}
	return frames, nil
}
