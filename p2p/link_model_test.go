package p2p

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/streams"
)

const us = time.Microsecond

func TestCurve(t *testing.T) {
	c := NewCurve(Sample{4096, 9 * us}, Sample{1024, 6 * us}, Sample{2048, 7 * us}, Sample{8192, 8 * us}, Sample{16384, 17 * us})
	for _, tc := range []struct {
		name  string
		bytes int64
		want  time.Duration
	}{
		{"below the smallest", 1, 6 * us},
		{"a sample", 2048, 7 * us},
		{"between two samples", 3072, 7*us + us/2},
		{"slower than a larger one", 4096, 8 * us},
		{"above the largest", 32768, 35 * us},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := c.Time(tc.bytes); got != tc.want {
				t.Errorf("%d bytes: got %v, want %v", tc.bytes, got, tc.want)
			}
		})
	}
	if steep := NewCurve(Sample{1, us}, Sample{2, time.Hour}); steep.Time(1<<62) != maxTime {
		t.Errorf("the largest message: got %v", steep.Time(1<<62))
	}
	if twice := NewCurve(Sample{8, 2 * us}, Sample{8, us}); twice.Time(9) != us {
		t.Errorf("two samples of one size: got %v", twice.Time(9))
	}
	if Curve(nil).Time(9) != 0 || NewCurve(Sample{8, us}).Time(1<<40) != us {
		t.Error("curves without samples and with one sample: wrong times")
	}
}

// gpus returns devices that are not open, with a link model of the link between them.
func gpus() ([]*streams.Device, *LinkModel) {
	var d []*streams.Device
	for i, bus := range []string{"0000:3b:00.0", "0000:3c:00.0"} {
		d = append(d, &streams.Device{Info: streams.Info{Backend: streams.CUDA, ID: i, Name: "GPU", PCIBusID: bus}})
	}
	r := NewLinkModel(d, "580.1")
	line := func(latency, perKiB time.Duration) Curve {
		return NewCurve(Sample{1024, latency}, Sample{1024 * 1025, latency + 1024*perKiB})
	}
	r.Set(d[0], d[1], Peer, false, line(5*us, 3))
	r.Set(d[0], d[1], Peer, true, line(13*us, 6))
	r.Set(d[0], d[1], Direct, true, line(7*us, 8))
	r.Set(d[0], d[1], Staged, false, line(16*us, 40))
	return d, r
}

func TestChooseTakesTheFastest(t *testing.T) {
	d, r := gpus()
	links := &Links{Model: r, links: map[[2]*streams.Device]*Link{
		{d[0], d[1]}: {From: d[0], To: d[1], Usable: true}, {d[1], d[0]}: {From: d[1], To: d[0], Usable: true},
	}}
	for _, c := range []struct {
		name  string
		want  Path
		back  bool
		shape MessageShape
		path  Path
		why   string
	}{
		{"contiguous", Auto, false, MessageShape{8192, false}, Peer, "peer: 5.0 us for 8 KiB; direct 7.1 us, staged 16.3 us"},
		{"packed and small", Auto, false, MessageShape{1024, true}, Direct, "direct: 7.0 us for 1 KiB; peer 13.0 us"},
		{"packed and large", Auto, false, MessageShape{1<<20 + 1<<19, true}, Direct, ""},
		{"packed and huge", Auto, false, MessageShape{1 << 24, true}, Peer, "peer: 111 us for 16 MiB; direct 138 us"},
		{"forced", Staged, false, MessageShape{8192, true}, Staged, "requested"},
		{"not measured", Auto, true, MessageShape{8192, true}, Peer, "the link is usable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, to := d[0], d[1]
			if c.back {
				from, to = to, from
			}
			path, why, err := links.Choose(c.want, from, to, c.shape)
			if err != nil || path != c.path || c.why != "" && why != c.why {
				t.Errorf("got %q, %q, %v", path, why, err)
			}
		})
	}
}

func TestLinkModelRoundTrip(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new")
	d, r := gpus()
	if _, err := LoadLinkModel(folder, d, "580.1"); err == nil {
		t.Error("an empty cache: got no error")
	}
	test.Check(t, r.Save(folder))
	got := test.Must(LoadLinkModel(folder, d, "580.1"))(t)
	for _, shape := range []MessageShape{{1, false}, {5000, true}, {1 << 30, true}} {
		for _, path := range []Path{Peer, Direct, Staged} {
			t1, ok1 := r.Time(d[0], d[1], path, shape)
			t2, ok2 := got.Time(d[0], d[1], path, shape)
			if t1 != t2 || ok1 != ok2 {
				t.Errorf("%v by %s: %v, %v, want %v, %v", shape, path, t2, ok2, t1, ok1)
			}
		}
	}
	if _, err := LoadLinkModel(folder, d, "590"); err == nil {
		t.Error("another driver: got no error")
	}
	if _, err := LoadLinkModel(folder, d[:1], "580.1"); err == nil {
		t.Error("other devices: got no error")
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 1 {
		t.Errorf("got files %v", left)
	}
}

func TestDamagedLinkModel(t *testing.T) {
	d, r := gpus()
	for name, spoil := range map[string]func(string) string{
		"cut off":             func(s string) string { return s[:len(s)/2] },
		"empty":               func(string) string { return "" },
		"another version":     func(s string) string { return strings.Replace(s, `"Version":2`, `"Version":99`, 1) },
		"of other GPUs":       func(s string) string { return strings.ReplaceAll(s, "0000:3c", "0000:3d") },
		"a time below 1":      func(s string) string { return strings.Replace(s, `"nanoseconds":5000`, `"nanoseconds":-5000`, 1) },
		"a curve that falls":  func(s string) string { return strings.Replace(s, `"nanoseconds":5000`, `"nanoseconds":500000000`, 1) },
		"no such path":        func(s string) string { return strings.Replace(s, `"path":"peer"`, `"path":"tunnel"`, 1) },
		"a size past 64 bits": func(s string) string { return strings.Replace(s, `"bytes":1024`, `"bytes":1e300`, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "new")
			test.Check(t, r.Save(folder))
			file := r.store(folder).Path()
			text := test.Must(os.ReadFile(file))(t)
			spoilt := spoil(string(text))
			if spoilt == string(text) {
				t.Fatal("the file must change")
			}
			test.Check(t, os.WriteFile(file, []byte(spoilt), 0o644))
			if _, err := LoadLinkModel(folder, d, "580.1"); err == nil {
				t.Error("LoadLinkModel: got no error")
			}
		})
	}
}

func TestCPUDevicesShareALinkModel(t *testing.T) {
	d := hostDevices(t, 3)
	r := NewLinkModel(d, "")
	r.Set(d[0], d[1], Peer, false, NewCurve(Sample{8, us}))
	if took, ok := r.Time(d[2], d[0], Peer, MessageShape{Bytes: 8}); !ok || took != us {
		t.Errorf("got %v, %v", took, ok)
	}
	if _, ok := (*LinkModel)(nil).Time(d[0], d[1], Peer, MessageShape{}); ok {
		t.Error("a nil link model: must not have times")
	}
}
