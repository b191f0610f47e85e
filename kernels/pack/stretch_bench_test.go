package pack

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/streams"
)

// BenchmarkMisaligned times the packing of 16 MiB of rows that begin at odd multiples
// of align bytes, in words that all of them are aligned to and in stretches. It decides
// what suitsStretches says. It needs a GPU.
func BenchmarkMisaligned(b *testing.B) {
	platform, err := streams.CUDAPlatform(os.Getenv("HALOX_CUDA"))
	if errors.Is(err, streams.ErrNoDriver) {
		b.Skip("SKIPPED: no GPU here")
	}
	devices := kerneltest.Must(platform.Open(0))(b)
	defer streams.CloseAll(devices)
	copier := kerneltest.Must(NewBoxCopier(kernels.CompilerFromEnv(), devices[0]))(b)
	s := kerneltest.Must(devices[0].NewStream(streams.Normal))(b)
	for _, align := range []int64{1, 2, 4, 8} {
		for _, length := range []int64{16, 32, 64, 128, 256, 512, 1024, 4096, 65536} {
			for _, way := range []string{"words", "stretches"} {
				b.Run(fmt.Sprintf("align=%d/length=%d/way=%s", align, length, way), func(b *testing.B) {
					timeRows(b, copier, s, align, length-align, way == "stretches")
				})
			}
		}
	}
}

func timeRows(b *testing.B, m *BoxCopier, s *streams.Stream, align, length int64, stretched bool) {
	const bytes, many = 16 << 20, 50
	rows := bytes / (length + align)
	src, dst := kerneltest.Must(m.device.Alloc(2*bytes+align))(b), kerneltest.Must(m.device.Alloc(bytes+align))(b)
	defer src.Close()
	defer dst.Close()
	c := Strided{Point{dst.All(), 0}, Point{src.All(), align}, length, []Dim{{rows, length, 2 * (length + align)}}}
	r := c.run()
	part := r.strided(r.word(), uint32(r.word()))
	if stretched {
		part = r.stretches()
	}
	w := work{spec: streams.KernelSpec{Name: "rows", Reaches: []streams.Span{dst.All(), src.All()}}, runs: []run{r}, strided: []stridedCopy{part}}
	k := kerneltest.Must(m.copies(w))(b)
	defer k.Close()
	start, end := kerneltest.Must(m.device.NewTimedEvent())(b), kerneltest.Must(m.device.NewTimedEvent())(b)
	best := time.Duration(1 << 62)
	for b.Loop() {
		err := s.Record(start)
		for range many {
			err = errors.Join(err, s.Launch(k.Kernel))
		}
		if err = errors.Join(err, s.Record(end), s.Sync(streams.UploadLimit)); err != nil {
			b.Fatal(err)
		}
		best = min(best, kerneltest.Must(end.Since(start))(b)/many)
	}
	b.ReportMetric(float64(best.Nanoseconds())/1e3, "us/copy")
	b.ReportMetric(float64(rows*length)/float64(best.Nanoseconds()), "GB/s")
}
