package main

import "fmt"

// problem is the points of a device along x, y and the levels. Devices follow each other along y.
type problem struct{ nx, ny, nz int }

// parseSize reads NXxNYxNZ.
func parseSize(text string) (p problem, err error) {
	const most = 1 << 20
	n, err := fmt.Sscanf(text, "%dx%dx%d", &p.nx, &p.ny, &p.nz)
	if err != nil || n != 3 || fmt.Sprintf("%dx%dx%d", p.nx, p.ny, p.nz) != text {
		return p, fmt.Errorf("--size %s: three numbers of points, NXxNYxNZ, are wanted", text)
	}
	if min(p.nx, p.ny, p.nz) < 1 || max(p.nx, p.ny, p.nz) > most {
		return p, fmt.Errorf("--size %s: 1 to %d points along each axis are possible", text, most)
	}
	return p, nil
}
