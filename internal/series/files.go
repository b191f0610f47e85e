package series

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/internal/vtk"
	"github.com/halox/halox/results/field"
)

// stepIn matches the step in the name of a file, followed by the number of a piece.
const stepIn = `-([0-9]{12})(-[0-9]+)?`

// fileName returns the name of a file of a step.
func fileName(base string, step int64, ending string) string {
	return fmt.Sprintf("%s-%012d%s", base, step, ending)
}

// removeAfter removes the files of a series whose names have a step after the given one, all if it is 0, and returns
// the steps of the others.
func removeAfter(base, form string, step int64) (steps []int64, err error) {
	entries, err := os.ReadDir(filepath.Dir(base))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := regexp.MustCompile("^" + regexp.QuoteMeta(filepath.Base(base)) + form + "$")
	for _, e := range entries {
		m := names.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		if n, _ := strconv.ParseInt(m[1], 10, 64); step > 0 && n <= step {
			steps = append(steps, n)
		} else {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(base), e.Name())))
		}
	}
	slices.Sort(steps)
	return slices.Compact(steps), err
}

// writeFile writes a file on the root. All processes call it, and encode on all of them: it reads the same boxes in the
// same order, and its errors of reading come second.
func writeFile(
	path string, mine bool, encode func(w io.Writer) (failure, err error),
) (bytes int64, failure, err error) {
	if !mine {
		_, err = encode(io.Discard)
		return 0, nil, err
	}
	file, failure := files.Create(path)
	if failure != nil {
		_, err = encode(io.Discard)
		return 0, failure, err
	}
	count := &counter{Writer: file}
	buffer := bufio.NewWriterSize(count, 1<<20)
	failure, err = encode(buffer)
	if failure = errors.Join(failure, buffer.Flush()); failure != nil || err != nil {
		return 0, errors.Join(failure, file.Abort()), err
	}
	return count.n, file.Commit(), nil
}

// A counter counts the bytes that are written.
type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(data []byte) (n int, err error) {
	n, err = c.Writer.Write(data)
	c.n += int64(n)
	return n, err
}

// writeAll reads the values of all fields in a box to the root, field by field and x fastest, and writes them there.
// After a failure of writing it goes on reading.
func (s *series) writeAll(
	ctx context.Context, box domain.Box, root int, from source, fields []int, write func([]byte) error,
) (failure, err error) {
	for _, field := range fields {
		for _, slab := range slabs(box, s.spec.Element.Size()) {
			values, err := from(ctx, field, slab, root)
			if err != nil {
				return failure, err
			}
			if values != nil && failure == nil {
				failure = write(values)
			}
		}
	}
	return failure, nil
}

// npyFormat writes a NumPy file per field and step.
type npyFormat struct {
	*series
	base string
}

func (f *npyFormat) file() string { return f.base + "-*.npy" }

func (f *npyFormat) base1(field int) string { return f.base + "-" + f.fields[field].Name }

func (f *npyFormat) start(step int64) (all []entry, err error) {
	for i := range f.fields {
		steps, failed := removeAfter(f.base1(i), stepIn+`\.npy`, step)
		err = errors.Join(err, failed)
		if all = nil; i == len(f.fields)-1 {
			for _, n := range steps {
				all = append(all, entry{Step: n})
			}
		}
	}
	return all, err
}

func (f *npyFormat) write(ctx context.Context, e entry, _ []entry, from source) (bytes int64, failure, err error) {
	var shape []int
	for a := f.run.axes() - 1; a >= 0; a-- {
		if ends, ok := f.spec.Ranges[a]; !ok || ends[0] != ends[1] { // not a slice
			shape = append(shape, f.size[a])
		}
	}
	if len(shape) == 0 {
		shape = []int{1}
	}
	mine := f.run.Place.Processes.Rank == 0
	for i := range f.fields {
		n, failed, err := writeFile(fileName(f.base1(i), e.Step, ".npy"), mine, func(w io.Writer) (failure, err error) {
			encoder, failure := field.NewEncoder(w, shape, f.spec.Element)
			failed, err := f.writeAll(ctx, f.box(), 0, from, []int{i}, func(values []byte) error {
				if failure != nil {
					return nil
				}
				return encoder.Write(viewOf[float64](converted(values, f.spec.Element, domain.Float64)))
			})
			if failure = errors.Join(failure, failed); failure == nil && err == nil && mine {
				failure = encoder.Close()
			}
			return failure, err
		})
		if bytes, failure = bytes+n, errors.Join(failure, failed); err != nil {
			return bytes, failure, err
		}
	}
	return bytes, failure, nil
}

func (f *npyFormat) discard(e entry) {
	for i := range f.fields {
		_ = os.Remove(fileName(f.base1(i), e.Step, ".npy"))
	}
}

func (f *npyFormat) commit([]entry) error { return nil }

// vtiFormat writes image data of VTK: a .vti file per step or, if several processes write, a .pvti file and pieces, and
// a .pvd file with all steps.
type vtiFormat struct {
	*series
	base string
}

func (f *vtiFormat) file() string { return f.base + ".pvd" }

// inPieces reports whether each process writes its points.
func (f *vtiFormat) inPieces() bool { return !f.small && !f.run.Place.Processes.IsAlone() }

// name returns the file of a step, within the folder.
func (f *vtiFormat) name(step int64) string {
	ending := ".vti"
	if f.inPieces() {
		ending = ".pvti"
	}
	return fileName(filepath.Base(f.base), step, ending)
}

func (f *vtiFormat) frames(all []entry) (frames []vtk.Frame) {
	for _, e := range all {
		frames = append(frames, vtk.Frame{Time: e.Time, File: cmp.Or(e.File, f.name(e.Step))})
	}
	return frames
}

func (f *vtiFormat) start(step int64) (all []entry, err error) {
	frames, err := vtk.ReadCollection(f.file())
	if step > 0 && err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, one := range frames {
		if m := regexp.MustCompile(stepIn + `\.p?vti$`).FindStringSubmatch(one.File); m != nil {
			if n, _ := strconv.ParseInt(m[1], 10, 64); step > 0 && n <= step {
				all = append(all, entry{n, one.Time, one.File}) // of another number of processes
			}
		}
	}
	_, err = removeAfter(f.base, stepIn+`\.p?vti`, step)
	return all, errors.Join(err, vtk.WriteCollection(f.file(), f.frames(all)))
}

// image describes the points of the series.
func (f *vtiFormat) image() (m vtk.Image) {
	for a := range f.run.axes() {
		m.Size = append(m.Size, f.size[a])
		m.Origin = append(m.Origin, f.run.Coordinate(a, f.lo[a]))
		m.Spacing = append(m.Spacing, f.run.Spacing[a]*float64(f.stride[a]))
	}
	for _, one := range f.fields {
		m.Arrays = append(m.Arrays, vtk.Array{Name: one.Name, Element: f.spec.Element, Unit: one.Unit})
	}
	return m
}

// pieces returns the points of each subdomain that has some.
func (f *vtiFormat) pieces(step int64) (pieces []vtk.Piece, owners []int) {
	place := f.run.Place
	for rank, d := range place.Subdomains {
		if points := f.in(d.Box); !points.Empty() {
			file := fileName(filepath.Base(f.base), step, fmt.Sprintf("-%d.vti", rank))
			pieces, owners = append(pieces, vtk.Piece{Points: points, File: file}), append(owners, place.Owners[rank])
		}
	}
	return pieces, owners
}

func (f *vtiFormat) write(ctx context.Context, e entry, _ []entry, from source) (bytes int64, failure, err error) {
	m, me := f.image(), f.run.Place.Processes.Rank
	one := func(path string, box domain.Box, root int) error {
		path = filepath.Join(filepath.Dir(f.base), path)
		n, failed, err := writeFile(path, me == root, func(w io.Writer) (failure, err error) {
			encoder, failure := vtk.NewEncoder(w, m, box)
			fields := make([]int, len(f.fields))
			for i := range fields {
				fields[i] = i
			}
			failed, err := f.writeAll(ctx, box, root, from, fields, func(values []byte) error {
				if failure != nil {
					return nil
				}
				_, err := encoder.Write(values)
				return err
			})
			if failure = errors.Join(failure, failed); failure == nil && err == nil && me == root {
				failure = encoder.Close()
			}
			return failure, err
		})
		bytes, failure = bytes+n, errors.Join(failure, failed)
		return err
	}
	if !f.inPieces() {
		err = one(f.name(e.Step), f.box(), 0)
		return bytes, failure, err
	}
	pieces, owners := f.pieces(e.Step)
	for i, p := range pieces {
		if err := one(p.File, p.Box(m), owners[i]); err != nil {
			return bytes, failure, err
		}
	}
	return bytes, failure, nil
}

func (f *vtiFormat) discard(e entry) {
	pieces, owners := f.pieces(e.Step)
	for i, p := range pieces {
		if f.inPieces() && owners[i] == f.run.Place.Processes.Rank {
			_ = os.Remove(filepath.Join(filepath.Dir(f.base), p.File))
		}
	}
	if f.run.Place.Processes.Rank == 0 {
		_ = os.Remove(filepath.Join(filepath.Dir(f.base), f.name(e.Step)))
	}
}

func (f *vtiFormat) commit(all []entry) error {
	last := all[len(all)-1]
	if f.inPieces() {
		pieces, _ := f.pieces(last.Step)
		path := filepath.Join(filepath.Dir(f.base), f.name(last.Step))
		if err := vtk.WritePieces(path, f.image(), pieces); err != nil {
			return err
		}
	}
	return vtk.WriteCollection(f.file(), f.frames(all))
}
