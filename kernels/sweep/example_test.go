package sweep_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// A heat source that moves along x. The sum of the added heat is computed in the sweep.
func ExampleCheck() {
	heat := sweep.Point{
		Name: "heat", Dims: 3,
		Coordinates: sweep.Coordinates{Shift: [3]float64{0.5, 0.5, 0.5}, Spacing: [3]float64{0.1, 0.1, 0.1}},
		Reductions:  []sweep.Reduction{{Name: "added", Op: sweep.Sum}},
		CUDA: `
template <typename P> __device__ __forceinline__ void heat(P &p) {
	const double far = (p.x() - p.time()) * (p.x() - p.time()) + p.y() * p.y() + p.z() * p.z();
	const double value = 1 / (1 + far);
	p.set(next, p.at(u) + value);
	p.reduce(added, value);
}`,
		Go: func(r *sweep.Row) {
			u, next := sweep.At[float64](r, "u", 0, 0, 0), sweep.At[float64](r, "next", 0, 0, 0)
			added, t, y, z := r.Reduced("added"), r.Time(), r.Y(), r.Z()
			for i := range next {
				x := r.X(i)
				far := float64((x-t)*(x-t)) + float64(y*y) + float64(z*z)
				added[i] = 1 / (1 + far)
				next[i] = u[i] + added[i]
			}
		},
	}
	accesses := []sweep.Access{
		{Name: "u", Element: "float64", Footprint: stencil.Point()},
		{Name: "next", Element: "float64", Write: true},
	}
	devices, err := streams.HostPlatform(1).Open()
	if err != nil {
		log.Fatal(err)
	}
	defer streams.CloseAll(devices)
	err = sweep.Check(kernels.NewCompiler(kernels.Options{}), devices[0], heat, accesses, sweep.CheckOptions{})
	fmt.Println("they differ:", errors.Is(err, sweep.ErrDiffer))
	if err != nil && !errors.Is(err, sweep.ErrNoCompiler) {
		log.Fatal(err)
	}
	// Output: they differ: false
}
