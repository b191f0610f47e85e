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
	if err := results.WriteTimeline(path, tr); err != nil {
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

func TestTimelineRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		name, file string
		trace      *results.Trace
		want       string
	}{
		{"another format", "t.gif", trace(), `its ending is ".gif"`},
		{"nothing", "t.png", &results.Trace{}, "the trace is empty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(dir, tc.file)
			wantError(t, results.WriteTimeline(path, tc.trace), "timeline", path, tc.want)
			if names := files(t, dir); len(names) != 0 {
				t.Errorf("the folder holds %v", names)
			}
		})
	}
}
