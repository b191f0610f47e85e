package results_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/halox/halox/results"
)

func ExampleRecord_Summary() {
	record := results.Record{
		Devices: []results.Device{{ID: 0, Name: "host device", Backend: "host"}},
		Run: &results.Run{
			Scheme:           "baseline",
			Path:             "staged",
			Iterations:       1000,
			Stopped:          results.StopTolerance,
			UpdatesPerSecond: results.Number(1.2345e9),
		},
	}
	if err := record.Summary(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// devices    1 x host device (host)
	// scheme     baseline over staged
	// stopped    tolerance reached after 1000 iterations
	// speed      1.23 Gpoint/s
	// exchanged  0 B
}

func ExampleFieldWriter() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "field.npy")
	if err := writeRamp(path, 2, 3); err != nil {
		log.Print(err)
	}
	shape, values, err := results.ReadField(path)
	fmt.Println(shape, values, err)
	// Output: [2 3] [0 1 2 3 4 5] <nil>
}

// writeRamp writes a field row by row; were a row to fail, no file would be left.
func writeRamp(path string, ny, nx int) error {
	w, err := results.NewFieldWriter(path, []int{ny, nx}, results.Float64)
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
