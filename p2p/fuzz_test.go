package p2p

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/halox/halox/internal/test"
)

// For any content of the file of a link model, all times are positive and grow with the message size, and the
// accepted curves are stored unchanged.
func FuzzLinkModel(f *testing.F) {
	d, r := gpus()
	text := test.Must(json.Marshal(r.kept()))(f)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		var curves []keptCurve
		if json.Unmarshal(text, &curves) != nil || !validCurves(curves) {
			return
		}
		r, again := NewLinkModel(d, "580.1"), NewLinkModel(d, "580.1")
		r.take(curves)
		for _, path := range Paths() {
			for _, packed := range []bool{false, true} {
				checkTimes(t, r.curves[tripOf(d[0], d[1], path, packed)])
			}
		}
		if again.take(r.kept()); !reflect.DeepEqual(r, again) {
			t.Fatalf("%v: got %v after a round trip", r, again)
		}
	})
}

// checkTimes checks that times grow with the message size.
func checkTimes(t *testing.T, c Curve) {
	for bytes, last := int64(1), c.Time(0); bytes > 0 && len(c) > 0; bytes *= 2 {
		took := c.Time(bytes)
		if took < 1 || took < last {
			t.Fatalf("%d bytes take %v by %v, but fewer bytes take %v", bytes, took, c, last)
		}
		last = took
	}
}
