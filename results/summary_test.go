package results_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/resultstest"
)

func TestSummary(t *testing.T) {
	interrupted := finished()
	run := interrupted.Run
	run.Stopped, run.Iterations = results.StopInterrupted, 1
	run.Error, run.Time, run.DT = nil, nil, nil
	run.Order = ""
	interrupted.Devices[1].Name, interrupted.Devices[1].Backend = "host device", "host"
	run.UpdatesPerSecond, run.BytesExchanged = results.Number(999.4e3), 0
	failed := &results.Record{Run: &results.Run{Stopped: results.StopError}, Failure: "copy from device 0 to 1: device lost"}
	for name, record := range map[string]*results.Record{
		"finished": finished(), "interrupted": interrupted, "failed": failed,
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, "summary-"+name+".txt", shown(t, record.Summary))
		})
	}
}

// golden compares a text with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if diff := cmp.Diff(string(resultstest.Golden(t, name, []byte(got))), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func check(t rapid.TB, err error) {
	t.Helper()
	test.Check(t, err)
}

// shown returns what is written.
func shown(t *testing.T, write func(w io.Writer) error) string {
	t.Helper()
	var text strings.Builder
	check(t, write(&text))
	return text.String()
}

func TestSummaryWriterFails(t *testing.T) {
	resultstest.WantError(t, finished().Summary(brokenWriter{}), "write summary", "broken pipe")
	resultstest.WantError(t, (&results.Record{Kind: results.KindPack}).Summary(io.Discard), `a record of kind "pack" is of no run`)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
