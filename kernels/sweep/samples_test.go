package sweep

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/internal/scalar"
	"github.com/halox/halox/stencil"
)

// sample is a point function with its accesses.
type sample struct {
	point    Point
	accesses []Access
}

// samples are point functions typical of simulation codes.
func samples() []sample {
	return []sample{waveSample(), graySample("float64"), graySample("float32"), velocitySample(), maskedSample(), latticeSample(), placedSample(), upwindSample()}
}

type waveParameters struct{ C2 float64 }

// waveSample is the leap-frog step of the wave equation, with the kinetic energy.
func waveSample() sample {
	return sample{
		Point{
			Name: "wave", Dims: 3, Parameters: waveParameters{0.25},
			Reductions: []Reduction{{"motion", Sum}, {"highest", Max}},
			CUDA: `template <typename P> __device__ __forceinline__ void wave(P &p) {
	const double sum = p.at(u, 1, 0, 0) + p.at(u, -1, 0, 0) + p.at(u, 0, 1, 0) + p.at(u, 0, -1, 0)
		+ p.at(u, 0, 0, 1) + p.at(u, 0, 0, -1);
	const double v = 2 * p.at(u) - p.at(old) + p.parameters.C2 * (sum - 6 * p.at(u));
	p.set(next, v);
	p.reduce(motion, (v - p.at(old)) * (v - p.at(old)));
	p.reduce(highest, v);
}`,
			Go: func(r *Row) {
				c, e, w := At[float64](r, "u", 0, 0, 0), At[float64](r, "u", 1, 0, 0), At[float64](r, "u", -1, 0, 0)
				n, s := At[float64](r, "u", 0, 1, 0), At[float64](r, "u", 0, -1, 0)
				t, b := At[float64](r, "u", 0, 0, 1), At[float64](r, "u", 0, 0, -1)
				old, next := At[float64](r, "old", 0, 0, 0), At[float64](r, "next", 0, 0, 0)
				motion, highest := r.Reduced("motion"), r.Reduced("highest")
				c2 := Parameters[waveParameters](r).C2
				for i := range next {
					sum := e[i] + w[i] + n[i] + s[i] + t[i] + b[i]
					v := float64(2*c[i]) - old[i] + float64(c2*(sum-float64(6*c[i])))
					next[i] = v
					motion[i] = float64((v - old[i]) * (v - old[i]))
					highest[i] = v
				}
			},
		},
		[]Access{
			{Name: "u", Element: "float64", Footprint: stencil.Star(3, 1)},
			{Name: "old", Element: "float64", Footprint: stencil.Point()},
			{Name: "next", Element: "float64", Write: true, Before: "u"},
		},
	}
}

type grayParameters struct{ DiffuseU, DiffuseV, Feed, Kill float64 }

// graySample is a step of the Gray-Scott model, in either precision.
func graySample(e domain.Element) sample {
	p := Point{
		Name: "gray", Dims: 2, Parameters: &grayParameters{0.16, 0.08, 0.04, 0.06},
		CUDA: strings.ReplaceAll(`template <typename P, typename A> __device__ __forceinline__ REAL laplacian(const P &p, A f) {
	const REAL faces = p.at(f, -1, 0) + p.at(f, 1, 0) + p.at(f, 0, -1) + p.at(f, 0, 1);
	const REAL corners = p.at(f, -1, -1) + p.at(f, 1, -1) + p.at(f, -1, 1) + p.at(f, 1, 1);
	return (REAL)0.2 * faces + (REAL)0.05 * corners - p.at(f);
}
template <typename P> __device__ __forceinline__ void gray(P &p) {
	const auto &g = p.parameters;
	const REAL u = p.at(uv[0]), v = p.at(uv[1]), made = u * v * v;
	p.set(next[0], u + (REAL)g.DiffuseU * laplacian(p, uv[0]) - made + (REAL)g.Feed * (1 - u));
	p.set(next[1], v + (REAL)g.DiffuseV * laplacian(p, uv[1]) + made - (REAL)(g.Feed + g.Kill) * v);
}`, "REAL", scalar.CName(e)),
		Go: grayCounterpart[float64],
	}
	if e == "float32" {
		p.Go = grayCounterpart[float32]
	}
	return sample{p, []Access{
		{Name: "uv", Element: e, Components: 2, Footprint: stencil.Box(2, 1)},
		{Name: "next", Element: e, Components: 2, Write: true, Before: "uv"},
	}}
}

func grayCounterpart[T float32 | float64](r *Row) {
	g := Parameters[grayParameters](r)
	u, v := AtComponent[T](r, "uv", 0, 0, 0, 0), AtComponent[T](r, "uv", 1, 0, 0, 0)
	laplacian := func(q int) func(i int) T {
		at := func(dx, dy int) []T { return AtComponent[T](r, "uv", q, dx, dy, 0) }
		w, e, s, n := at(-1, 0), at(1, 0), at(0, -1), at(0, 1)
		sw, se, nw, ne := at(-1, -1), at(1, -1), at(-1, 1), at(1, 1)
		c := at(0, 0)
		return func(i int) T {
			return T(T(0.2)*(w[i]+e[i]+s[i]+n[i])) + T(T(0.05)*(sw[i]+se[i]+nw[i]+ne[i])) - c[i]
		}
	}
	lu, lv := laplacian(0), laplacian(1)
	nu, nv := AtComponent[T](r, "next", 0, 0, 0, 0), AtComponent[T](r, "next", 1, 0, 0, 0)
	for i := range nu {
		made := T(T(u[i]*v[i]) * v[i])
		nu[i] = u[i] + T(T(g.DiffuseU)*lu(i)) - made + T(T(g.Feed)*(1-u[i]))
		nv[i] = v[i] + T(T(g.DiffuseV)*lv(i)) + made - T(T(g.Feed+g.Kill)*v[i])
	}
}

// velocitySample is half a step of acoustics: velocities in place, from pressure on one side.
func velocitySample() sample {
	return sample{
		Point{
			Name: "velocity", Dims: 2, Parameters: struct{ Courant float64 }{0.5},
			CUDA: `template <typename P> __device__ __forceinline__ void velocity(P &s) {
	if (s.i() > 0) s.set(vx, s.at(vx) - s.parameters.Courant * (s.at(p) - s.at(p, -1)));
	if (s.j() > 0) s.set(vy, s.at(vy) - s.parameters.Courant * (s.at(p) - s.at(p, 0, -1)));
}`,
			Go: func(r *Row) {
				c := Parameters[struct{ Courant float64 }](r).Courant
				p, west, south := At[float64](r, "p", 0, 0, 0), At[float64](r, "p", -1, 0, 0), At[float64](r, "p", 0, -1, 0)
				vx, vy := At[float64](r, "vx", 0, 0, 0), At[float64](r, "vy", 0, 0, 0)
				for i := range vx {
					if r.I+i > 0 {
						vx[i] -= float64(c * (p[i] - west[i]))
					}
					if r.J > 0 {
						vy[i] -= float64(c * (p[i] - south[i]))
					}
				}
			},
		},
		[]Access{
			{Name: "p", Element: "float64", Footprint: stencil.Offsets(domain.Vec{}, domain.Vec{-1}, domain.Vec{0, -1})},
			{Name: "vx", Element: "float64", Footprint: stencil.Point(), Write: true, Before: "vx"},
			{Name: "vy", Element: "float64", Footprint: stencil.Point(), Write: true},
		},
	}
}

// maskedSample diffuses with a coefficient of z where a mask of bytes is set.
func maskedSample() sample {
	return sample{
		Point{
			Name: "masked", Dims: 3,
			CUDA: `template <typename P> __device__ __forceinline__ void masked(P &p) {
	float sum = p.at(u);
	if (p.at(solid) % 2 == 0)
		sum = sum + p.at(k) * (p.at(u, 2) - p.at(u, -1)) + p.at(k, 0, 0, 1) * (p.at(u, 0, 1, 1) - p.at(u, 0, -2, 0));
	p.set(next, sum);
	p.set(count, (unsigned char)(p.at(solid) + p.at(solid, 1, 0, -1)));
}`,
			Go: func(r *Row) {
				k, above := At[float32](r, "k", 0, 0, 0), At[float32](r, "k", 0, 0, 1)
				u, a, b := At[float32](r, "u", 0, 0, 0), At[float32](r, "u", 2, 0, 0), At[float32](r, "u", -1, 0, 0)
				c, d := At[float32](r, "u", 0, 1, 1), At[float32](r, "u", 0, -2, 0)
				solid, beside := At[uint8](r, "solid", 0, 0, 0), At[uint8](r, "solid", 1, 0, -1)
				next, count := At[float32](r, "next", 0, 0, 0), At[uint8](r, "count", 0, 0, 0)
				for i := range next {
					next[i] = u[i]
					if solid[i]%2 == 0 {
						next[i] = u[i] + float32(k[i]*(a[i]-b[i])) + float32(above[i]*(c[i]-d[i]))
					}
					count[i] = solid[i] + beside[i]
				}
			},
		},
		[]Access{
			{Name: "u", Element: "float32", Footprint: stencil.Offsets(domain.Vec{}, domain.Vec{2}, domain.Vec{-1}, domain.Vec{0, 1, 1}, domain.Vec{0, -2, 0})},
			{Name: "k", Element: "float32", Footprint: stencil.Offsets(domain.Vec{}, domain.Vec{0, 0, 1}), Constant: [3]bool{true, true, false}},
			{Name: "solid", Element: "uint8", Footprint: stencil.Offsets(domain.Vec{}, domain.Vec{1, 0, -1})},
			{Name: "next", Element: "float32", Write: true},
			{Name: "count", Element: "uint8", Write: true},
		},
	}
}

// velocities are those of the lattice D3Q19.
var velocities = func() (all []domain.Vec) {
	for _, o := range stencil.Box(3, 1) {
		if o[0]*o[0]+o[1]*o[1]+o[2]*o[2] < 3 {
			all = append(all, o)
		}
	}
	return all
}()

type latticeParameters struct{ Omega float64 }

// latticeSample is a step of D3Q19 lattice Boltzmann: distributions are pulled from their source, and relax.
func latticeSample() sample {
	table := func(axis int) string {
		var all []string
		for _, c := range velocities {
			all = append(all, fmt.Sprint(c[axis]))
		}
		return strings.Join(all, ", ")
	}
	var from []stencil.Footprint
	for _, c := range velocities {
		from = append(from, stencil.Offsets(domain.Vec{}.Sub(c)))
	}
	return sample{
		Point{
			Name: "lattice", Dims: 3, Parameters: latticeParameters{1.7},
			CUDA: fmt.Sprintf(`constexpr int cx[] = {%s}, cy[] = {%s}, cz[] = {%s};
template <typename P> __device__ __forceinline__ void lattice(P &p) {
	double in[19], rho = 0, ux = 0, uy = 0, uz = 0;
#pragma unroll
	for (int q = 0; q < 19; q++) {
		in[q] = p.at(f[q], -cx[q], -cy[q], -cz[q]);
		rho += in[q];
		ux += cx[q] * in[q], uy += cy[q] * in[q], uz += cz[q] * in[q];
	}
	ux /= rho, uy /= rho, uz /= rho;
	const double square = 1.5 * (ux * ux + uy * uy + uz * uz);
#pragma unroll
	for (int q = 0; q < 19; q++) {
		const int n = cx[q] * cx[q] + cy[q] * cy[q] + cz[q] * cz[q];
		const double w = n == 0 ? 1.0 / 3 : n == 1 ? 1.0 / 18 : 1.0 / 36, c = 3 * (cx[q] * ux + cy[q] * uy + cz[q] * uz);
		p.set(g[q], in[q] + p.parameters.Omega * (w * rho * (1 + c + 0.5 * c * c - square) - in[q]));
	}
}`, table(0), table(1), table(2)),
			Go: latticeCounterpart,
		},
		[]Access{
			{Name: "f", Element: "float64", Components: 19, Footprints: from},
			{Name: "g", Element: "float64", Components: 19, Write: true},
		},
	}
}

func latticeCounterpart(r *Row) {
	omega := Parameters[latticeParameters](r).Omega
	var f, g [19][]float64
	for q, c := range velocities {
		f[q], g[q] = AtComponent[float64](r, "f", q, -c[0], -c[1], -c[2]), AtComponent[float64](r, "g", q, 0, 0, 0)
	}
	for i := range r.N {
		var rho float64
		var u [3]float64
		for q, c := range velocities {
			rho += f[q][i]
			for a := range u {
				u[a] += float64(float64(c[a]) * f[q][i])
			}
		}
		for a := range u {
			u[a] /= rho
		}
		square := float64(1.5 * (float64(u[0]*u[0]) + float64(u[1]*u[1]) + float64(u[2]*u[2])))
		for q, c := range velocities {
			w := []float64{1.0 / 3, 1.0 / 18, 1.0 / 36}[c[0]*c[0]+c[1]*c[1]+c[2]*c[2]]
			e := float64(3 * (float64(float64(c[0])*u[0]) + float64(float64(c[1])*u[1]) + float64(float64(c[2])*u[2])))
			g[q][i] = f[q][i] + float64(omega*(float64(float64(w*rho)*(1+e+float64(float64(0.5*e)*e)-square))-f[q][i]))
		}
	}
}

// placedSample reads nothing: it writes the position of a point and the time.
func placedSample() sample {
	return sample{
		Point{
			Name: "placed", Dims: 3, Coordinates: Coordinates{Shift: [3]float64{1, 0.5, 0}, Spacing: [3]float64{0.1, 0.3, 0.7}},
			CUDA: `template <typename P> __device__ __forceinline__ void placed(P &p) {
	p.set(next, p.x() + 2 * p.y() + 4 * p.z() + p.time() * (double)p.step());
	p.set(index, (int)(p.i() + 100 * p.j() + 10000 * p.k()));
}`,
			Go: func(r *Row) {
				next, index := At[float64](r, "next", 0, 0, 0), At[int32](r, "index", 0, 0, 0)
				for i := range next {
					next[i] = r.X(i) + float64(2*r.Y()) + float64(4*r.Z()) + float64(r.Time()*float64(r.Step()))
					index[i] = int32(r.I + i + 100*r.J + 10000*r.K)
				}
			},
		},
		[]Access{{Name: "next", Element: "float64", Write: true}, {Name: "index", Element: "int32", Write: true}},
	}
}

// upwindSample reads upwind values, sparsely, since a point uses few of the offsets.
func upwindSample() sample {
	return sample{
		Point{
			Name: "upwind", Dims: 3, Reductions: []Reduction{{"flow", Sum}, {"lowest", Min}},
			CUDA: `template <typename P> __device__ __forceinline__ void upwind(P &p) {
	double v = p.at(old);
	if (p.at(wind) % 4 == 0) v = v + 0.5 * p.at(u, -1, 0, 0);
	if (p.at(wind) % 4 == 1) v = v - 0.5 * p.at(u, 2, 0, 0);
	if (p.at(wind) % 4 == 2) v = v + 0.25 * p.at(u, 0, 1, -1);
	p.set(next, v);
	p.reduce(flow, v - p.at(old));
	p.reduce(lowest, v);
}`,
			Go: func(r *Row) {
				old, next, wind := At[float64](r, "old", 0, 0, 0), At[float64](r, "next", 0, 0, 0), At[int32](r, "wind", 0, 0, 0)
				a, b, c := At[float64](r, "u", -1, 0, 0), At[float64](r, "u", 2, 0, 0), At[float64](r, "u", 0, 1, -1)
				flow, lowest := r.Reduced("flow"), r.Reduced("lowest")
				for i := range next {
					v := old[i]
					switch wind[i] % 4 {
					case 0:
						v += float64(0.5 * a[i])
					case 1:
						v -= float64(0.5 * b[i])
					case 2:
						v += float64(0.25 * c[i])
					}
					next[i], flow[i], lowest[i] = v, v-old[i], v
				}
			},
		},
		[]Access{
			{Name: "u", Element: "float64", Footprint: stencil.Offsets(domain.Vec{-1}, domain.Vec{2}, domain.Vec{0, 1, -1}), Sparse: true},
			{Name: "old", Element: "float64", Footprint: stencil.Point()},
			{Name: "wind", Element: "int32", Footprint: stencil.Point()},
			{Name: "next", Element: "float64", Write: true, Before: "old"},
		},
	}
}

// lbmSource is the source of examples/lbm.
const lbmSource = "../../examples/lbm/lbm.cu"

// lbmSample is the step of examples/lbm, for 192 points between the walls: 38 arrays, for which registers are scarce. Its
// Go counterpart is tested there. The test is skipped where the source is not.
func lbmSample(t *testing.T) sample {
	t.Helper()
	type parameters struct {
		NY           int64
		Omega, Force float64
	}
	var from []stencil.Footprint
	for _, c := range []domain.Vec{
		{}, {1}, {-1}, {0, 1}, {0, -1}, {0, 0, 1}, {0, 0, -1}, {1, 1}, {-1, -1}, {1, -1}, {-1, 1},
		{1, 0, 1}, {-1, 0, -1}, {1, 0, -1}, {-1, 0, 1}, {0, 1, 1}, {0, -1, -1}, {0, 1, -1}, {0, -1, 1},
	} {
		from = append(from, stencil.Offsets(domain.Vec{}, domain.Vec{}.Sub(c)))
	}
	return sample{
		Point{Name: "lbm", Dims: 3, CUDA: string(readSource(t, lbmSource)), File: "lbm.cu", Parameters: parameters{192, 1.07, 1e-6}},
		[]Access{
			{Name: "f", Element: "float64", Components: 19, Footprints: from, Sparse: true},
			{Name: "next", Element: "float64", Components: 19, Write: true},
		},
	}
}

// compiledSamples are those that the compiler is to keep in registers, without that of examples/lbm where its source is
// not: with test programs on other machines.
func compiledSamples(t *testing.T) []sample {
	t.Helper()
	if _, err := os.Stat(lbmSource); err != nil {
		t.Log("without lbm: ", err)
		return samples()
	}
	return append(samples(), lbmSample(t))
}
