package p2p

import (
	"bytes"
	"testing"
)

// Whatever the file of a link model holds, it is one or an error. Of what was read every time is
// positive and grows with the message, and it is written so that it reads as the same.
func FuzzLinkModel(f *testing.F) {
	d, r := gpus()
	text, err := r.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		r := NewLinkModel(d, "580.1")
		if r.parse(text) != nil {
			return
		}
		for _, path := range Paths() {
			for _, packed := range []bool{false, true} {
				checkTimes(t, r.curves[tripOf(d[0], d[1], path, packed)])
			}
		}
		once, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		again := NewLinkModel(d, "580.1")
		if err := again.parse(once); err != nil {
			t.Fatal(err)
		}
		if twice, err := again.encode(); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%v: wrote\n%s\nand then\n%s", err, once, twice)
		}
	})
}

// checkTimes checks that no message takes less than a smaller one.
func checkTimes(t *testing.T, c Curve) {
	for bytes, last := int64(1), c.Time(0); bytes > 0 && len(c) > 0; bytes *= 2 {
		took := c.Time(bytes)
		if took < 1 || took < last {
			t.Fatalf("%d bytes take %v by %v, and fewer %v", bytes, took, c, last)
		}
		last = took
	}
}
