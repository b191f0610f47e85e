package sweep

import (
	"errors"
	"fmt"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// The CUDA source of every sample gives the bits of its twin, in boxes of many shapes, arrays that
// lie in memory in several ways, and nothing but the boxes changes.
func TestSourcesGiveTheBitsOfTheirTwins(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, set *testdevices.Set) {
		for i, s := range append(samples(), linearSamples(t)...) {
			name := fmt.Sprintf("%d/%s", i, s.point.Name)
			if l := s.point.linear; l != nil {
				name = fmt.Sprintf("linear/dims=%d/points=%d/groups=%d/%s", l.Dims, l.Points(), len(l.Groups), s.accesses[0].Element)
			}
			if l := s.point.linear; l != nil && set.Devices[0].Backend == streams.Host && s.accesses[0].Element == "float32" && l.Points() > 7 {
				continue // on the CPU one type does; each takes seconds to compile
			}
			t.Run(name, func(t *testing.T) {
				err := Check(set.Compiler, set.Devices[0], s.point, s.accesses)
				if errors.Is(err, ErrNoCompiler) {
					t.Skip("SKIPPED: ", err)
				}
				if err != nil {
					t.Fatal(err)
				}
			})
		}
	})
}
