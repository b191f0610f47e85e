package domain_test

import (
	"fmt"
	"log"

	"github.com/halox/halox/domain"
)

// cut returns a plane of 10 x 8 points, periodic along x, in 2 x 2 parts.
func cut() *domain.Decomposition {
	grid, err := domain.NewGrid([]int{10, 8}, []bool{true, false})
	if err != nil {
		log.Fatal(err)
	}
	d, err := domain.Decompose(grid, domain.Vec{2, 2, 1})
	if err != nil {
		log.Fatal(err)
	}
	return d
}

func ExampleDecompose() {
	for _, s := range cut().Subdomains {
		fmt.Println(s.Rank, s.Box)
	}
	// Output:
	// 0 [0,5)x[0,4)x[0,1)
	// 1 [5,10)x[0,4)x[0,1)
	// 2 [0,5)x[4,8)x[0,1)
	// 3 [5,10)x[4,8)x[0,1)
}

// On a periodic axis there is always a neighbor; beyond a physical face there is none.
func ExampleDecomposition_Neighbor() {
	for _, side := range domain.Faces(2) {
		rank, ok := cut().Neighbor(0, side)
		fmt.Println(side, rank, ok)
	}
	// Output:
	// x- 1 true
	// x+ 1 true
	// y- 0 false
	// y+ 2 true
}

// A field staggered along y has one more point than the grid between two physical faces.
func ExampleDecomposition_Staggered() {
	vy := cut().Staggered([]bool{false, true})
	fmt.Println(vy.Grid.Size, vy.Subdomains[2].Box)
	// Output: [10 9 1] [0,5)x[4,9)x[0,1)
}

// Four parts along the slowest axis have contiguous faces.
func ExampleAutoParts() {
	grid, err := domain.NewGrid([]int{256, 256, 256}, nil)
	if err != nil {
		log.Fatal(err)
	}
	parts, err := domain.AutoParts(grid, 4, domain.UniformRadius(3, 1))
	fmt.Println(parts, err)
	// Output: [1 1 4] <nil>
}

// The points sent upwards are the ghosts below the neighbor: here two layers.
func ExampleSendBox() {
	d := cut()
	up := domain.Direction{0, 1, 0}
	width := domain.Radius{Minus: domain.Vec{0, 2}, Plus: domain.Vec{0, 1}}
	fmt.Println(domain.SendBox(d.Subdomains[0].Box, up, width))
	fmt.Println(domain.GhostBox(d.Subdomains[2].Box, up.Opposite(), width))
	// Output:
	// [0,5)x[2,4)x[0,1)
	// [0,5)x[2,4)x[0,1)
}

// A step updates the boundary region first. Its messages travel while the interior is updated.
func ExampleSplit() {
	interior, boundary := domain.Split(cut().Subdomains[0].Box, domain.UniformRadius(2, 1))
	fmt.Println("interior", interior)
	for _, b := range boundary {
		fmt.Println("boundary", b)
	}
	// Output:
	// interior [1,4)x[1,3)x[0,1)
	// boundary [0,5)x[0,1)x[0,1)
	// boundary [0,5)x[3,4)x[0,1)
	// boundary [0,1)x[1,3)x[0,1)
	// boundary [4,5)x[1,3)x[0,1)
}

// Rows are padded so that the first owned point of each is aligned.
func ExampleLayout() {
	l, err := domain.NewLayout(cut().Subdomains[0].Box, domain.UniformRadius(2, 1), 8)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("pitch", l.Pitch)
	fmt.Println("owned", l.Offset(domain.Vec{0, 0, 0}), l.Offset(domain.Vec{0, 1, 0}))
	fmt.Println("ghost", l.Offset(domain.Vec{-1, 0, 0}))
	// Output:
	// pitch 16
	// owned 32 48
	// ghost 31
}
