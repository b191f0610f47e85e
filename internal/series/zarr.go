package series

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/zarr"
)

// zarrFormat writes a Zarr group with an array per field, whose first axis is time, and arrays of coordinates: step,
// time, x, y and z.
type zarrFormat struct {
	*series
	base string
}

func (f *zarrFormat) file() string { return f.base + ".zarr" }

// marker is the attribute of a group that belongs to a series.
const marker = "halox_series"

// array returns the array of a field, with so many levels.
func (f *zarrFormat) array(field int, levels int) (*zarr.Array, error) {
	a, err := zarr.New(filepath.Join(f.file(), f.fields[field].Name), zarr.Spec{
		Size: f.size[:f.run.axes()], Element: f.spec.Element, Series: true, Zstd: 1})
	if err == nil {
		a.Levels = levels
	}
	return a, err
}

func (f *zarrFormat) start(step int64) (all []entry, err error) {
	attributes, err := zarr.ReadGroup(f.file())
	_, missing := os.Stat(f.file())
	exists := !errors.Is(missing, fs.ErrNotExist)
	var known map[string]any
	if exists && (err != nil || json.Unmarshal(attributes, &known) != nil || known[marker] == nil) {
		return nil, errors.Join(errors.New("must be a series, to be replaced or continued"), err)
	}
	if step == 0 || !exists {
		if err := os.RemoveAll(f.file()); err != nil {
			return nil, err
		}
		return nil, f.begin()
	}
	steps, err := f.clock("step")
	times, failed := f.clock("time")
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	for i, n := range steps {
		if i < len(times) && int64(n) <= step {
			all = append(all, entry{Step: int64(n), Time: times[i]})
		}
	}
	for i := range f.fields {
		a, err := zarr.Open(filepath.Join(f.file(), f.fields[i].Name))
		if err == nil {
			err = a.Check(f.size[:f.run.axes()], f.spec.Element)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, errors.Join(f.publish(all), f.removeFrom(len(all)))
}

// clock returns the steps or the times of the entries.
func (f *zarrFormat) clock(name string) ([]float64, error) {
	a, err := zarr.Open(filepath.Join(f.file(), name))
	if errors.Is(err, fs.ErrNotExist) { // there are no entries
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	values := make([]float64, a.Size[0])
	return values, zarr.ReadValues(a, values, 0, domain.Box{Hi: domain.Vec{len(values), 1, 1}})
}

// begin writes the group and its coordinates, without entries.
func (f *zarrFormat) begin() error {
	attributes := map[string]any{marker: 1}
	for name, value := range f.spec.Attributes {
		attributes[name] = value
	}
	text, err := json.Marshal(attributes)
	if err == nil {
		_, err = zarr.WriteGroup(f.file(), text)
	}
	for a := range f.run.axes() {
		if err == nil {
			name, values := "xyz"[a:a+1], make([]float64, f.size[a])
			for i := range values {
				values[i] = f.run.Coordinate(a, f.lo[a]+i*f.stride[a])
			}
			err = zarr.WriteCoordinates(filepath.Join(f.file(), name), name, values)
		}
	}
	return errors.Join(err, f.publish(nil))
}

// publish makes entries visible, their steps last.
func (f *zarrFormat) publish(all []entry) error {
	for i := range f.fields {
		a, err := f.array(i, len(all))
		if err == nil {
			_, err = a.Commit()
		}
		if err != nil {
			return err
		}
	}
	steps, times := make([]float64, len(all)), make([]float64, len(all))
	for i, e := range all {
		steps[i], times[i] = float64(e.Step), e.Time
	}
	if len(all) == 0 {
		return errors.Join(os.RemoveAll(filepath.Join(f.file(), "step")), os.RemoveAll(filepath.Join(f.file(), "time")))
	}
	err := zarr.WriteCoordinates(filepath.Join(f.file(), "time"), "time", times)
	if err == nil {
		err = zarr.WriteCoordinates(filepath.Join(f.file(), "step"), "time", steps)
	}
	return err
}

// removeFrom removes the files of levels from one on, which no array shows.
func (f *zarrFormat) removeFrom(level int) (err error) {
	for _, one := range f.fields {
		folder := filepath.Join(f.file(), one.Name, "c")
		entries, failed := os.ReadDir(folder)
		if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
		for _, e := range entries {
			if n, failed := strconv.Atoi(e.Name()); failed == nil && n >= level {
				err = errors.Join(err, os.RemoveAll(filepath.Join(folder, e.Name())))
			}
		}
	}
	return err
}

// writers is how many shards a process writes at the same time.
const writers = 4

func (f *zarrFormat) write(
	ctx context.Context, _ entry, before []entry, from source,
) (bytes int64, failure, err error) {
	var group errgroup.Group
	group.SetLimit(writers)
	var size atomic.Int64
	put := func(a *zarr.Array, shard int, values []byte) {
		group.Go(func() error {
			box := a.Shard(shard)
			file, err := a.WriteShard(len(before), shard, func(dst []byte, part domain.Box) error {
				at := domain.Box{Lo: part.Lo.Sub(box.Lo), Hi: part.Hi.Sub(box.Lo)}
				copy(dst, cutFrom(values, box.Size(), at, a.Element.Size()))
				return nil
			})
			size.Add(file.Size)
			return err
		})
	}
	err = f.eachShard(func(a *zarr.Array, field, shard, root int) error {
		values, err := from(ctx, field, a.Shard(shard), root)
		if values != nil {
			put(a, shard, values)
		}
		return err
	})
	failure = group.Wait()
	return size.Load(), failure, err
}

// eachShard calls do for every shard of every field, with the process that writes it.
func (f *zarrFormat) eachShard(do func(a *zarr.Array, field, shard, root int) error) error {
	place := f.run.Place
	for i := range f.fields {
		a, err := f.array(i, 1)
		if err != nil {
			return err
		}
		for shard := range a.Shards() {
			root := 0
			for rank, d := range place.Subdomains {
				if !f.small && d.Box.Contains(f.inGrid(a.Shard(shard)).Lo) {
					root = place.Owners[rank]
				}
			}
			if err := do(a, i, shard, root); err != nil {
				return fmt.Errorf("field %s: %w", f.fields[i].Name, err)
			}
		}
	}
	return nil
}

// discard leaves the files: no array shows them, and the next entry replaces them.
func (f *zarrFormat) discard(entry) {}

func (f *zarrFormat) commit(all []entry) error { return f.publish(all) }
