package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/zarr"
)

// Array is a field and its name in a checkpoint.
type Array struct {
	Name  string      // up to 200 letters, digits and characters of "_@.+-", the first not a dot
	Field *halo.Field // of any Spec that is not constant along an axis
}

var validName = regexp.MustCompile(`^[\pL\pN_@+-][\pL\pN_@.+-]{0,199}$`)

// check returns an error unless the arrays can be in one checkpoint.
func check(arrays []Array) error {
	if len(arrays) == 0 {
		return errors.New("checkpoint: must have at least one array")
	}
	seen := map[string]bool{manifestName: true, "zarr.json": true}
	for _, a := range arrays {
		switch {
		case !validName.MatchString(a.Name):
			return fmt.Errorf(`checkpoint: name of an array: must be up to 200 letters, digits or "_@.+-", got %q`,
				a.Name)
		case a.Field.Usable() != nil:
			return fmt.Errorf("checkpoint: array %q: %w", a.Name, a.Field.Usable())
		case a.Field.Spec.IsConstant():
			return fmt.Errorf("checkpoint: array %q: must not be constant along an axis: such fields are only read",
				a.Name)
		case a.Field.Placement != arrays[0].Field.Placement:
			return fmt.Errorf("checkpoint: array %q: must have the placement of the others", a.Name)
		}
		for _, name := range storedNames(a) {
			if seen[name] {
				return fmt.Errorf("checkpoint: name %q is given twice", name)
			}
			seen[name] = true
		}
	}
	return nil
}

// fieldsOf returns the fields of arrays.
func fieldsOf(arrays []Array) (fields []*halo.Field) {
	for _, a := range arrays {
		fields = append(fields, a.Field)
	}
	return fields
}

// storedNames returns the names of the stored arrays of a field: one for each component of a struct of arrays.
func storedNames(a Array) []string {
	count, _ := a.Field.Spec.Arrays()
	if count == 1 {
		return []string{a.Name}
	}
	var names []string
	for c := range count {
		names = append(names, fmt.Sprintf("%s.%d", a.Name, c))
	}
	return names
}

// layout is what the attributes of a stored array say of its field. The components of a point are consecutive along x.
type layout struct {
	Element    string `json:"element"`
	Components int    `json:"components"`
}

// part is a field of one array per subdomain, as it is stored.
type part struct {
	name    string
	field   *halo.Field
	layout  layout
	element domain.Element // of stored values
	values  int            // per point
	bytes   int            // per point
}

// parts returns the stored arrays of fields. Call done when they are no longer used.
func parts(arrays ...Array) (all []part, done func() error, err error) {
	var components []*halo.Field
	done = func() (err error) {
		for _, f := range components {
			err = errors.Join(err, f.Close())
		}
		return err
	}
	for _, a := range arrays {
		for c, name := range storedNames(a) {
			f := a.Field
			if name != a.Name {
				if f, err = f.Component(c); err != nil {
					return nil, nil, errors.Join(err, done())
				}
				components = append(components, f)
			}
			all = append(all, newPart(name, f))
		}
	}
	return all, done, nil
}

func newPart(name string, f *halo.Field) part {
	_, bytes := f.Spec.Arrays()
	p := part{name: name, field: f, element: f.Spec.Element, bytes: bytes,
		layout: layout{string(f.Spec.Element), max(1, f.Spec.Components)}}
	if f.Spec.IsTyped() {
		p.layout.Element = f.Spec.Type.String()
	}
	if !p.element.IsNumber() { // also ""
		p.element = domain.Uint8
	}
	p.values = bytes / p.element.Size()
	return p
}

// size returns the size of the stored array, x first.
func (p part) size() []int {
	grid := p.field.Cut.Grid
	size := slices.Clone(grid.Size[:grid.Dims])
	size[0] *= p.values
	return size
}

// points returns the points of the grid that have values in a box of the stored array.
func (p part) points(values domain.Box) domain.Box {
	values.Lo[0] /= p.values
	values.Hi[0] = (values.Hi[0] + p.values - 1) / p.values
	return values
}

// beginningIn returns the points of the grid whose first values are in a box of the stored array: those of all shards
// are the points of the grid, each once.
func (p part) beginningIn(values domain.Box) domain.Box {
	values.Lo[0] = (values.Lo[0] + p.values - 1) / p.values
	values.Hi[0] = (values.Hi[0] + p.values - 1) / p.values
	return values
}

// valuesOf returns the box of the values of points.
func (p part) valuesOf(points domain.Box) domain.Box {
	points.Lo[0] *= p.values
	points.Hi[0] *= p.values
	return points
}

// create returns a new stored array in the folder of a checkpoint. level is that of zstd.
func (p part) create(folder string, level, chunkBytes, shardBytes int) (*zarr.Array, error) {
	attributes, err := json.Marshal(p.layout)
	if err != nil {
		return nil, err
	}
	return zarr.New(filepath.Join(folder, p.name), zarr.Spec{Size: p.size(), Element: p.element, Zstd: level,
		Attributes: attributes, Chunk: chunkBytes, Shard: shardBytes})
}

// open returns the stored array in the folder of a checkpoint, which must have the size and the values of the field.
func (p part) open(folder string) (*zarr.Array, error) {
	a, err := zarr.Open(filepath.Join(folder, p.name))
	if err != nil {
		return nil, err
	}
	var stored layout
	if err := json.Unmarshal(a.Attributes, &stored); err != nil {
		return nil, fmt.Errorf("attributes of array %s: %w", p.name, err)
	}
	if stored != p.layout {
		return nil, fmt.Errorf("array %s: must have %d components of %s, got %d of %s", p.name, p.layout.Components,
			p.layout.Element, stored.Components, stored.Element)
	}
	return a, a.Check(p.size(), p.element)
}

// task is a shard, and the process that writes it.
type task struct {
	part, shard, owner int
	values, points     domain.Box // of the stored array and, rounded up to whole points, of the grid
	main               int        // the subdomain with most of the points
}

// divide assigns the shards of all arrays to processes: to that with most of the points, so that few are sent, unless
// it has more than its share of the bytes. The order alternates between subdomains, so that all devices are busy. All
// processes get the same result.
func divide(all []part, arrays []*zarr.Array) (tasks []task) {
	place := all[0].field.Placement
	bytes := func(t task) int64 { return t.points.Points() * int64(all[t.part].bytes) }
	var total, largest int64
	for i, a := range arrays {
		for shard := range a.Shards() {
			values := a.Shard(shard)
			t := task{part: i, shard: shard, values: values, points: all[i].points(values)}
			total, largest = total+bytes(t), max(largest, bytes(t))
			tasks = append(tasks, t)
		}
	}
	loads, turns := make([]int64, place.Processes.Size()), make([]int, len(place.Subdomains))
	turnOf := make([]int, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		share, most := make([]int64, len(loads)), int64(0)
		for rank, sub := range all[t.part].field.Cut.Subdomains {
			n := sub.Box.Intersect(t.points).Points()
			share[place.Owners[rank]] += n
			if n > most {
				t.main, most = rank, n
			}
		}
		least, best := 0, -1
		for p, load := range loads {
			if load < loads[least] {
				least = p
			}
			fits := load+bytes(*t) <= total/int64(len(loads))+largest
			if fits && share[p] > 0 && (best < 0 || share[p] > share[best]) {
				best = p
			}
		}
		if t.owner = best; best < 0 {
			t.owner = least
		}
		loads[t.owner] += bytes(*t)
		turnOf[i] = turns[t.main]
		turns[t.main]++
	}
	order := make([]int, len(tasks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return turnOf[i] - turnOf[j] })
	sorted := make([]task, len(tasks))
	for to, from := range order {
		sorted[to] = tasks[from]
	}
	return sorted
}

// copyBox copies the bytes of the points of a box between two blocks, which hold the points of their boxes.
func copyBox(box domain.Box, dst []byte, to domain.Box, src []byte, from domain.Box, bytes int) {
	row := box.Size()[0] * bytes
	at := func(in domain.Box, y, z int) int {
		n, p := in.Size(), domain.Vec{box.Lo[0], y, z}.Sub(in.Lo)
		return ((p[2]*n[1]+p[1])*n[0] + p[0]) * bytes
	}
	for z := box.Lo[2]; z < box.Hi[2]; z++ {
		for y := box.Lo[1]; y < box.Hi[1]; y++ {
			copy(dst[at(to, y, z):][:row], src[at(from, y, z):])
		}
	}
}
