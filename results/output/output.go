// Package output writes the output files of a run, each in the format of its extension.
//
// A new format is one file of this package: it calls [Register] in an init function, and nothing else
// changes.
//
// - configs accepts the extensions that [Extensions] returns for a kind under the key output.<kind>, and names them in
// errors and on the reference page.
// - cmd/halox checks before a run that the files can be written, and then calls [Files.Write] and [Files.Commit]; if
// several processes share the grid, on all of them.
package output

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/results/view"
)

// A Kind is the content of a file. It is the key of the file in the section output of a config.
type Kind string

// The kinds of files.
const (
	Field   Kind = "field"   // values at all points
	Picture Kind = "picture" // a plane of the field
)

// A Run is the result of a finished run, as input of formats: a field, of which a picture is drawn with the options.
type Run struct {
	view.Field
	view.Options

	Record  *results.Record // record of the run; without the errors of outputs
	Element domain.Element  // precision of the run: Float32 or Float64
}

// A Format is one kind of file.
type Format struct {
	Kind      Kind   // kind of the file
	Extension string // in lower case, such as ".npy"

	// Write writes the file. If processes share the grid, all of them call it, since each reads its part of
	// the field: the boxes that are read must not depend on the values. Only one of them writes a file; the
	// others write to [io.Discard] and read zeros.
	Write func(w io.Writer, run *Run) error
}

var formats []Format

func init() {
	for _, extension := range plot.Extensions() {
		Register(Format{Kind: Picture, Extension: extension, Write: func(w io.Writer, run *Run) error {
			chart, err := view.Chart(&run.Field, run.Options)
			if err != nil || w == io.Discard {
				return err
			}
			return plot.Encode(w, extension, chart)
		}})
	}
}

// Register adds a format. It panics if the kind already has one for the extension.
func Register(f Format) {
	if _, ok := find(f.Kind, f.Extension); ok {
		panic(fmt.Sprintf("output: two formats for %s%s", f.Kind, f.Extension))
	}
	formats = append(formats, f)
}

// Extensions returns the extensions of the formats of a kind.
func Extensions(kind Kind) (all []string) {
	for _, f := range formats {
		if f.Kind == kind {
			all = append(all, f.Extension)
		}
	}
	return all
}

func find(kind Kind, extension string) (Format, bool) {
	for _, f := range formats {
		if f.Kind == kind && f.Extension == strings.ToLower(extension) {
			return f, true
		}
	}
	return Format{}, false
}

// Files are the output files of a run, of the kinds of this package and others.
type Files struct {
	All     []*results.Output // entries of the record of the run; updated
	Discard bool              // take part in reading the field, but write nothing; default false

	// Began is called before points of the field are read for a file.
	Began  func(name string, points int64)
	Failed func(error) error // called with the first error of a file, before reading more of the field

	written map[*results.Output]written
}

// written is the state of a file: complete without its name, or failed.
type written struct {
	file *files.Output
	err  error
}

// Add adds a file for Write, unless the path is empty. Until Commit it counts as missing.
func (f *Files) Add(kind Kind, path string) *results.Output {
	if path == "" {
		return nil
	}
	o := &results.Output{Kind: string(kind), File: path, Missing: "the run ended before it was written"}
	f.All = append(f.All, o)
	return o
}

// Write writes all files of the kinds of this package, each in the format of its extension, under temporary
// names; Commit renames them. An error of one file does not prevent the others; after an error of ended
// nothing more is read.
func (f *Files) Write(run *Run, ended func() error) error {
	var errs []error
	for _, o := range f.All {
		format, ok := find(Kind(o.Kind), filepath.Ext(o.File))
		if !ok {
			continue
		}
		points := run.Grid.Points()
		if format.Kind == Picture {
			axis, _, err := run.Plane(&run.Field)
			if errs = append(errs, err); err != nil {
				continue
			}
			points /= int64(run.Grid.Size[axis])
		}
		f.Began(o.File, points)
		if f.Discard {
			errs = append(errs, format.Write(io.Discard, run))
		} else {
			errs = append(errs, f.Put(o, func(w io.Writer) error { return format.Write(w, run) }))
		}
		if ended() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// Finish syncs the files to disk, which may take long.
func (f *Files) Finish() error {
	var errs []error
	for o, w := range f.written {
		if w.err == nil {
			w.err = w.file.Finish()
			f.written[o] = w
			errs = append(errs, failure(o, w.err))
		}
	}
	return errors.Join(errs...)
}

// Put writes a file of another kind, like Write: encode writes its content.
func (f *Files) Put(o *results.Output, encode func(io.Writer) error) error {
	if f.written == nil {
		f.written = map[*results.Output]written{}
	}
	file, err := f.write(o.File, encode)
	f.written[o] = written{file, err}
	return failure(o, err)
}

// write returns a complete file without its name.
func (f *Files) write(path string, encode func(io.Writer) error) (*files.Output, error) {
	file, err := files.Create(path)
	if err != nil {
		return nil, errors.Join(err, encode(io.Discard))
	}
	buffer := bufio.NewWriterSize(reporter{file, f.Failed}, 1<<20)
	if err = encode(buffer); err == nil {
		err = buffer.Flush()
	}
	if err != nil {
		_ = file.Abort()
		return nil, err
	}
	return file, nil
}

// Commit renames the finished files. A replaced file is intact until then.
func (f *Files) Commit() error {
	var errs []error
	for o, w := range f.written {
		err := w.err
		if err == nil {
			err = w.file.Commit()
			errs = append(errs, failure(o, err))
		} else if w.file != nil {
			_ = w.file.Abort()
		}
		if o.Missing = ""; err != nil {
			o.Missing = err.Error()
		}
	}
	return errors.Join(errs...)
}

func failure(o *results.Output, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("output: write %s %s: %w", o.Kind, o.File, err)
}

// A reporter passes on errors of a writer.
type reporter struct {
	io.Writer
	failed func(error) error
}

// Write implements [io.Writer].
func (r reporter) Write(data []byte) (int, error) {
	n, err := r.Writer.Write(data)
	if err != nil && r.failed != nil {
		err = r.failed(err)
	}
	return n, err
}

// chunkPoints is the number of points of a field that are read at once.
const chunkPoints = 1 << 22

// Chunks reads the whole field, x fastest, in chunks of some millions of points, and passes the values of
// each to use.
func (r *Run) Chunks(use func(values []float64) error) error {
	return r.Grid.EachChunk(chunkPoints, func(box domain.Box) error {
		values := make([]float64, box.Points())
		if err := r.Read(values, box); err != nil {
			return err
		}
		return use(values)
	})
}
