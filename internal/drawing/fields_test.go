package drawing

import (
	"math"
	"testing"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results"
)

// The field of a run is found by the name of its file, which begins or ends with that of the field.
func TestFieldOfAFile(t *testing.T) {
	const text = "solver: equation\ngrid: {size: [4, 3]}\nfields: {u: {initial: 1}, uv: {initial: 1}, v: {initial: 1}}\n" +
		"equations: {u: lap(u), uv: lap(uv), v: lap(v)}\ntime: {integrator: euler, dt: 1e-3}\nstop: {iterations: 3}\n"
	config := test.Must(configs.Parse("c.yaml", []byte(text), configs.Options{}))(t)
	run := &runOf{record: &results.Record{Run: &results.Run{}}, config: config, problem: test.Must(config.Problem())(t)}
	for name, want := range map[string]string{
		"u": "u", "uv": "uv", "uv (K)": "uv", "v_end": "v", "u-v": "v", "out-uv": "uv", "w": "",
	} {
		f, err := run.describe(frame{path: name + ".npy", name: name, time: math.NaN(), size: []int{4, 3}}, nil)
		if (err != nil) != (want == "") || err == nil && f.Label != want {
			t.Errorf("%s is field %+v, %v", name, f, err)
		}
	}
}
