package results_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
			var text strings.Builder
			if err := record.Summary(&text); err != nil {
				t.Fatal(err)
			}
			got := text.String()
			if diff := cmp.Diff(string(resultstest.Golden(t, "summary-"+name+".txt", []byte(got))), got); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}

// Records say the same after they were read back.
func TestSummaryOfReadRecord(t *testing.T) {
	path := t.TempDir() + "/record.json"
	if err := finished().Write(path); err != nil {
		t.Fatal(err)
	}
	back, err := results.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	var before, after strings.Builder
	if err := errors.Join(finished().Summary(&before), back.Summary(&after)); err != nil {
		t.Fatal(err)
	}
	if before.String() != after.String() {
		t.Errorf("summary read back:\n%s\nwant:\n%s", after.String(), before.String())
	}
}

func TestSummaryWriterFails(t *testing.T) {
	resultstest.WantError(t, finished().Summary(brokenWriter{}), "write summary", "broken pipe")
	resultstest.WantError(t, (&results.Record{Kind: results.KindPack}).Summary(io.Discard), `a record of kind "pack" is of no run`)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
