package main

import "fmt"

// problem is the points of a device along x, y and the levels. Devices follow each other along y.
type problem struct{ nx, ny, nz int }

// sizes are those that have names: that of the thesis, and one that gives a GPU work for long.
var sizes = map[string]problem{"thesis": {128, 320, 26}, "full": {1024, 1024, 80}}

// mostPoints is how many a device has at most: 512 GiB for each field.
const mostPoints = 1 << 36

// parseSize reads NXxNYxNZ, or a name.
func parseSize(text string) (p problem, err error) {
	const most = 1 << 20
	if p, named := sizes[text]; named {
		return p, nil
	}
	n, err := fmt.Sscanf(text, "%dx%dx%d", &p.nx, &p.ny, &p.nz)
	if err != nil || n != 3 || fmt.Sprintf("%dx%dx%d", p.nx, p.ny, p.nz) != text {
		return p, fmt.Errorf("--size %s: three numbers of points, NXxNYxNZ, are wanted, or thesis or full", text)
	}
	if min(p.nx, p.ny, p.nz) < 1 || max(p.nx, p.ny, p.nz) > most {
		return p, fmt.Errorf("--size %s: 1 to %d points along each axis are possible", text, most)
	}
	if p.nx > mostPoints/p.ny/p.nz {
		return p, fmt.Errorf("--size %s: up to %d points are possible", text, mostPoints)
	}
	return p, nil
}
