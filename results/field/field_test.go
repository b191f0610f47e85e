package field_test

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results/field"
	"github.com/halox/halox/results/internal/resultstest"
)

// counted is a field whose values are their own positions.
func counted(n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i) + 0.5
	}
	return values
}

func TestFieldRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 7), 1, 3).Draw(t, "shape")
		dtype := rapid.SampledFrom([]domain.Element{domain.Float64, domain.Float32}).Draw(t, "dtype")
		total := 1
		for _, n := range shape {
			total *= n
		}
		want := rapid.SliceOfN(rapid.Float32(), total, total).Draw(t, "values")
		row := rapid.IntRange(1, total).Draw(t, "row")
		path := filepath.Join(dir, "field.npy")
		writeRows(t, path, shape, dtype, want, row)
		gotShape, got, err := field.Read(path)
		test.Check(t, err)
		if !slices.Equal(gotShape, shape) {
			t.Fatalf("shape %v, want %v", gotShape, shape)
		}
		for i, v := range want {
			if got[i] != float64(v) {
				t.Fatalf("value %d is %g, want %g", i, got[i], v)
			}
		}
	})
}

// writeRows writes the values in parts.
func writeRows(t *rapid.T, path string, shape []int, dtype domain.Element, values []float32, row int) {
	w := test.Must(field.NewWriter(path, shape, dtype))(t)
	defer w.Abort()
	for part := range slices.Chunk(widen(values), row) {
		test.Check(t, w.Write(part))
	}
	test.Check(t, w.Close())
}

func widen(values []float32) []float64 {
	wide := make([]float64, len(values))
	for i, v := range values {
		wide[i] = float64(v)
	}
	return wide
}

func writeField(t *testing.T, dtype domain.Element, shape []int, values []float64) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "field.npy")
	w := test.Must(field.NewWriter(path, shape, dtype))(t)
	test.Check(t, w.Write(values))
	test.Check(t, w.Close())
	return resultstest.ReadFile(t, path)
}

func TestFieldReadByNumPy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "field.npy")
	test.Check(t, os.WriteFile(path, writeField(t, domain.Float64, []int{2, 3, 4}, counted(24)), 0o644))
	const script = `import numpy, sys
a = numpy.load(sys.argv[1])
assert a.dtype == numpy.float64 and a.shape == (2, 3, 4) and a.flags.c_contiguous, (a.dtype, a.shape)
assert (a.ravel() == numpy.arange(24) + 0.5).all(), a`
	test.Python(t, "numpy", script, path)
}

// Another goroutine may give a field up while it is written; nothing of it is left.
func TestAbortWhileAFieldIsWritten(t *testing.T) {
	dir := t.TempDir()
	w, err := field.NewWriter(filepath.Join(dir, "field.npy"), []int{1 << 10, 1 << 20}, domain.Float64)
	test.Check(t, err)
	failed := make(chan error)
	go func() {
		for values := counted(1 << 16); err == nil; {
			err = w.Write(values)
		}
		failed <- errors.Join(err, w.Close())
	}()
	time.Sleep(10 * time.Millisecond)
	test.Report(t, w.Abort())
	resultstest.WantError(t, <-failed, "write field")
	if names := resultstest.Files(t, dir); len(names) > 0 {
		t.Errorf("the folder holds %v", names)
	}
}

func TestFieldAppearsWhenComplete(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "field.npy")
	w := test.Must(field.NewWriter(path, []int{2, 2}, domain.Float64))(t)
	test.Check(t, w.Write(counted(4)))
	if _, err := os.Stat(path); err == nil {
		t.Error("the field has its name before Close")
	}
	test.Check(t, w.Close())
	if err := w.Abort(); err != nil {
		t.Errorf("Abort after Close: %v", err)
	}
	resultstest.WantError(t, w.Write(counted(1)), "write field", path)
	resultstest.WantError(t, w.Close(), "close field", path, "closed")
	if names := resultstest.Files(t, dir); !slices.Equal(names, []string{"field.npy"}) {
		t.Errorf("the folder holds %v, want the field alone", names)
	}
}

func TestFieldLeavesNothing(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(t *testing.T, w *field.Writer)
	}{
		{"aborted", func(t *testing.T, w *field.Writer) {
			test.Report(t, w.Abort())
		}},
		{"too few values", func(t *testing.T, w *field.Writer) {
			resultstest.WantError(t, w.Close(), "close field", "it has 3 of 4 values")
		}},
		{"too many values", func(t *testing.T, w *field.Writer) {
			resultstest.WantError(t, w.Write(counted(2)), "write field", "2 values, with room for 1 of 4")
			resultstest.WantError(t, w.Close(), "close field", "with room for 1 of 4")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			w := test.Must(field.NewWriter(filepath.Join(dir, "field.npy"), []int{2, 2}, domain.Float64))(t)
			test.Check(t, w.Write(counted(3)))
			tc.end(t, w)
			if names := resultstest.Files(t, dir); len(names) != 0 {
				t.Errorf("the folder holds %v, want nothing", names)
			}
		})
	}
}

func TestNewFieldWriterRefuses(t *testing.T) {
	for _, tc := range []struct {
		name  string
		shape []int
		dtype domain.Element
		want  string
	}{
		{"no axes", nil, domain.Float64, "no axes"},
		{"empty axis", []int{3, 0}, domain.Float64, "[3 0] cannot be stored"},
		{"too large", []int{math.MaxInt / 4, 8}, domain.Float32, "cannot be stored"},
		{"another type", []int{3}, "<i8", `must be float32 or float64, got "<i8"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "field.npy")
			_, err := field.NewWriter(path, tc.shape, tc.dtype)
			resultstest.WantError(t, err, "create field", path, tc.want)
		})
	}
}

func TestReadFieldRefuses(t *testing.T) {
	good := writeField(t, domain.Float64, []int{2, 3}, counted(6))
	head := func(dict string) []byte {
		prefix := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(dict)))
		return append(prefix, dict...)
	}
	for _, tc := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "not a NumPy file"},
		{"not NumPy", []byte("solver: heat, and more"), "not a NumPy file"},
		{"cut within the length", []byte("\x93NUMPY\x02\x00\x40\x00"), "the file ends within its header"},
		{"cut within the header", []byte("\x93NUMPY\x01\x00\x0c\x00{'descr':"), "the file ends within its header"},
		{"broken header", head("{'shape': }"), "its header lacks descr, fortran_order or shape"},
		{"header of 4 GB", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr': '<f8'}"), "the file of 28 bytes names a header of 4294967295"},
		{"shape of 10^30", head("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000000000000000000,), }\n"), "is too large"},
		{"records", head("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }\n12345678"), "its type is \"[('a', '<f8')]\""},
		{"Fortran order", head("{'descr': '<f8', 'fortran_order': True, 'shape': (1, 1), }\n12345678"), "Fortran order true"},
		{"integers", head("{'descr': '<i8', 'fortran_order': False, 'shape': (1, 1), }\n12345678"), `type is "<i8"`},
		{"cut short", good[:len(good)-1], "47 bytes of values; its shape and type need 48"},
		{"too long", append(slices.Clone(good), 0), "49 bytes of values"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "field.npy")
			test.Check(t, os.WriteFile(path, tc.data, 0o644))
			_, _, err := field.Read(path)
			resultstest.WantError(t, err, "read field", path, tc.want)
		})
	}
	_, _, err := field.Read("missing.npy")
	resultstest.WantError(t, err, "read field", "missing.npy")
}

func BenchmarkFieldWrite(b *testing.B) {
	values := counted(1 << 20)
	b.SetBytes(8 << 20)
	path := filepath.Join(b.TempDir(), "field.npy")
	for b.Loop() {
		w := test.Must(field.NewWriter(path, []int{len(values)}, domain.Float64))(b)
		test.Check(b, w.Write(values))
		test.Check(b, w.Close())
	}
}

// Parts of a file are what Read has there; a file that shrinks afterwards gives NaN.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.npy")
	f32 := test.Must(os.Create(path))(t)
	e := test.Must(field.NewEncoder(f32, []int{3, 4, 5}, domain.Float32))(t)
	test.Check(t, e.Write(make([]float64, 30)))
	values := make([]float64, 30)
	for i := range values {
		values[i] = float64(i) / 2
	}
	test.Check(t, e.Write(values))
	test.Check(t, errors.Join(e.Close(), f32.Close()))
	_, all, err := field.Read(path)
	test.Check(t, err)
	f := test.Must(field.Open(path))(t)
	if got := f.Size(); !slices.Equal(got, []int{5, 4, 3}) {
		t.Errorf("size %v", got)
	}
	row := make([]float64, 3)
	if f.Row(row, domain.Vec{2, 3, 1}); !slices.Equal(row, all[20+15+2:][:3]) || row[0] != 3.5 {
		t.Errorf("got %v of %v", row, all)
	}
	test.Check(t, os.Truncate(path, 128))
	if f.Row(row, domain.Vec{}); !math.IsNaN(row[0]) {
		t.Errorf("got %v of a file that shrank", row)
	}
	if _, err := field.Open(path); err == nil {
		t.Error("a file that shrank opens")
	}
}
