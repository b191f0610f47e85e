package results_test

import (
	"log"
	"os"

	"github.com/halox/halox/results"
)

func ExampleRecord_Summary() {
	record := results.Record{
		Devices:  []results.Device{{ID: 0, Name: "CPU device", Backend: "host"}},
		Settings: map[string]any{"stop": map[string]any{"tolerance": 1e-6, "norm": "residual"}},
		Run: &results.Run{
			Scheme:           "baseline",
			Path:             "staged",
			Iterations:       1000,
			Stopped:          results.StopTolerance,
			Residual:         results.Number(9.5e-7),
			UpdatesPerSecond: results.Number(1.2345e9),
		},
	}
	if err := record.Summary(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// devices    1 x CPU device (host)
	// scheme     baseline over staged
	// stopped    tolerance reached after 1000 iterations: largest residual at most 1e-06
	// residual   max 9.5e-07
	// speed      1.23 Gpoint/s
	// exchanged  0 B
}
