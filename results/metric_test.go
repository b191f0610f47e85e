package results

import "testing"

// Metrics have what an axis needs, and their ceilings are metrics of the same unit.
func TestMetrics(t *testing.T) {
	seen := map[Metric]bool{}
	for _, info := range metrics {
		if info.title == "" || info.unit == "" || info.better == 0 || seen[info.metric] || (info.shownUnit == "") != (info.shownFactor == 0) {
			t.Errorf("%+v", info)
		}
		if info.ceiling != "" && info.ceiling.info().unit != info.unit {
			t.Errorf("%s is in %s, its ceiling %s in %q", info.metric, info.unit, info.ceiling, info.ceiling.info().unit)
		}
		seen[info.metric] = true
	}
}
