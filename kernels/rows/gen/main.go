// Command gen writes the assembly of package rows, and the Go declarations
// that go with it, with avo. Run it by go generate in the package's folder.
package main

import (
	. "github.com/mmcloughlin/avo/build"
)

func main() {
	// The same condition stands in select_amd64.go, and its opposite in
	// select_go.go.
	ConstraintExpr("amd64,!race,!purego")

	for _, set := range []instructions{avx512, avx2} {
		for _, e := range []element{float64s, float32s} {
			v := vector{set, e}
			for _, s := range stencils {
				s.write(v)
			}
			writeNorms(v)
		}
	}
	Generate()
}
