package ranks

import (
	"fmt"
	"slices"
	"testing"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// Device ranks, streams and graphs give the values of plain loops over the rows of all devices.
func TestCompare(t *testing.T) {
	testdevices.EachKernel(t, 2, func(t *testing.T, s *testdevices.Set) {
		on := &bench.Machine{Session: &halo.Session{Devices: s.Devices, Links: s.Links, Compiler: s.Compiler}}
		r := &run{Machine: on, options: &Options{Threads: 64}}
		for _, p := range problems {
			for devices := 1; devices <= min(2, len(s.Devices)); devices++ {
				for _, by := range []string{byRanks, byStreams, byGraph} {
					for _, blocks := range testdevices.Some(2, []int{1, 5, 12}) {
						t.Run(fmt.Sprintf("%s/%s/devices=%d/blocks=%d", p.name, by, devices, blocks), func(t *testing.T) {
							p.size = p.small
							want := plainLoops(p, devices, 6)
							var open streams.Resources
							defer open.Close()
							c := test.Must(r.newComparison(p, devices, blocks, &open))(t)
							steps := test.Must(c.stepper(t.Context(), by))(t)
							for _, n := range []int{1, 2} { // of two steps each
								test.Must(steps(n))(t)
							}
							if got := c.owned(t); !slices.Equal(got, want) {
								t.Errorf("%v, want %v", got, want)
							}
						})
					}
				}
			}
		}
	})
}

// plainLoops runs steps on the rows of some devices as one block.
func plainLoops(p problem, devices, steps int) (all []float64) {
	whole := p.small
	whole.Rows *= int64(devices)
	s := share{[2]int64{0, whole.Levels}, [2]int64{0, whole.Rows}}
	values := make([]float64, whole.offset(p.fields, -1))
	row := func(field, y int64) []float64 {
		return values[whole.offset(field, (y+whole.Rows)%whole.Rows):][:whole.pitch()]
	}
	for y := range whole.Rows {
		p.first(&whole, row(0, y), y)
	}
	for step := range int64(steps) {
		for phase := range p.phases {
			p.compute(&whole, row, s, phase, step%2)
		}
	}
	for y := range whole.Rows {
		all = append(all, row(0, y)[:p.length(&whole, s, row(0, y))]...)
	}
	return all
}

// owned returns the values of field 0 of all devices.
func (c *comparison) owned(t *testing.T) (all []float64) {
	t.Helper()
	for i, d := range c.devices {
		host := test.Must(d.AllocPinned(c.memory[i].Size()))(t)
		s := test.Must(d.NewStream(streams.Normal))(t)
		c.Add(host, s)
		test.Check(t, s.Copy(host.All(), c.memory[i].All()))
		test.Check(t, s.Sync(streams.UploadLimit))
		p, values := &c.parts[i], streams.View[float64](host.Bytes())
		for y := range p.Rows {
			row := values[p.offset(0, y):][:p.pitch()]
			all = append(all, row[:c.length(p, share{level: [2]int64{0, p.Levels}}, row)]...)
		}
	}
	return all
}

// A record has each problem in each way, on one device and on all.
func TestCompareTasks(t *testing.T) {
	s := testdevices.Host(t, 2)
	on := &bench.Machine{Session: &halo.Session{Devices: s.Devices, Links: s.Links, Compiler: s.Compiler}}
	r := &run{Machine: on, options: &Options{Threads: 64}}
	r.pace.First, r.pace.Max = 1, 1
	tasks := append(r.compareTasks(1), r.compareTasks(2)...)
	if len(tasks) != 2*2*3 {
		t.Fatalf("%d tasks", len(tasks))
	}
	to := &bench.Recorder{Record: &results.Record{}}
	if err := to.Measure(t.Context(), tasks); err != nil || len(to.Record.Rows) != len(tasks) {
		t.Fatalf("%d rows, %v", len(to.Record.Rows), err)
	}
	for _, row := range to.Record.Rows {
		if row.Median(results.Step) <= 0 || row.Text("by") == "" {
			t.Errorf("%+v", row)
		}
	}
}
