package ranks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
)

// What ranks log comes whole, each rank's lines in their order, also where there are more than there is room for.
func TestLog(t *testing.T) {
	testdevices.EachKernel(t, 2, func(t *testing.T, s *testdevices.Set) {
		var log strings.Builder
		const n = 3
		w := opened(t, s, ranks.Program{Name: "logs", Kernel: "logs", Threads: 32, Host: func(r *ranks.Rank) {
			for i := range 300 {
				r.Log("line ", i, " of ", uint32(300), " is ", 0.5*float64(i), " and ", float32(1.5), " at ", -7)
			}
			if r.Index(ranks.All) == 0 {
				r.Log("this is longer than a line may be")
				r.Log("cut: ", "01234567")
				r.Log("odd:\n", true, " ", float32(0.1))
			}
		}}, ranks.Options{Ranks: n, Log: &log})
		for range 2 {
			log.Reset()
			test.Check(t, ranks.Run(t.Context(), w, make([]struct{}, len(s.Devices))))
			next := make([]int, w.Size())
			long, odd, cut := 0, 0, 0
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "longer than a line may be") {
					long++
					continue
				}
				switch _, text, _ := strings.Cut(line, "): "); {
				case text == "odd: 1 0.10000000149011612\n":
					odd++
					continue
				case strings.HasPrefix(text, "cut: ") && strings.HasSuffix(text, " 01234567\n"):
					cut++
					continue
				}
				var rank int
				if _, err := fmt.Sscanf(line, "rank %d", &rank); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				i := next[rank]
				next[rank]++
				want := fmt.Sprintf("rank %d (%v): line %d of 300 is %v and 1.5 at -7\n", rank, s.Devices[rank/n], i, 0.5*float64(i))
				if line != want {
					t.Fatalf("%q, want %q", line, want)
				}
			}
			for rank, lines := range next {
				if lines != 300 {
					t.Errorf("rank %d has %d lines", rank, lines)
				}
			}
			if long != 1 || odd != 1 || cut != 1 {
				t.Errorf("%d long lines, %d odd ones, %d that are cut", long, odd, cut)
			}
		}
	})
}
