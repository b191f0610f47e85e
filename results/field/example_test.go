package field_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/results/field"
)

func ExampleWriter() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "field.npy")
	if err := writeRamp(path, 2, 3); err != nil {
		log.Print(err)
	}
	shape, values, err := field.Read(path)
	fmt.Println(shape, values, err)
	// Output: [2 3] [0 1 2 3 4 5] <nil>
}

// writeRamp writes a field row by row; were a row to fail, no file would be left.
func writeRamp(path string, ny, nx int) error {
	w, err := field.NewWriter(path, []int{ny, nx}, domain.Float64)
	if err != nil {
		return err
	}
	defer w.Abort()
	row := make([]float64, nx)
	for y := range ny {
		for x := range row {
			row[x] = float64(y*nx + x)
		}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	return w.Close()
}
