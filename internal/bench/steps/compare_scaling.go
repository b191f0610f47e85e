package steps

import "github.com/halox/halox/results"

// compareScaling adds the speed-up and the efficiency to the rows, against the fewest
// devices that were measured, which count as ideal.
func compareScaling(rows []results.Row) (compared []results.Row) {
	for _, row := range rows {
		step, ok := row.Get(results.Step)
		devices, _ := row.Float("devices")
		few, base := fewest(rows, row)
		if !ok {
			compared = append(compared, row)
			continue
		}
		times := few // as many times the work, of weak scaling
		if row.Text("mode") == weakScaling {
			times = devices
		}
		speedup := step.Under(base * times)
		compared = append(compared, row.Value(results.SpeedUp, speedup).Value(results.Efficiency, speedup.Scale(1/devices)))
	}
	return compared
}

// fewest returns the number of devices, and the time of a step, of the row with the
// fewest devices on the curve of a row.
func fewest(rows []results.Row, of results.Row) (devices, step float64) {
	curve := func(row results.Row) (name [7]string) {
		for i, label := range []string{"scheme", "order", "points", "precision", "mode", "stencil", "steps_an_exchange"} {
			name[i] = row.Text(label)
		}
		return name
	}
	for _, row := range rows {
		n, _ := row.Float("devices")
		if s, ok := row.Get(results.Step); ok && curve(row) == curve(of) && (devices == 0 || n < devices) {
			devices, step = n, s.Median
		}
	}
	return devices, step
}
