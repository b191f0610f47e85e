package results_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/results"
)

func writeTimeline(t *testing.T, tr *results.Trace, format string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "timeline"+format)
	chart, err := results.Timeline(tr)
	if err == nil {
		err = results.WriteChart(path, chart)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read(t, path)
}

func TestTimelineGolden(t *testing.T) {
	got := writeTimeline(t, trace(), ".png")
	alike(t, decode(t, got), decode(t, golden(t, "timeline.png", got)))
}

// All formats can be had, and the texts are there: what ran, the share, devices, streams
// and the categories that occur.
func TestTimelineFormats(t *testing.T) {
	if data := writeTimeline(t, trace(), ".PDF"); !bytes.HasPrefix(data, []byte("%PDF")) {
		t.Errorf("the file begins with %q", data[:8])
	}
	svg := string(writeTimeline(t, trace(), ".svg"))
	for _, want := range []string{
		"two-stream left-right over peer, heat 64 x 32 x 16, float64", "steps 7 to 8; in all that was traced, ",
		" of communication hidden behind sweeps", "GPU 1, NVIDIA H200", ">interior<", ">unpack<", ">exchange<", ">exposed<", ">8<", "time in us",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in the timeline", want)
		}
	}
	if strings.Contains(svg, ">6<") {
		t.Error("step 6 is drawn")
	}
}

func TestTimelineOfNothing(t *testing.T) {
	if _, err := results.Timeline(&results.Trace{}); err == nil || !strings.Contains(err.Error(), "the trace is empty") {
		t.Errorf("error %v", err)
	}
}
