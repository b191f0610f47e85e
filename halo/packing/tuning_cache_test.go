package packing

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The file does not grow without limit: the oldest go.
func TestTuningsAreBounded(t *testing.T) {
	b := newAutoBench(t)
	var c tuningCache
	c.open(b.cache, b.device, Engines(), nil)
	put := func(i int) {
		c.put(tuningOf(fmt.Sprint(i), time.Duration(1+i)))
	}
	for i := range maxTunings + 10 {
		put(i)
	}
	put(20) // again: it is the youngest now
	var again tuningCache
	again.open(b.cache, b.device, Engines(), nil)
	for name, c := range map[string]*tuningCache{"in memory": &c, "in the file": &again} {
		_, gone := c.get("k", "9")
		_, there := c.get("k", "10")
		if len(c.all) != maxTunings || gone || !there || c.all[maxTunings-1].Layout != "20" {
			t.Errorf("%s: %d, the first is %s, the last %s", name, len(c.all), c.all[0].Layout, c.all[len(c.all)-1].Layout)
		}
	}
	if files, err := filepath.Glob(filepath.Join(b.cache, "*.json")); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}
}

// Packers of equal devices share a file: none of them takes from it what another has put
// there, and each learns of it when it puts something there itself.
func TestTuningsAreShared(t *testing.T) {
	b := newAutoBench(t)
	one, two := b.packer(t, Options{}), b.packer(t, Options{})
	a, c, d := b.column(t, 100), b.column(t, 200), b.column(t, 300)
	_, first := b.auto(t, one, a)
	_, second := b.auto(t, two, c)
	_, third := b.auto(t, one, d)
	for name, p := range map[string]*Packer{"a new packer": b.packer(t, Options{}), "the one that put last": one} {
		if n := len(p.tunings.all); n != 3 {
			t.Errorf("%s knows %d layouts", name, n)
		}
		for x, want := range map[*task]string{a: first, c: second, d: third} {
			if _, why := b.auto(t, p, x); why != want {
				t.Errorf("%s: %s, not %s", name, why, want)
			}
		}
	}
}

// tuningOf returns a tuning for a layout of that name.
func tuningOf(layout string, took time.Duration) tuning {
	return tuning{Kind: "k", Layout: layout, Features: features{1}, Times: []timed{{Units, took}}}
}

// Of what two put in one file, the latest of each layout counts, and the oldest go.
func TestSharedTuningsAreInOrder(t *testing.T) {
	b := newAutoBench(t)
	var one, two, again tuningCache
	one.open(b.cache, b.device, Engines(), nil)
	two.open(b.cache, b.device, Engines(), nil)
	one.put(tuningOf("old", 1))
	one.put(tuningOf("twice", 1))
	for i := range maxTunings - 1 {
		two.put(tuningOf(fmt.Sprint(i), 2))
	}
	two.put(tuningOf("twice", 2))
	one.put(tuningOf("last", 3))
	again.open(b.cache, b.device, Engines(), nil)
	for name, c := range map[string]*tuningCache{"in memory": &one, "in the file": &again} {
		_, old := c.get("k", "old")
		if n := len(c.all); n != maxTunings || old || c.all[n-1].Layout != "last" {
			t.Errorf("%s: %d, the first is %s, the last %s", name, n, c.all[0].Layout, c.all[n-1].Layout)
		}
		if x, ok := c.get("k", "twice"); !ok || x.Times[0].Time != 2 {
			t.Errorf("%s: %+v is not what was measured last", name, x)
		}
	}
}

// What was measured is remembered by the packer also where it cannot be written.
func TestTuningsWithoutAFile(t *testing.T) {
	b := newAutoBench(t)
	file := filepath.Join(b.cache, "no folder")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var nowhere, c tuningCache
	c.open(file, b.device, Engines(), nil)
	for name, c := range map[string]*tuningCache{"no file": &nowhere, "one that cannot be made": &c} {
		c.put(tuningOf("a", 1))
		c.put(tuningOf("b", 1))
		if _, ok := c.get("k", "a"); !ok || len(c.all) != 2 {
			t.Errorf("%s: %d tunings", name, len(c.all))
		}
	}
}
