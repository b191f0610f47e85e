package streams

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
)

func TestCopyBox(t *testing.T) {
	copyBoxes(t, hostDevices(t, 2))
}

// copyBoxes copies random boxes between all kinds of memory of the devices, rows also by Copy, and compares all
// bytes with those of a plain loop.
func copyBoxes(t *testing.T, devices []*Device) {
	first, last := devices[0], devices[len(devices)-1]
	type alloc = func(int64) (*Memory, error)
	for _, way := range []struct {
		name     string
		dst, src alloc
	}{
		{"within a device", first.Alloc, first.Alloc},
		{"to a peer", last.Alloc, first.Alloc},
		{"from a peer", first.Alloc, last.Alloc},
		{"to pinned memory", first.AllocPinned, first.Alloc},
		{"from pinned memory", first.Alloc, first.AllocPinned},
		{"from pinned memory of a peer", first.Alloc, last.AllocPinned},
	} {
		t.Run(way.name, func(t *testing.T) {
			const cases, room = 150, 64 << 10
			r, noise := rand.New(rand.NewPCG(1, 2)), rand.NewChaCha8([32]byte{1, 2})
			s := test.Must(first.NewStream(Normal))(t)
			dst, src := test.Must(way.dst(room))(t), test.Must(way.src(room))(t)
			before, after := test.Must(first.AllocPinned(room))(t), test.Must(first.AllocPinned(room))(t)
			given := test.Must(first.AllocPinned(room))(t)
			for i := range cases {
				c := randomBox(r, dst, src, i)
				noise.Read(before.Bytes()) // never returns an error
				noise.Read(given.Bytes())
				test.Check(t, fill(dst, before), fill(src, given))
				if to, from := c.dst, c.src; c.height == 1 && c.depth == 1 && i%3 > 0 {
					to.Span.Offset, from.Span.Offset = to.Span.Offset+to.Offset, from.Span.Offset+from.Offset
					to.Span.Length, from.Span.Length = c.width, c.width
					test.Check(t, s.Copy(to.Span, from.Span))
				} else {
					test.Check(t, s.CopyBox(c.dst, c.src, c.width, c.height, c.depth))
				}
				test.Check(t, s.Sync(testLimit), fill(after, dst))
				want := bytes.Clone(before.Bytes())
				copyPlainly(want, given.Bytes(), c)
				compare(t, after.Bytes(), want, c)
			}
			test.Check(t, s.Close(), dst.Close(), src.Close(), before.Close(), after.Close(), given.Close())
		})
	}
}

// fill copies all of src to dst, one of which is pinned, and waits.
func fill(dst, src *Memory) error {
	if dst.pinned && src.pinned {
		copy(dst.bytes, src.bytes)
		return nil
	}
	d := dst.device // not that of a pinned block, which may be another device
	if dst.pinned {
		d = src.device
	}
	s, err := d.NewStream(Normal)
	if err != nil {
		return err
	}
	return errors.Join(s.Copy(dst.All(), src.All()), s.Sync(testLimit), s.Close())
}

// randomBox returns a box of up to three dimensions. Every fourth ends with the last byte of its memory at both
// ends.
func randomBox(r *rand.Rand, dst, src *Memory, i int) box {
	size := func(most int64) int64 { return 1 + r.Int64N(most)*min(1, r.Int64N(4)) }
	b := box{width: size(70), height: size(7), depth: size(6)}
	tight := i%4 == 0
	dense := r.IntN(3) == 0
	b.dst, b.src = randomEnd(r, dst, b, tight, dense), randomEnd(r, src, b, tight, dense)
	return b
}

// randomEnd returns the location of the box at one end: rows without gaps if dense, and otherwise often with gaps,
// and planes a multiple of the pitch apart unless the box has fewer dimensions.
func randomEnd(r *rand.Rand, m *Memory, b box, tight, dense bool) Pitched {
	p := Pitched{Pitch: b.width}
	if !dense {
		p.Pitch += r.Int64N(3) * r.Int64N(20)
	}
	p.Plane = p.Pitch * (b.height + r.Int64N(3)*r.Int64N(2))
	if b.height == 1 || dense {
		p.Plane += r.Int64N(2) * r.Int64N(30)
	}
	length := (b.depth-1)*p.Plane + (b.height-1)*p.Pitch + b.width
	if b.height == 1 && r.IntN(2) == 0 {
		p.Pitch = 0
	}
	if b.depth == 1 && r.IntN(2) == 0 {
		p.Plane = 0
	}
	p.Offset = r.Int64N(40)
	p.Span = m.Span(m.Size()-length-p.Offset, length+p.Offset)
	if !tight {
		p.Span = m.Span(r.Int64N(100), length+p.Offset+r.Int64N(30))
	}
	return p
}

// copyPlainly is a byte-by-byte reference of CopyBox.
func copyPlainly(dst, src []byte, b box) {
	for z := range b.depth {
		for y := range b.height {
			for x := range b.width {
				to := b.dst.Span.Offset + b.dst.Offset + z*b.dst.Plane + y*b.dst.Pitch + x
				from := b.src.Span.Offset + b.src.Offset + z*b.src.Plane + y*b.src.Pitch + x
				dst[to] = src[from]
			}
		}
	}
}

func compare(t *testing.T, got, want []byte, b box) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("byte %d: got %#x, want %#x after copy %v", i, got[i], want[i], b)
		}
	}
}

// A copy of a box is ordered with earlier and later work on its stream.
func TestCopyBoxKeepsTheOrder(t *testing.T) {
	d := hostDevices(t, 1)[0]
	s := test.Must(d.NewStream(Normal))(t)
	a, b := test.Must(d.Alloc(64))(t), test.Must(d.Alloc(64))(t)
	hold := make(chan struct{})
	fill := test.Must(d.NewKernel(KernelSpec{Name: "fill", Uses: []Span{a.All()}, Run: func() {
		<-hold
		copy(a.Bytes(), "abcdefghijklmnop")
	}}))(t)
	spoil := test.Must(d.NewKernel(KernelSpec{Name: "spoil", Uses: []Span{a.All()}, Run: func() { clear(a.Bytes()) }}))(t)
	test.Check(t, s.Launch(fill),
		s.CopyBox(Pitched{b.All(), 1, 3, 0}, Pitched{a.All(), 2, 4, 0}, 2, 3, 1),
		s.Launch(spoil))
	close(hold)
	test.Check(t, s.Sync(testLimit))
	if got, want := b.Bytes()[:10], "\x00cd\x00gh\x00kl\x00"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Folding reduces planes and rows but describes the same box.
func TestFolded(t *testing.T) {
	const limit = 1000
	end := func(pitch, plane int64) Pitched { return Pitched{Pitch: pitch, Plane: plane} }
	for _, tc := range []struct {
		name                 string
		dst, src             Pitched
		width, height, depth int64
		want                 string // planes x rows x bytes, and the remaining distances
	}{
		{"gaps everywhere", end(10, 50), end(16, 64), 8, 3, 2, "2 x 3 x 8 10 50 16 64"},
		{"one row", end(0, 0), end(-7, 9), 8, 1, 1, "1 x 1 x 8"},
		{"one row per plane", end(0, 50), end(16, 33), 8, 1, 2, "1 x 2 x 8 50 33"},
		{"contiguous planes", end(10, 30), end(16, 48), 8, 3, 2, "1 x 6 x 8 10 16"},
		{"contiguous planes at one end", end(10, 30), end(16, 64), 8, 3, 2, "2 x 3 x 8 10 30 16 64"},
		{"rows without gaps", end(8, 50), end(8, 33), 8, 3, 2, "1 x 2 x 24 50 33"},
		{"rows without gaps at one end", end(8, 48), end(9, 36), 8, 3, 2, "2 x 3 x 8 8 48 9 36"},
		{"rows without gaps, planes beyond a pitch", end(8, 1008), end(8, 32), 8, 3, 2, "2 x 3 x 8 8 1008 8 32"},
		{"one plane without gaps", end(8, 0), end(8, 0), 8, 3, 1, "1 x 1 x 24"},
		{"no gaps at all", end(8, 24), end(8, 24), 8, 3, 2, "1 x 1 x 48"},
		{"planes of one row without gaps", end(3, 8), end(3, 8), 8, 1, 2, "1 x 1 x 16"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := box{tc.dst, tc.src, tc.width, tc.height, tc.depth}.folded(limit)
			got := fmt.Sprintf("%d x %d x %d", b.depth, b.height, b.width)
			switch {
			case b.depth > 1:
				got += fmt.Sprintf(" %d %d %d %d", b.dst.Pitch, b.dst.Plane, b.src.Pitch, b.src.Plane)
			case b.height > 1:
				got += fmt.Sprintf(" %d %d", b.dst.Pitch, b.src.Pitch)
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestCopyBoxErrors(t *testing.T) {
	d := hostDevices(t, 1)[0]
	s := test.Must(d.NewStream(Normal))(t)
	m, from := test.Must(d.Alloc(100))(t), test.Must(d.AllocPinned(100))(t)
	good := Pitched{from.All(), 0, 10, 50}
	to := func(offset, pitch, plane int64) Pitched { return Pitched{m.All(), offset, pitch, plane} }
	const huge = math.MaxInt64
	for _, tc := range []struct {
		name                 string
		dst, src             Pitched
		width, height, depth int64
		says                 string
		unsuited             bool
	}{
		{"no bytes", to(0, 10, 50), good, 0, 5, 2, "copy 2 planes of 5 rows of 0 bytes to host 0 [0, 100) of 100 bytes at 0, pitch 10, plane 50 " +
			"from pinned memory [0, 100) of 100 bytes at 0, pitch 10, plane 50: width, height and depth must be at least 1", false},
		{"no rows", to(0, 10, 50), good, 8, 0, 2, "width, height and depth must be at least 1", false},
		{"a negative depth", to(0, 10, 50), good, 8, 5, -1, "width, height and depth must be at least 1", false},
		{"no memory", Pitched{}, good, 8, 1, 1, "to no memory at 0, pitch 0, plane 0 from pinned memory [0, 100) of 100 bytes at 0, " +
			"pitch 10, plane 50: destination: the span must be within its memory", false},
		{"a span past its memory", Pitched{Span: m.Span(60, 41)}, good, 8, 1, 1, "destination: the span must be within its memory", false},
		{"before its span", to(-1, 10, 50), good, 8, 5, 2, "destination: offset, pitch and plane must not be negative", false},
		{"a negative pitch", to(50, -10, 50), good, 8, 5, 1, "destination: offset, pitch and plane must not be negative", false},
		{"a negative plane", good, to(50, 10, -50), 8, 5, 2, "source: offset, pitch and plane must not be negative", false},
		{"rows that overlap", to(0, 7, 50), good, 8, 5, 2, "destination: rows must not overlap, got rows of 8 bytes and a pitch of 7", false},
		{"all rows in one place", to(0, 0, 50), good, 8, 5, 2, "destination: rows must not overlap, got rows of 8 bytes and a pitch of 0", false},
		{"planes that overlap", good, to(0, 10, 40), 8, 5, 2, "source: planes must not overlap, got planes of 48 bytes at a distance of 40", false},
		{"planes of one row that overlap", good, to(0, 0, 7), 8, 1, 2, "source: planes must not overlap, got planes of 8 bytes at a distance of 7", false},
		{"a row past the end", to(93, 0, 0), good, 8, 1, 1, "destination: must be within its span of 100 bytes", false},
		{"rows past the end", to(3, 10, 50), good, 8, 10, 1, "destination: must be within its span of 100 bytes", false},
		{"planes past the end", to(3, 10, 50), good, 8, 5, 2, "destination: must be within its span of 100 bytes", false},
		{"past its span but not its memory", Pitched{m.Span(0, 97), 0, 10, 50}, good, 8, 5, 2, "within its span of 97 bytes", false},
		{"a huge row", to(0, huge, huge), good, huge, 2, 2, "within its span of 100 bytes", false},
		{"a huge offset", to(huge, 10, 50), good, 8, 5, 2, "within its span of 100 bytes", false},
		{"a huge pitch", to(0, huge, huge), good, 8, 5, 2, "within its span of 100 bytes", false},
		{"rows of 2^64 bytes in total", to(0, 1<<32, 0), good, 8, 1<<32 + 1, 1, "within its span of 100 bytes", false},
		{"a huge plane", to(0, 10, huge), good, 8, 5, 2, "within its span of 100 bytes", false},
		{"huge numbers of all", to(huge, huge, huge), good, huge, huge, huge, "within its span of 100 bytes", false},
		{"a plane distance that is not a multiple of the pitch", to(0, 10, 51), good, 8, 4, 2,
			"not possible as a single copy: the distance of planes, 51 bytes, must be a multiple of the pitch, 10", true},
		{"the same in the source", good, to(0, 9, 50), 8, 5, 2,
			"not possible as a single copy: the distance of planes, 50 bytes, must be a multiple of the pitch, 9", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := s.CopyBox(tc.dst, tc.src, tc.width, tc.height, tc.depth)
			if err == nil || !strings.HasPrefix(err.Error(), "device host 0: copy ") || !strings.HasSuffix(err.Error(), tc.says) {
				t.Errorf("got  %v\nwant %s", err, tc.says)
			}
			if errors.Is(err, ErrUnsuited) != tc.unsuited {
				t.Errorf("ErrUnsuited: got %v", !tc.unsuited)
			}
		})
	}
	test.Check(t, d.Err(), s.CopyBox(to(2, 10, 50), good, 8, 5, 2), s.Sync(testLimit))
}
