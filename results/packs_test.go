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

// packRow is what an engine took for a layout of 1000 bytes, of which a copy in one
// piece takes 2 us.
func packRow(name, direction, engine string, us float64) results.Pack {
	return results.Pack{
		Layout: layoutOf(name), Direction: direction, Pieces: 10, Engine: engine, Checked: true, Cost: results.NewCost(1000, us, 2),
	}
}

// layoutOf returns the layout of that name, with 1000 bytes.
func layoutOf(name string) results.Layout {
	parts := strings.Split(name, "/")
	return results.Layout{Suite: parts[0], Name: parts[1], Params: parts[2], Bytes: 1000}
}

// took is the row of auto.
func took(row results.Pack, engine string) results.Pack {
	row.Engine, row.Took, row.Why = "auto", engine, engine+" 1 us"
	return row
}

// samplePacks has three layouts, one of which is unpacked too. Auto is right with the
// first, wrong with the second, and with the third slower than what it took.
func samplePacks() *results.Packs {
	const a, b, c = "wu/V/n=1024", "wu/T/n=1024", "hacc/vblock/rank=5,cells=1024"
	tree := packRow(b, "pack", "tree", 4)
	tree.Variant = "primitive"
	return &results.Packs{
		Bench: results.Bench{
			Started: time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC), BudgetMS: 20, Contenders: []string{"copies", "units", "tree, primitive", "auto"},
		},
		Device: results.Device{Name: "a GPU", Backend: "cuda"}, To: "device",
		Rows: []results.Pack{
			packRow(a, "pack", "copies", 8.25), packRow(a, "pack", "units", 4.5), took(packRow(a, "pack", "auto", 4.6), "units"),
			packRow(a, "unpack", "copies", 16), took(packRow(a, "unpack", "auto", 16.1), "copies"),
			packRow(b, "pack", "copies", 5), tree, took(packRow(b, "pack", "auto", 12), "units"),
			packRow(c, "pack", "units", 1234.5), took(packRow(c, "pack", "auto", 2000), "units"),
		},
	}
}

func TestPacksTable(t *testing.T) {
	var text strings.Builder
	if err := samplePacks().Table(&text); err != nil {
		t.Fatal(err)
	}
	if want := string(golden(t, "packs.txt", []byte(text.String()))); text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
}

// Without auto nothing is said of it, and a record without rows has no table.
func TestPacksTableWithoutAuto(t *testing.T) {
	p := samplePacks()
	p.Contenders = p.Contenders[:3]
	p.Rows = slices.DeleteFunc(p.Rows, func(row results.Pack) bool { return row.Engine == "auto" })
	var text strings.Builder
	if err := p.Table(&text); err != nil || strings.Contains(text.String(), "auto") || !strings.Contains(text.String(), "wu/T/n=1024") {
		t.Errorf("%v:\n%s", err, text.String())
	}
	text.Reset()
	if err := (&results.Packs{}).Table(&text); err != nil || text.Len() > 0 {
		t.Errorf("%v: %q", err, text.String())
	}
}

// A verdict names the worst only.
func TestPacksTableOfManyLosses(t *testing.T) {
	p := &results.Packs{Bench: results.Bench{Contenders: []string{"copies", "auto"}}}
	for i := range 9 {
		name := "wu/V/n=" + strings.Repeat("1", i+1)
		p.Rows = append(p.Rows, packRow(name, "pack", "copies", 1), took(packRow(name, "pack", "auto", float64(2+i)), "tree"))
	}
	var text strings.Builder
	if err := p.Table(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"for 0 of 9 workloads\n  wu/V/n=111111111: tree took 10.00 times as long as copies", "  and 4 more\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

func TestPacksWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out", "packs.json")
	p := samplePacks()
	if err := p.Write(path); err != nil {
		t.Fatal(err)
	}
	var back results.Packs
	if err := json.Unmarshal(read(t, path), &back); err != nil {
		t.Fatal(err)
	}
	if back.Schema != results.Schema || !slices.Equal(back.Rows, p.Rows) || !back.Started.Equal(p.Started) || p.Schema != 0 {
		t.Errorf("%+v", back)
	}
	wantError(t, p.Write(t.TempDir()), "write record")
}

func TestPackNames(t *testing.T) {
	row := packRow("wu/vector/blocks=1000,block=64,type=float64", "pack", "bypass", 1)
	row.Variant = "list pinned"
	if row.Workload() != "wu/vector/blocks=1000,block=64,type=float64" || row.Contender() != "bypass, list pinned" {
		t.Errorf("%s by %s", row.Workload(), row.Contender())
	}
	for key, want := range map[string]float64{"blocks": 1000, "block": 64, "bytes": 1000} {
		if v, ok := row.Param(key); v != want || !ok {
			t.Errorf("%s: %v, %t", key, v, ok)
		}
	}
	for _, key := range []string{"type", "n", ""} {
		if v, ok := row.Param(key); ok {
			t.Errorf("%s: %v", key, v)
		}
	}
}
