package scheme

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/halox/halox/p2p"
)

// For any content of a cache entry, the trials read from it are valid: existing schemes and paths, positive
// times, the fastest first.
func FuzzTrials(f *testing.F) {
	f.Add([]byte(`[{"scheme":"fused","path":"direct","ns":5400},{"scheme":"assisted","path":"peer","ns":9000}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var trials []Trial
		if json.Unmarshal(text, &trials) != nil || !validTrials(trials, p2p.Paths(), len(text)%2 == 1) {
			return
		}
		if len(trials) == 0 {
			t.Fatalf("no trials in: %s", text)
		}
		for i, one := range trials {
			if !slices.Contains(All(), one.Scheme) || one.Scheme == Baseline || !slices.Contains(p2p.Paths(), one.Path) {
				t.Fatalf("trial %d is %v", i, one)
			}
			if one.Step < 1 || i > 0 && one.Step < trials[i-1].Step {
				t.Fatalf("trial %d of %v", i, trials)
			}
		}
	})
}
