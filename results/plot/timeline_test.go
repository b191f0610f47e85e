package plot

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results/internal/resultstest"
	"github.com/halox/halox/results/trace"
)

func writeTimeline(t *testing.T, tr *trace.Trace, format string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "timeline"+format)
	chart, err := Timeline(tr)
	if err == nil {
		err = Write(path, chart)
	}
	test.Check(t, err)
	return resultstest.ReadFile(t, path)
}

func TestTimelineGolden(t *testing.T) {
	chart := test.Must(Timeline(resultstest.Trace()))(t)
	golden(t, "timeline", chart)
}

// All formats can be had, and the texts are there: what ran, the share, devices, streams
// and the categories that occur.
func TestTimelineFormats(t *testing.T) {
	if data := writeTimeline(t, resultstest.Trace(), ".PDF"); !bytes.HasPrefix(data, []byte("%PDF")) {
		t.Errorf("the file begins with %q", data[:8])
	}
	svg := string(writeTimeline(t, resultstest.Trace(), ".svg"))
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
	test.Says(t, test.ErrorOf(Timeline(&trace.Trace{})), "the trace is empty")
}
