package sweep

import (
	"slices"
	"testing"
)

// Whatever an entry of a tuning holds, what is taken from it is one of the shapes that are tried,
// with times that can have been measured.
func FuzzTuning(f *testing.F) {
	shapes := shapesOf([]int{1, 4}, [2]int{32, 4}, [2]int{64, 2})
	f.Add([]byte(`{"key":"k","shape":{"block":[32,4],"layers":4,"single":false},"sweep_ns":1000,"default_ns":1200,"tried":3}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := tuningIn(text, "k", shapes)
		if ok && (got.Key != "k" || !slices.Contains(shapes, got.Shape) || got.Sweep < 1 || got.Default < got.Sweep) {
			t.Fatalf("%+v was taken from %s", got, text)
		}
	})
}
