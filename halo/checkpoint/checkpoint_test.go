package checkpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// value is byte i of a point of an array at a step.
func value(array string, step int64, at domain.Vec, i int) byte {
	n := uint64(at[0]) + 1000*uint64(at[1]) + 1000000*uint64(at[2]) + uint64(step)<<40 + uint64(i)<<56 + uint64(array[0])<<32
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9 // SplitMix64
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return byte(n >> 56)
}

// components returns a field, or the components of a struct of arrays.
func components(t test.TB, f *halo.Field) []*halo.Field {
	count, _ := f.Spec.Arrays()
	if count == 1 {
		return []*halo.Field{f}
	}
	var all []*halo.Field
	for c := range count {
		all = append(all, test.Must(f.Component(c))(t))
	}
	return all
}

// fill sets all points of an array to their values at a step, and ghosts to others.
func fill(t test.TB, a checkpoint.Array, step int64) {
	for c, f := range components(t, a.Field) {
		_, bytes := f.Spec.Arrays()
		test.Check(t, halo.Fill(f, func(rank int) halo.Row[byte] {
			own := f.Cut.Subdomains[rank].Box
			return func(row []byte, at domain.Vec) {
				for i := range row {
					p := domain.Vec{at[0] + i/bytes, at[1], at[2]}
					if row[i] = 0xEE; own.Contains(p) {
						row[i] = value(a.Name, step, p, 40*c+i%bytes)
					}
				}
			}
		}))
		if f != a.Field {
			test.Check(t, f.Close())
		}
	}
}

// compare fails the test unless the owned points of this process have their values at a step.
func compare(t test.TB, a checkpoint.Array, step int64) {
	t.Helper()
	for c, f := range components(t, a.Field) {
		_, bytes := f.Spec.Arrays()
		for rank, sub := range f.Cut.Subdomains {
			if !f.Placement.IsLocal(rank) {
				continue
			}
			got := make([]byte, sub.Box.Points()*int64(bytes))
			test.Check(t, halo.Read(got, f, sub.Box))
			k := 0
			for z := sub.Box.Lo[2]; z < sub.Box.Hi[2]; z++ {
				for y := sub.Box.Lo[1]; y < sub.Box.Hi[1]; y++ {
					for x := sub.Box.Lo[0]; x < sub.Box.Hi[0]; x++ {
						for i := range bytes {
							if want := value(a.Name, step, domain.Vec{x, y, z}, 40*c+i); got[k] != want {
								t.Fatal(fmt.Sprintf("array %s, component %d, point %v, byte %d: got %d, want %d", a.Name, c,
									domain.Vec{x, y, z}, i, got[k], want))
							}
							k++
						}
					}
				}
			}
		}
		if f != a.Field {
			test.Check(t, f.Close())
		}
	}
}

// specs are fields of all kinds.
func specs(dims int) []halo.Spec {
	stagger := make([]bool, dims)
	stagger[dims-1] = true
	width := domain.UniformRadius(dims, 1)
	return []halo.Spec{
		{Name: "u", Element: halo.Float64, Width: width},
		{Name: "p", Element: halo.Float32, Stagger: stagger},
		{Name: "v", Element: halo.Float32, Components: 3, Width: width},
		{Name: "e", Element: halo.Float64, Components: 2, SoA: true, Width: width},
		{Name: "n", Element: halo.Int32},
		{Name: "m", Element: domain.Uint8},
		{Name: "z", Element: domain.Complex128},
		{Name: "b", Element: domain.Bytes(5), Components: 2},
	}
}

// onDevices places a grid on the first devices of a set.
func onDevices(t testing.TB, devices []*streams.Device, size []int, parts domain.Vec) *halo.Placement {
	t.Helper()
	grid := test.Must(domain.NewGrid(size, nil))(t)
	cut := test.Must(domain.Decompose(grid, parts))(t)
	var at []*streams.Device
	for i := range cut.Subdomains {
		at = append(at, devices[i%len(devices)])
	}
	return test.Must(halo.Place(cut, at))(t)
}

// arraysOf makes fields of the specs, and names them as those.
func arraysOf(t testing.TB, p *halo.Placement, specs ...halo.Spec) (all []checkpoint.Array) {
	t.Helper()
	for _, s := range specs {
		f := test.Must(halo.NewField(p, s))(t)
		t.Cleanup(func() { test.Report(t, f.Close()) })
		all = append(all, checkpoint.Array{Name: s.Name + "@-1", Field: f})
	}
	return all
}

// attributes is what tests store with a checkpoint.
type attributes struct {
	Seed    uint64    `json:"seed"`
	History []float64 `json:"history"`
}

func attributesOf(step int64) attributes {
	return attributes{1<<63 + uint64(step), []float64{0.1, float64(step)}}
}

// writeSteps writes checkpoints of steps, one after another.
func writeSteps(t testing.TB, o checkpoint.Options, arrays []checkpoint.Array, steps ...int64) {
	t.Helper()
	w := test.Must(checkpoint.NewWriter(t.Context(), o, arrays...))(t)
	for _, step := range steps {
		for _, a := range arrays {
			fill(t, a, step)
		}
		test.Check(t, w.Write(t.Context(), step, attributesOf(step), arrays...), w.Wait(t.Context()))
		if s := w.Status(); s.Step != step || s.Err != nil || s.Bytes == 0 || s.Writing {
			t.Fatalf("status %+v", s)
		}
	}
	test.Check(t, w.Close(t.Context()))
}

// finds returns the checkpoint that Find returns, which must be of a step.
func finds(t testing.TB, folder string, step int64, rejected ...string) *checkpoint.Checkpoint {
	t.Helper()
	c, why, err := checkpoint.Find(t.Context(), nil, folder)
	test.Check(t, err)
	if c.Step != step || len(why) != len(rejected) {
		t.Fatalf("found step %d, want %d; rejected %v, want %q", c.Step, step, why, rejected)
	}
	for i, says := range rejected {
		test.Says(t, why[i], says)
	}
	return c
}

// Fields of all kinds come back with the same bits on other decompositions and devices, from shards that do not depend
// on the decomposition.
func TestOtherDecompositions(t *testing.T) {
	testdevices.InTurn(t, 1, 4)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // on GPUs several shards are written at once
	testdevices.EachKernel(t, 4, func(t *testing.T, set *testdevices.Set) {
		for _, tc := range []struct {
			name       string
			size       []int
			parts, new []domain.Vec
		}{
			{"1-D", []int{101}, []domain.Vec{{1, 1, 1}, {3, 1, 1}}, []domain.Vec{{4, 1, 1}, {2, 1, 1}}},
			{"2-D", []int{33, 29}, []domain.Vec{{1, 4, 1}, {2, 2, 1}}, []domain.Vec{{3, 1, 1}, {1, 1, 1}}},
			{"3-D", []int{17, 19, 23}, []domain.Vec{{1, 1, 3}, {2, 2, 1}}, []domain.Vec{{1, 2, 2}, {1, 1, 1}, {3, 1, 1}}},
		} {
			for i, parts := range tc.parts {
				t.Run(fmt.Sprintf("%s/%v", tc.name, parts), func(t *testing.T) {
					o := checkpoint.Small(checkpoint.Options{Folder: filepath.Join(t.TempDir(), "new", "folder"),
						Compress: []checkpoint.Compression{checkpoint.Zstd, checkpoint.None}[i]})
					dims := len(tc.size)
					if dims == 1 {
						dims = 2 // with one row
					}
					arrays := arraysOf(t, onDevices(t, set.Devices, tc.size, parts), specs(dims)...)
					writeSteps(t, o, arrays, 7)
					c := finds(t, o.Folder, 7)
					test.Check(t, c.Verify(t.Context()))
					var got attributes
					if test.Check(t, c.Attributes(&got)); !slices.Equal(got.History, attributesOf(7).History) || got.Seed != attributesOf(7).Seed {
						t.Errorf("attributes %+v", got)
					}
					if len(c.Files) < 18 {
						t.Errorf("%d files: too few shards for a test", len(c.Files))
					}
					for _, parts := range tc.new {
						for _, a := range arraysOf(t, onDevices(t, set.Devices, tc.size, parts), specs(dims)...) {
							test.Check(t, c.Read(t.Context(), a.Name, a.Field))
							compare(t, a, 7)
						}
					}
				})
			}
		}
	})
}

// The names and checksums of all files are the same for any decomposition.
func TestFilesDoNotDependOnDecomposition(t *testing.T) {
	set := testdevices.Host(t, 4).Devices
	files := map[string]string{}
	for _, parts := range []domain.Vec{{1, 1, 1}, {1, 2, 2}, {3, 1, 1}} {
		o := checkpoint.Small(checkpoint.Options{Folder: t.TempDir(), Compress: checkpoint.Zstd})
		writeSteps(t, o, arraysOf(t, onDevices(t, set, []int{17, 19, 23}, parts), specs(3)...), 1)
		c := finds(t, o.Folder, 1)
		for _, f := range c.Files {
			sum := fmt.Sprint(f.Size, f.CRC32)
			if files[f.Name] != "" && files[f.Name] != sum {
				t.Errorf("parts %v: %s differs", parts, f.Name)
			}
			files[f.Name] = sum
		}
		if len(files) != len(c.Files) {
			t.Errorf("parts %v: %d files, want %d", parts, len(c.Files), len(files))
		}
	}
}

// Fields that do not fit an array are rejected, and so are wrong arguments.
func TestMisfits(t *testing.T) {
	set, ctx := testdevices.Host(t, 2).Devices, t.Context()
	p := onDevices(t, set, []int{8, 6}, domain.Vec{1, 2, 1})
	u := arraysOf(t, p, halo.Spec{Name: "u", Element: halo.Float64})[0]
	constant := arraysOf(t, p, halo.Spec{Name: "k", Element: halo.Float64, Constant: []bool{false, true}})[0]
	other := arraysOf(t, onDevices(t, set, []int{8, 6}, domain.Vec{2, 1, 1}), halo.Spec{Name: "o", Element: halo.Float64})[0]
	pair := arraysOf(t, p, halo.Spec{Name: "e", Element: halo.Float64, Components: 2, SoA: true})[0]
	folder := t.TempDir()
	o := checkpoint.Options{Folder: folder, Run: "mine"}
	w := test.Must(checkpoint.NewWriter(ctx, o, u))(t)
	test.Check(t, w.Write(ctx, 3, attributes{}, u), w.Wait(ctx))
	open := func(o checkpoint.Options, arrays ...checkpoint.Array) error {
		return test.ErrorOf(checkpoint.NewWriter(ctx, o, arrays...))
	}
	c := finds(t, folder, 3)
	read := func(name string, s halo.Spec, size ...int) error {
		s.Name = "f"
		return c.Read(ctx, name, arraysOf(t, onDevices(t, set, size, domain.Vec{1, 1, 1}), s)[0].Field)
	}
	for says, err := range map[string]error{
		"must have at least one array":                                open(o),
		`must be up to 200 letters, digits or "_@.+-", got "a/b"`:     open(o, checkpoint.Array{Name: "a/b", Field: u.Field}),
		`digits or "_@.+-", got "..a"`:                                open(o, checkpoint.Array{Name: "..a", Field: u.Field}),
		"the field is nil":                                            open(o, checkpoint.Array{Name: "u"}),
		"must not be constant along an axis":                          open(o, constant),
		`name "u@-1" is given twice`:                                  open(o, u, u),
		`name "e@-1.1" is given twice`:                                open(o, pair, checkpoint.Array{Name: "e@-1.1", Field: u.Field}),
		`array "o@-1": must have the placement of the others`:         open(o, u, other),
		"Options.Folder must not be empty":                            open(checkpoint.Options{}, u),
		"Options.Keep: must be at least 1, got -1":                    open(checkpoint.Options{Folder: folder, Keep: -1}, u),
		`must be auto, none or zstd, got "lz4"`:                       open(checkpoint.Options{Folder: folder, Compress: "lz4"}, u),
		"another process writes checkpoints to it":                    open(o, u),
		"must have 1 arrays, got 2":                                   w.Write(ctx, 4, attributes{}, u, pair),
		`array 0: must be "u@-1" as in NewWriter, got "e@-1"`:         w.Write(ctx, 4, attributes{}, pair),
		"decompositions and devices must be equal":                    w.Write(ctx, 4, attributes{}, checkpoint.Array{Name: "u@-1", Field: pair.Field}),
		"step: must be at least 0, got -1":                            w.Write(ctx, -1, attributes{}, u),
		"attributes: must be an object in JSON, got 5":                w.Write(ctx, 4, 5, u),
		"attributes: json: unsupported type":                          w.Write(ctx, 4, func() {}, u),
		"size: must be 8 x 7 points, got 8 x 6":                       read("u@-1", halo.Spec{Element: halo.Float64}, 8, 7),
		"must have 1 components of float32, got 1 of float64":         read("u@-1", halo.Spec{Element: halo.Float32}, 8, 6),
		"must have 2 components of float64, got 1 of float64":         read("u@-1", halo.Spec{Element: halo.Float64, Components: 2}, 8, 6),
		filepath.Join("step-000000000003", "w", "zarr.json"):          read("w", halo.Spec{Element: halo.Float64}, 8, 6),
		filepath.Join("step-000000000003", "u@-1.0", "zarr.json: no"): read("u@-1", halo.Spec{Element: halo.Float64, Components: 2, SoA: true}, 8, 6),
	} {
		test.Says(t, err, says)
	}
	test.Check(t, w.Close(ctx))
	test.Is(t, open(checkpoint.Options{Folder: folder}, u), checkpoint.ErrOtherRun)
	test.Says(t, open(checkpoint.Options{Folder: folder, Run: "yours"}, u), "it has checkpoints of another run, such as step-000000000003")
	_, _, err := checkpoint.Find(ctx, mpi.Alone(), t.TempDir())
	test.Is(t, err, checkpoint.ErrNone)
	_, _, err = checkpoint.Find(ctx, nil, filepath.Join(folder, "nowhere"))
	test.Is(t, err, checkpoint.ErrNone)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, _, err = checkpoint.Find(canceled, nil, folder)
	test.Is(t, err, context.Canceled)
	// a run that continues takes the name of the run
	w = test.Must(checkpoint.NewWriter(ctx, checkpoint.Options{Folder: folder, Run: c.Run}, u))(t)
	test.Check(t, w.Close(ctx))
}

// Every kind of damage is named, and the checkpoint before is found.
func TestDamage(t *testing.T) {
	set := testdevices.Host(t, 2).Devices
	arrays := arraysOf(t, onDevices(t, set, []int{16, 12, 10}, domain.Vec{1, 1, 2}), halo.Spec{Name: "u", Element: halo.Float64})
	source := t.TempDir()
	writeSteps(t, checkpoint.Small(checkpoint.Options{Folder: source, Compress: checkpoint.None}), arrays, 10, 20)
	other := t.TempDir()
	writeSteps(t, checkpoint.Small(checkpoint.Options{Folder: other, Compress: checkpoint.None}), arrays, 20, 30)
	shard := filepath.Join("u@-1", "c", "0", "0", "0")
	edit := func(change func(text string) string) func(path string) error {
		return func(path string) error {
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, []byte(change(string(text))), 0o666))
		}
	}
	flip := func(at int) func(path string) error {
		return edit(func(s string) string {
			b := []byte(s)
			b[(at+len(b))%len(b)] ^= 4
			return string(b)
		})
	}
	for _, tc := range []struct {
		name, file string
		change     func(path string) error
		says       string
		unseen     bool // by Open
	}{
		{"a flipped byte of values", shard, flip(1000), "u@-1/c/0/0/0: crc32: must be ", true},
		{"a flipped byte of an index", shard, flip(-7), "u@-1/c/0/0/0: crc32: must be ", true},
		{"two shards swapped", shard, func(path string) error {
			other := filepath.Join(filepath.Dir(path), "1")
			return errors.Join(os.Rename(path, path+"0"), os.Rename(other, path), os.Rename(path+"0", other))
		}, ": crc32: must be ", true},
		{"a cut shard", shard, func(path string) error { return os.Truncate(path, 100) }, "u@-1/c/0/0/0: must have ", false},
		{"a missing shard", shard, os.Remove, "u@-1/c/0/0/0: no such file or directory", false},
		{"a shard that is a folder", shard, func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o777)) },
			"u@-1/c/0/0/0: it is a folder", false},
		{"a flipped byte of attributes", "zarr.json", flip(60), "zarr.json: crc32: must be ", false},
		{"a flipped byte of an array", filepath.Join("u@-1", "zarr.json"), flip(60), "u@-1/zarr.json: crc32: must be ", false},
		{"no manifest", "manifest.json", os.Remove, "manifest.json: no such file or directory", false},
		{"a cut manifest", "manifest.json", func(path string) error { return os.Truncate(path, 200) }, "manifest.json: unexpected end of JSON", false},
		{"an empty manifest", "manifest.json", func(path string) error { return os.Truncate(path, 0) }, "manifest.json: unexpected end of JSON", false},
		{"a flipped byte of the manifest", "manifest.json", edit(func(s string) string { return strings.Replace(s, `"step": 20`, `"step": 21`, 1) }),
			"manifest.json: crc32: must be ", false},
		{"a manifest without a checksum", "manifest.json", edit(func(string) string { return `{"format": 1, "step": 20}` }),
			"manifest.json: crc32: must be its last entry", false},
		{"a newer format", "manifest.json", edit(func(s string) string { return strings.Replace(s, `"format": 1`, `"format": 2`, 1) }),
			"manifest.json: format: must be at most 1, got 2 of a newer version of halox", false},
		{"the manifest of another run", "manifest.json", func(path string) error {
			text, err := os.ReadFile(filepath.Join(other, "step-000000000020", "manifest.json"))
			return errors.Join(err, os.WriteFile(path, text, 0o666), flip(1000)(filepath.Join(filepath.Dir(path), shard)))
		}, "u@-1/c/0/0/0: crc32: must be ", true},
		{"the manifest of another step", "manifest.json", func(path string) error {
			text, err := os.ReadFile(filepath.Join(other, "step-000000000030", "manifest.json"))
			return errors.Join(err, os.WriteFile(path, text, 0o666))
		}, "manifest.json: step: must be 20 as in the name of the folder, got 30", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			folder := t.TempDir()
			test.Check(t, os.CopyFS(folder, os.DirFS(source)))
			finds(t, folder, 20)
			newest := filepath.Join(folder, "step-000000000020")
			test.Check(t, tc.change(filepath.Join(newest, tc.file)))
			c := finds(t, folder, 10, tc.says)
			test.Check(t, c.Read(t.Context(), "u@-1", arrays[0].Field))
			compare(t, arrays[0], 10)
			opened, err := checkpoint.Open(newest)
			if tc.unseen {
				test.Check(t, err)
				err = opened.Verify(t.Context())
			}
			test.Says(t, err, tc.says)
			test.Says(t, err, "checkpoint: "+newest)
			all := test.Must(checkpoint.List(folder))(t)
			if len(all) != 2 || all[0].Step != 20 || (all[0].Err == nil) != tc.unseen || all[1].Step != 10 || all[1].Err != nil {
				t.Errorf("listed %+v", all)
			}
		})
	}
}

// What is stored can be described without a field.
func TestArrays(t *testing.T) {
	folder := t.TempDir()
	p := onDevices(t, testdevices.Host(t, 1).Devices, []int{8, 6}, domain.Vec{1, 1, 1})
	writeSteps(t, checkpoint.Options{Folder: folder, Compress: checkpoint.Zstd}, arraysOf(t, p,
		halo.Spec{Name: "v", Element: halo.Float32, Components: 3}, halo.Spec{Name: "e", Element: halo.Int64, Components: 2, SoA: true}), 5)
	all := test.Must(finds(t, folder, 5).Arrays())(t)
	slices.SortFunc(all, func(a, b checkpoint.ArrayInfo) int { return strings.Compare(a.Name, b.Name) })
	for i := range all {
		if all[i].Bytes < 300 {
			t.Errorf("%+v", all[i])
		}
		all[i].Bytes = 0
	}
	got := string(test.Must(json.Marshal(all))(t))
	want := `[{"name":"e@-1.0","size":[8,6],"element":"int64","components":1,"zstd":true,"bytes":0},` +
		`{"name":"e@-1.1","size":[8,6],"element":"int64","components":1,"zstd":true,"bytes":0},` +
		`{"name":"v@-1","size":[24,6],"element":"float32","components":3,"zstd":true,"bytes":0}]`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
