package checkpoint_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
)

// small returns a field on two devices as an array.
func small(t testing.TB) checkpoint.Array {
	t.Helper()
	p := onDevices(t, testdevices.Host(t, 2).Devices, []int{16, 12, 10}, domain.Vec{1, 1, 2})
	return arraysOf(t, p, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1)})[0]
}

// names returns the names in a folder, without that of the lock.
func names(t testing.TB, folder string) (all []string) {
	t.Helper()
	for _, e := range test.Must(os.ReadDir(folder))(t) {
		if e.Name() != ".halox-lock" {
			all = append(all, e.Name())
		}
	}
	return all
}

// Fields may change while a checkpoint is written, and one that is due meanwhile is skipped.
func TestFieldsChangeMeanwhile(t *testing.T) {
	u, ctx, folder := small(t), t.Context(), t.TempDir()
	reached, goOn := make(chan struct{}), make(chan struct{})
	var reports []checkpoint.Status
	o := checkpoint.Small(checkpoint.Options{Folder: folder, Keep: 9, Report: func(s checkpoint.Status) { reports = append(reports, s) }})
	w := test.Must(checkpoint.NewWriter(ctx, checkpoint.At(o, func(point string) {
		if point == "begun" {
			reached <- struct{}{}
			<-goOn
		}
	}), u))(t)
	for step := int64(1); step <= 3; step++ {
		fill(t, u, step)
		test.Check(t, w.Write(ctx, step, attributesOf(step), u))
		<-reached
		fill(t, u, 100)
		test.Check(t, w.Write(ctx, 100, attributesOf(step), u))
		if s := w.Status(); !s.Writing || s.Skipped != int(step) || s.Written != int(step-1) {
			t.Errorf("status %+v", s)
		}
		goOn <- struct{}{}
		test.Check(t, w.Wait(ctx))
		test.Check(t, w.Write(ctx, step, attributesOf(step), u)) // is there
	}
	test.Check(t, w.Close(ctx))
	for step := int64(1); step <= 3; step++ {
		c := test.Must(checkpoint.Open(filepath.Join(folder, fmt.Sprintf("step-%012d", step))))(t)
		test.Check(t, c.Verify(ctx), c.Read(ctx, u.Name, u.Field))
		compare(t, u, step)
	}
	if s := w.Status(); s.Skipped != 3 || s.Written != 3 || len(reports) != 3 || reports[2] != s || s.Waited != 0 {
		t.Errorf("status %+v, reports %+v", s, reports)
	}
}

// The newest checkpoints of a run stay. Those of other runs, and what cannot be read, are never removed. A run that
// continues from an old checkpoint removes those after it, when its own is whole.
func TestKeep(t *testing.T) {
	u, folder := small(t), t.TempDir()
	arrays := []checkpoint.Array{u}
	o := checkpoint.Options{Folder: folder, Keep: 2, Run: "mine"}
	wants := func(want ...string) {
		t.Helper()
		if got := names(t, folder); !slices.Equal(got, want) {
			t.Errorf("left %q, want %q", got, want)
		}
	}
	writeSteps(t, o, arrays, 1, 2, 3)
	wants("step-000000000002", "step-000000000003")
	unreadable := filepath.Join(folder, "step-000000000001")
	leftover := filepath.Join(folder, ".step-7-0123456789abcdef", "u", "c")
	test.Check(t, os.Mkdir(unreadable, 0o777), os.MkdirAll(leftover, 0o777), os.WriteFile(filepath.Join(folder, "notes"), nil, 0o666))
	writeSteps(t, o, arrays, 4)
	wants("notes", "step-000000000001", "step-000000000003", "step-000000000004")
	// one that is replaced is found until the new one is whole, also if the writer was killed between the two
	newest := filepath.Join(folder, "step-000000000004")
	test.Check(t, os.Rename(newest, newest+".old"))
	if c := finds(t, folder, 4); c.Path != newest+".old" {
		t.Errorf("found %s", c.Path)
	}
	writeSteps(t, o, arrays, 5)
	wants("notes", "step-000000000001", "step-000000000004.old", "step-000000000005")
	writeSteps(t, o, arrays, 4) // from step 3
	wants("notes", "step-000000000001", "step-000000000004")
	o.Keep = 1
	writeSteps(t, o, arrays, 4)
	wants("notes", "step-000000000001", "step-000000000004")
	finds(t, folder, 4)
}

// Files that cannot be written do not end the run. Older checkpoints stay, and the next is tried again.
func TestFailedWrites(t *testing.T) {
	for _, tc := range []struct {
		name        string
		spoil, mend func(folder string) error
		says        string
		fatal       bool
	}{
		{name: "the folder vanishes", says: "it is no longer the folder in which the run began: it was removed, replaced or unmounted",
			spoil: func(folder string) error { return os.Rename(folder, folder+"2") },
			mend:  func(folder string) error { return os.Rename(folder+"2", folder) }},
		{name: "another folder takes its place", says: "it is no longer the folder in which the run began",
			spoil: func(folder string) error {
				return errors.Join(os.Rename(folder, folder+"2"), os.Mkdir(folder, 0o777))
			},
			mend: func(folder string) error { return errors.Join(os.Remove(folder), os.Rename(folder+"2", folder)) }},
		{name: "a file takes its place", says: "not a directory",
			spoil: func(folder string) error {
				return errors.Join(os.Rename(folder, folder+"2"), os.WriteFile(folder, nil, 0o666))
			},
			mend: func(folder string) error { return errors.Join(os.Remove(folder), os.Rename(folder+"2", folder)) }},
		{name: "a fatal one", says: "it is no longer the folder", fatal: true,
			spoil: func(folder string) error { return os.Rename(folder, folder+"2") },
			mend:  func(folder string) error { return os.Rename(folder+"2", folder) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u, ctx, folder := small(t), t.Context(), filepath.Join(t.TempDir(), "checkpoints")
			reports := 0
			o := checkpoint.Options{Folder: folder, Fatal: tc.fatal, Report: func(checkpoint.Status) { reports++ }}
			w := test.Must(checkpoint.NewWriter(ctx, checkpoint.Small(o), u))(t)
			step := int64(0)
			write := func() error {
				step++
				fill(t, u, step)
				test.Check(t, w.Write(ctx, step, attributesOf(step), u))
				return w.Wait(ctx)
			}
			test.Check(t, write(), tc.spoil(folder))
			for range 2 {
				err := write()
				if s := w.Status(); s.Err == nil || s.Step != 1 || s.Failed != int(step-1) || s.Written != 1 || (err != nil) != tc.fatal {
					t.Errorf("status %+v, error %v", s, err)
				}
				test.Says(t, w.Status().Err, tc.says)
			}
			test.Check(t, tc.mend(folder))
			finds(t, folder, 1)
			test.Check(t, write(), w.Close(ctx))
			if s := w.Status(); s.Err != nil || s.Step != 4 || reports != 4 {
				t.Errorf("status %+v, %d reports", s, reports)
			}
			test.Check(t, finds(t, folder, 4).Read(ctx, u.Name, u.Field))
			compare(t, u, 4)
			if got := names(t, folder); len(got) != 2 {
				t.Errorf("left %q", got)
			}
		})
	}
}

// With auto, an array is compressed if it shrinks.
func TestAutoCompression(t *testing.T) {
	folder := t.TempDir()
	p := onDevices(t, testdevices.Host(t, 2).Devices, []int{40, 30, 20}, domain.Vec{1, 1, 2})
	arrays := arraysOf(t, p, halo.Spec{Name: "noise", Element: halo.Float64}, halo.Spec{Name: "zero", Element: halo.Float64})
	fill(t, arrays[0], 1)
	test.Check(t, halo.FillPoints(arrays[1].Field, func(domain.Vec) float64 { return 0 }))
	w := test.Must(checkpoint.NewWriter(t.Context(), checkpoint.Options{Folder: folder}, arrays...))(t)
	test.Check(t, w.Write(t.Context(), 1, struct{}{}, arrays...), w.Close(t.Context()))
	for _, a := range test.Must(finds(t, folder, 1).Arrays())(t) {
		if a.Zstd != (a.Name == "zero@-1") || (a.Bytes < 40*30*20*8) != a.Zstd {
			t.Errorf("%+v", a)
		}
	}
}
