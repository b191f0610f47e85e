package rows

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/halox/halox/internal/test"
)

// The assembly of this package and of package sums is what their generators write. The arguments must be those of the
// lines that go generate reads: each file quotes them in its first line.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: builds the generators")
	}
	for _, pkg := range []string{"rows", "sums"} {
		folder, home := t.TempDir(), filepath.Join("..", pkg)
		generator := filepath.Join(folder, "generator.exe")
		if out, err := exec.Command("go", "build", "-o", generator, "../"+pkg+"/gen").CombinedOutput(); err != nil {
			t.Fatalf("building the generator: %v\n%s", err, out)
		}
		files := []string{pkg + "_amd64.s", pkg + "_amd64.go"}
		generate := exec.Command(generator, "-pkg", pkg, "-out", files[0], "-stubs", files[1])
		generate.Dir = folder
		if out, err := generate.CombinedOutput(); err != nil {
			t.Fatalf("generating: %v\n%s", err, out)
		}
		for _, name := range files {
			want := test.Must(os.ReadFile(filepath.Join(folder, name)))(t)
			got := test.Must(os.ReadFile(filepath.Join(home, name)))(t)
			if !bytes.Equal(got, want) {
				t.Errorf("%s is not what %s/gen writes: run go generate", name, pkg)
			}
		}
	}
}
