package series

import (
	"context"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/results"
)

// A SeriesSpec describes a series: fields at several times.
type SeriesSpec struct {
	Every   Every
	Format  string             // "vti", "zarr" or "npy"
	Folder  string             // folder of the files
	Name    string             // their names begin with it
	Fields  []string           // names of fields
	Ranges  map[int][2]float64 // coordinates of the first and the last point, by axis; default the whole axis
	Coarsen int                // distance between two points, in those of the grid; 0 counts as 1
	Element domain.Element     // element of the files; default that of the fields

	Attributes map[string]any // stored with the series, if the format can
}

// An entry is one time of a series.
type entry struct {
	Step int64
	Time float64
	File string // of format vti; "" if its name is that of this run
}

// A format writes the files of a series. Files are complete or absent.
type format interface {
	// file is the file or folder that a viewer opens.
	file() string
	// start removes the entries after a step, all if it is 0, and returns the others. Only rank 0 calls it.
	start(step int64) ([]entry, error)
	// write writes the values of an entry that follows others. All processes call it. A failure of files does not keep
	// the others from reading; an error is one of reading.
	write(ctx context.Context, e entry, before []entry, from source) (bytes int64, failure, err error)
	// discard removes what this process wrote of an entry.
	discard(e entry)
	// commit makes the last entry visible. Only rank 0 calls it, when all processes have written.
	commit(all []entry) error
}

// A source reads the values of a box of a selection to the root, see selection.gather; field is an index in the fields
// of the series. Values have the element of the series. They are nil on other processes.
type source func(ctx context.Context, field int, box domain.Box, root int) ([]byte, error)

// A series is a series during a run.
type series struct {
	selection
	spec    SeriesSpec
	run     *Run
	fields  []Field
	small   bool // rank 0 reads it all while steps wait
	format  format
	entries []entry
	result  results.Series
}

// selected returns the points of a spec.
func (r *Run) selected(spec *SeriesSpec) (s selection) {
	s.size = r.Place.Grid.Size
	s.stride = domain.Vec{1, 1, 1}
	for a := range r.axes() {
		if ends, ok := spec.Ranges[a]; ok {
			s.lo[a] = r.nearest(a, ends[0])
			s.size[a] = r.nearest(a, ends[1]) - s.lo[a] + 1
		}
		if s.size[a] > 1 && spec.Coarsen > 1 {
			s.stride[a] = spec.Coarsen
			s.size[a] = (s.size[a]-1)/spec.Coarsen + 1
		}
	}
	return s
}

// isDue reports whether the series has an output after a step, which it does not have yet.
func (s *series) isDue(step int64) bool {
	return s.spec.Every.next(s.run.Length)(step-1) == step && s.last() < step
}

// last returns the step of the last entry, -1 if there is none.
func (s *series) last() int64 {
	if n := len(s.entries); n > 0 {
		return s.entries[n-1].Step
	}
	return -1
}

// read returns a source that reads fields.
func (s *series) read(fields []*halo.Field) source {
	return func(ctx context.Context, field int, box domain.Box, root int) ([]byte, error) {
		f := fields[field]
		mine := f.Placement.Processes.Rank == root
		var values []byte
		if mine {
			values = make([]byte, box.Points()*int64(f.Spec.Element.Size()))
		}
		if err := s.gather(ctx, values, f, box, root); err != nil || !mine {
			return nil, err
		}
		return converted(values, f.Spec.Element, s.spec.Element), nil
	}
}

// memory reads all values to rank 0 and returns them as a source.
func (s *series) memory(ctx context.Context) (source, error) {
	var all [][]byte
	from := s.read(s.now())
	for i := range s.fields {
		values, err := from(ctx, i, s.box(), 0)
		if err != nil {
			return nil, err
		}
		all = append(all, values)
	}
	return func(_ context.Context, field int, box domain.Box, root int) ([]byte, error) {
		if s.run.Place.Processes.Rank != root {
			return nil, nil
		}
		return cutFrom(all[field], s.size, box, s.spec.Element.Size()), nil
	}, nil
}

// cutFrom returns the values of a box of an array, x fastest.
func cutFrom(values []byte, size domain.Vec, box domain.Box, element int) []byte {
	n := box.Size()
	if n[0] == size[0] && n[1] == size[1] {
		plane := size[0] * size[1] * element
		return values[box.Lo[2]*plane : box.Hi[2]*plane]
	}
	part := make([]byte, 0, n.Product()*int64(element))
	for k := box.Lo[2]; k < box.Hi[2]; k++ {
		for j := box.Lo[1]; j < box.Hi[1]; j++ {
			at := ((k*size[1]+j)*size[0] + box.Lo[0]) * element
			part = append(part, values[at:at+n[0]*element]...)
		}
	}
	return part
}

func (s *series) now() (all []*halo.Field) {
	for _, f := range s.fields {
		all = append(all, f.Now())
	}
	return all
}
