package docs_test

import (
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
)

// figures are the pictures of records below results, each with the arguments of halox plot that draw it there.
var figures = map[string]string{
	"h100x4/performance/schemes-float64-4.png": "h100x4/performance/schemes-float64.json h100x4/performance/schemes-steps.json --where devices=4",
	"h100x4/performance/scaling-strong.png":    "h100x4/performance/scaling-assisted.json h100x4/performance/scaling-resident.json h100x4/performance/scaling-blocked.json --where mode=strong",
	"h100x4/performance/scaling-weak.png":      "h100x4/performance/scaling-assisted.json h100x4/performance/scaling-resident.json h100x4/performance/scaling-blocked.json --where mode=weak",
	"h100x4/ranks/ranks-put-and-notify.png":    "h100x4/ranks/ranks.json --kind ranks --where 'what=put and notify'",
	"h100x4/ranks/ranks-overlap-newton.png":    "h100x4/ranks/ranks.json --kind overlap --where what=overlap --where computing=newton --where multiprocessor_bytes=262144 --where staggered=0",
	"h100x4/networks/trace-mpi.png":            "h100x4/networks/trace-mpi.json",
	"h100x4/networks/trace-nccl.png":           "h100x4/networks/trace-nccl.json",
	"h200x2/exchange.png":                      "h200x2/exchange.json",
	"h200x2/performance/roofline.png":          "h200x2/performance/sweep.json h200x2/performance/sweep-kinds.json --kind roofline --where norms= --peak float64=34000 --peak float32=67000",
	"h200x2/performance/schemes-float64-2.png": "h200x2/performance/schemes-float64.json h200x2/performance/schemes-steps.json --where devices=2",
	"h200x2/performance/trace-assisted.png":    "h200x2/performance/trace-assisted.json",
	"h200x2/performance/trace-two-stream.png":  "h200x2/performance/trace-two-stream.json",
	"h200x2/packing/hand-5b.png":               "h200x2/packing/hand-5b.json --kind hand-5b",
	"h200x2/packing/hand-6.png":                "h200x2/packing/pack.json --kind hand-6",
	"h200x2/packing/jenkins-4.png":             "h200x2/packing/jenkins-4.json --kind jenkins-4",
	"h200x2/packing/wu-6.png":                  "h200x2/packing/wu-6.json --kind wu-6",
	"h200x2/packing/wu-8.png":                  "h200x2/packing/wu-8.json --kind wu-8",
	"h200x2-checkpoints/checkpoint.png":        "h200x2-checkpoints/checkpoint.json",
	"h200x2-checkpoints/slowdown.png":          "h200x2-checkpoints/checkpoint.json h200x2-checkpoints/statistics.json --kind slowdown",
	"h200x4/performance/schemes-float64-4.png": "h200x4/performance/schemes-float64.json --where devices=4",
	"h200x4/performance/scaling-strong.png":    "h200x4/performance/scaling-assisted.json h200x4/performance/scaling-resident.json --where mode=strong",
	"../docs/images/many-hosts.png":            "forecast/h200x4.json",
	"../docs/images/peers-step.png":            "peers/h200x2.json --kind bars --x problem --y step --by program --where 'what=small grids'",
	"../docs/images/peers-updates.png":         "peers/h200x1.json --kind bars --x problem --y updates --by program",
}

// Each picture is what halox plot draws from the records. A few pixels may differ, because processors round differently.
// UPDATE=1 writes the pictures.
func TestPicturesDrawWhatRecordsSay(t *testing.T) {
	halox, dir := filepath.Join(t.TempDir(), "halox"), t.TempDir()
	shell(t, root(t), "go build -o "+halox+" ./cmd/halox")
	for picture, args := range figures {
		t.Run(picture, func(t *testing.T) {
			out, kept := filepath.Join(dir, filepath.Base(filepath.Dir(picture))+filepath.Base(picture)), filepath.Join("../results", picture)
			if os.Getenv("UPDATE") != "" {
				out = filepath.Join(root(t), "results", picture)
			}
			shell(t, filepath.Join(root(t), "results"), halox+" plot "+args+" --quiet -o "+out)
			got, want := test.Must(png.Decode(strings.NewReader(read(t, out))))(t), test.Must(png.Decode(strings.NewReader(read(t, kept))))(t)
			if got.Bounds() != want.Bounds() {
				t.Fatalf("it covers %v, drawn again %v", want.Bounds(), got.Bounds())
			}
			others, size := 0, got.Bounds().Size()
			for i := range size.X * size.Y {
				if got.At(i%size.X, i/size.X) != want.At(i%size.X, i/size.X) {
					others++
				}
			}
			if others > size.X*size.Y/200 {
				t.Errorf("%d of %d pixels differ; UPDATE=1 go test ./docs -run Records writes it", others, size.X*size.Y)
			}
		})
	}
	for _, file := range under(t, "../results", ".png") {
		if name := strings.TrimPrefix(file, "../results/"); !strings.Contains(name, "testdata/") && figures[name] == "" {
			t.Errorf("nothing draws %s", file)
		}
	}
}
