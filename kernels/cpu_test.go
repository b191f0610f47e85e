package kernels_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
)

// Every file is C++ by itself, with the flags that editors take: it includes what it needs.
func TestEveryFileStandsAlone(t *testing.T) {
	testdevices.Once(t)
	compiler, flags := kerneltest.CPP(t, "cu")
	files, err := filepath.Glob("cu/*.cu*")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for i, file := range files {
		if !testdevices.Turn(i, 2, 1) {
			continue
		}
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			if out, err := exec.Command(compiler, append(flags, "-w", file)...).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
