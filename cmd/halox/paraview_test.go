package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
)

// The config and the programs of the page on ParaView do what the page says.
func TestPageOfParaView(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	text := page(t, "docs/how-to/open-in-paraview.md")
	config := strings.ReplaceAll(strings.Split(text, "```")[1], "\n    ", "\n")
	packages := test.Must(filepath.Abs(filepath.Join("..", "..", ".tools", "formats")))(t)
	t.Setenv("PYTHONPATH", packages+string(os.PathListSeparator)+os.Getenv("PYTHONPATH"))
	t.Chdir(t.TempDir())
	test.Check(t, os.WriteFile("wave.yaml", []byte(strings.TrimPrefix(config, "yaml\n")), 0o644))
	if code, _, stderr := cli("run", "wave.yaml", "-q"); code != 0 {
		t.Fatal(stderr)
	}
	python := strings.Split(text, "```python\n")
	program := func(i int) string { text, _, _ := strings.Cut(python[i], "```"); return text }
	test.Python(t, "zarr", program(2)+"assert (wave['u'].shape, wave['time'][-1]) == ((11, 48, 64, 64), 1)")
	test.Python(t, "vtk", program(1), filepath.Join("series", "fields-000000000038.vti"), "wave.png")
	if err := decodePNG("wave.png"); err != nil {
		t.Error(err)
	}
}
