package packing

import (
	"encoding/json"
	"slices"
	"testing"
)

// Whatever a file of tunings holds, what is taken from it can be looked up and fitted, and the
// model that comes of it forecasts positive times.
func FuzzTunings(f *testing.F) {
	var many []tuning
	for i := range 2 * enough {
		x := tuningOf(string(rune('a'+i)), 1000)
		x.Features[perByte], x.Features[perBlock] = float64(i*i), float64(7*i)
		many = append(many, x)
	}
	text, err := json.Marshal(many)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`[{"kind":"k","layout":"a","features":[1,2,3,4,5,6],"times":[{"engine":"units","ns":5}],"skipped":[{"engine":"tree","ns":9}]}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var all []tuning
		broken := func(x tuning) bool { return !x.valid(Engines()) }
		if json.Unmarshal(text, &all) != nil || slices.ContainsFunc(all, broken) {
			return
		}
		c := tuningCache{all: latest(all)}
		if len(c.all) > maxTunings {
			t.Fatalf("%d tunings", len(c.all))
		}
		for _, x := range c.all {
			if got, ok := c.get(x.Kind, x.Layout); !ok || got.Layout != x.Layout {
				t.Fatalf("got %v for %v", got, x)
			}
			all := c.model(x.Kind).forecasts(x.Features, Engines())
			wrong := func(a forecast) bool { return a.Time < 0 || a.known() && !(a.spread >= 1) }
			if len(all) != len(Engines()) || slices.ContainsFunc(all, wrong) {
				t.Fatalf("forecasts %v of %v", all, x)
			}
		}
	})
}
