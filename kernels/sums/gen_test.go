package sums

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The arguments are those of the go:generate line; were they not, the first
// lines of the files would differ.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: builds the generator")
	}
	folder := t.TempDir()
	generator := filepath.Join(folder, "generator.exe")
	if out, err := exec.Command("go", "build", "-o", generator, "./gen").CombinedOutput(); err != nil {
		t.Fatalf("building the generator: %v\n%s", err, out)
	}
	const assembly, stubs = "sums_amd64.s", "sums_amd64.go"
	generate := exec.Command(generator, "-pkg", "sums", "-out", assembly, "-stubs", stubs)
	generate.Dir = folder
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("generating: %v\n%s", err, out)
	}
	for _, name := range []string{assembly, stubs} {
		want, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what ./gen writes: run go generate", name)
		}
	}
}
