package plot

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
		"two-stream left-right over peer, heat 64 x 32 x 16, float64", "steps 6 to 7; in all that was traced, ",
		" of communication hidden behind sweeps", "GPU 1, NVIDIA H200", ">interior<", ">unpack<", ">exchange<", ">exposed<", ">7<", "time (µs)",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in the timeline", want)
		}
	}
	if strings.Contains(svg, ">5<") {
		t.Error("step 5 is drawn")
	}
}

// Streams of one name share a lane, unless they work at the same time.
func TestTimelineJoinsStreams(t *testing.T) {
	stream := func(name string, begin time.Duration) trace.Stream {
		return trace.Stream{Name: name, Operations: []trace.Operation{
			{Category: trace.Wait, End: 9}, {Category: trace.Copy, Begin: begin, End: begin + 2},
		}}
	}
	var names []string
	for _, lane := range joined([]trace.Stream{stream("a", 0), stream("b", 0), stream("a", 2), stream("a", 3), stream("b", 1)}) {
		names = append(names, fmt.Sprint(lane.Name, len(lane.Operations)))
	}
	if got := strings.Join(names, " "); got != "a4 b2 a2 b2" {
		t.Errorf("lanes %s", got)
	}
}

// A timeline of any times and steps that a trace may hold is an error, or is drawn with few texts and finite
// coordinates; one of too many streams is an error.
func TestTimelineRanges(t *testing.T) {
	const end = 1e6 * time.Second // of the longest trace
	for _, steps := range [][2]int64{{0, 0}, {7, 8}, {-3, -2}, {math.MinInt64, math.MaxInt64}, {math.MinInt64, math.MinInt64}} {
		for _, at := range [][4]time.Duration{
			{}, {0, 1}, {0, 0, 0, 1}, {5, 5, 5, 5}, {0, 1, end - 1, end}, {0, end}, {end - 1, end}, {end, end}, {end - 3, end - 2, end - 1, end},
			{1e9, 1e9 + 1, 1e9 + 1e5, 1e9 + 1e5 + 7},
		} {
			tr := &trace.Trace{Devices: []trace.Device{{Name: "d", Streams: []trace.Stream{{Name: "s", Operations: []trace.Operation{
				{Category: trace.Sweep, Begin: at[0], End: at[1], Step: steps[0]},
				{Category: trace.Copy, Begin: at[2], End: max(at[2], at[3]), Step: steps[1]},
			}}}}}}
			chart, err := Timeline(tr)
			if err != nil {
				test.Says(t, err, "the trace is empty")
				continue
			}
			drawnWithin(t, chart, fmt.Sprint(at, steps), 30)
		}
	}
	tr := resultstest.Trace()
	tr.Devices[0].Name = strings.Repeat("x", 1e6)
	chart := test.Must(Timeline(tr))(t)
	test.Check(t, drawnWithin(t, chart, "a long name", 80))
	tr.Devices[0].Streams = slices.Repeat(tr.Devices[0].Streams, 1e5)
	test.Says(t, test.ErrorOf(Timeline(tr)), "lanes, must be at most 500")
}

func TestTimelineOfNothing(t *testing.T) {
	test.Says(t, test.ErrorOf(Timeline(&trace.Trace{})), "the trace is empty")
}
