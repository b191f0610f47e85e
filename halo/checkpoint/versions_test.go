package checkpoint_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
)

var update = flag.Bool("update", false, "store a checkpoint of a new format version")

// One stored checkpoint of each format version is read. They are never changed: with -update, one of a new version is
// added.
func TestStoredVersions(t *testing.T) {
	p := onDevices(t, testdevices.Host(t, 2).Devices, []int{11, 9, 7}, domain.Vec{1, 2, 1})
	arrays := arraysOf(t, p, append(specs(3), halo.Spec{Name: "zero", Element: halo.Float64})...)
	zero := arrays[len(arrays)-1]
	test.Check(t, halo.FillPoints(zero.Field, func(domain.Vec) float64 { return 0 }))
	folder := func(version int) string { return filepath.Join("testdata", fmt.Sprint("v", version)) }
	if newest := folder(checkpoint.Format); *update {
		for _, a := range arrays[:len(arrays)-1] {
			fill(t, a, 7)
		}
		w := test.Must(checkpoint.NewWriter(t.Context(), checkpoint.Small(checkpoint.Options{Folder: newest, Run: "stored"}), arrays...))(t)
		test.Check(t, w.Write(t.Context(), 7, attributesOf(7), arrays...), w.Close(t.Context()), os.Remove(filepath.Join(newest, ".halox-lock")))
	}
	for version := 1; version <= checkpoint.Format; version++ {
		c := finds(t, folder(version), 7)
		var got attributes
		if test.Check(t, c.Attributes(&got)); c.Format != version || c.Run != "stored" || !reflect.DeepEqual(got, attributesOf(7)) {
			t.Errorf("%+v, attributes %+v", c, got)
		}
		for _, a := range arrays {
			fill(t, a, 8)
			if test.Check(t, c.Read(t.Context(), a.Name, a.Field)); a != zero {
				compare(t, a, 7)
			}
		}
		for _, v := range test.Must(halo.ReadAll[float64](zero.Field))(t) {
			if v != 0 {
				t.Fatalf("version %d: %v in an array of zeros", version, v)
			}
		}
	}
}

// Package zarr of Python reads a checkpoint.
func TestPythonReadsCheckpoints(t *testing.T) {
	folder := t.TempDir()
	p := onDevices(t, testdevices.Host(t, 2).Devices, []int{17, 9, 11}, domain.Vec{1, 1, 2})
	arrays := arraysOf(t, p, specs(3)[0], specs(3)[4])
	writeSteps(t, checkpoint.Small(checkpoint.Options{Folder: folder, Compress: checkpoint.Zstd}), arrays, 7)
	args := []string{finds(t, folder, 7).Path}
	for _, a := range arrays {
		args = append(args, fmt.Sprintf("%x", sha256.Sum256(test.Must(halo.ReadAll[byte](a.Field))(t))))
	}
	test.Python(t, "zarr", `
import hashlib, sys, zarr
group = zarr.open_group(sys.argv[1], mode="r")
assert group.attrs["history"] == [0.1, 7], dict(group.attrs)
for name, kind, sum in ("u@-1", "float64", sys.argv[2]), ("n@-1", "int32", sys.argv[3]):
    values = group[name][:]
    assert values.shape == (11, 9, 17) and values.dtype == kind, (values.shape, values.dtype)
    assert hashlib.sha256(values.tobytes()).hexdigest() == sum, name
`, args...)
}
