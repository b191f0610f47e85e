package results_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/results"
)

// pingRow is what a message of 1000 bytes took, of which one in one piece takes 2 us.
func pingRow(name, path, engine string, us float64) results.Ping {
	return results.Ping{Layout: layoutOf(name), Path: path, Engine: engine, Checked: true, Cost: results.NewCost(1000, us, 2)}
}

// samplePings has two layouts of one suite and one of another, which not all lanes suit.
func samplePings() *results.Pings {
	const a, b, c = "wu/V/n=1024", "wu/T/n=1024", "hacc/vblock/rank=5,cells=1024"
	remote := pingRow(a, "peer", "tree", 16)
	remote.Remote = true
	return &results.Pings{
		Bench: results.Bench{
			Started: time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC), BudgetMS: 20, Contenders: []string{"direct", "peer", "peer, remote, tree", "staged, units"},
		},
		From: results.Device{ID: 2, Name: "a GPU", Backend: "cuda"}, To: results.Device{ID: 3, Name: "a GPU", Backend: "cuda"}, Link: "NV18",
		Rows: []results.Ping{
			pingRow(a, "direct", "auto", 2.5), pingRow(a, "peer", "auto", 4), remote,
			pingRow(b, "direct", "auto", 8), pingRow(b, "peer", "auto", 5),
			pingRow(c, "direct", "auto", 1234.5),
		},
	}
}

func pingsTable(t *testing.T, p *results.Pings) string {
	t.Helper()
	var text strings.Builder
	if err := p.Table(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestPingsTable(t *testing.T) {
	text := pingsTable(t, samplePings())
	if want := string(golden(t, "pings.txt", []byte(text))); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if text := pingsTable(t, &results.Pings{}); text != "" {
		t.Errorf("%q", text)
	}
}

// What held the messages back stands above the table, and what else ran beside them.
func TestPingsTableOfOneBusyDevice(t *testing.T) {
	p := samplePings()
	p.To, p.Link = p.From, ""
	p.Blocks, p.Ring, p.FragmentBytes, p.Busy = 2, 4, 65536, &results.Busy{Fraction: 0.25, Blocks: 264, LaunchUS: 250}
	for i := range p.Rows {
		p.Rows[i].BusyLost = 0.07
	}
	text := pingsTable(t, p)
	const caption = "ping-pong on a GPU 2 alone, fragments of 65536 B, a ring of 4, 2 thread blocks at most, devices 25% busy, times of one way in us\n\nworkload "
	if !strings.HasPrefix(text, caption) || strings.Count(text, "of contiguous  busy lost\n") != 2 || strings.Count(text, "         7%\n") != 3 {
		t.Error(text)
	}
}

func TestPingsWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out", "pings.json")
	p := samplePings()
	if err := p.Write(path); err != nil {
		t.Fatal(err)
	}
	var back results.Pings
	if err := json.Unmarshal(read(t, path), &back); err != nil {
		t.Fatal(err)
	}
	if back.Schema != results.Schema || !slices.Equal(back.Rows, p.Rows) || !back.Started.Equal(p.Started) || p.Schema != 0 {
		t.Errorf("%+v", back)
	}
	wantError(t, p.Write(t.TempDir()), "write record")
}
