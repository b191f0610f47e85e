package ranks

import (
	"context"
	_ "embed"
	"math"
	"time"

	haloranks "github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

//go:embed compare.cu
var compareSource string

// Ways in which the steps of a problem are ordered.
const (
	byRanks   = "ranks"   // device ranks notify each other in one kernel
	byStreams = "streams" // the host queues kernels, copies and events of each step
	byGraph   = "graph"   // a graph of two such steps is launched by the host
)

// part is struct Part of compare.cu: what a device has.
type part struct {
	Values           uint64
	Nx, Levels, Rows int64
	Chunks, Slabs    int64
	Steps            int64
}

// phaseArgument is struct Phase of compare.cu.
type phaseArgument struct {
	Part       part
	Phase, Now int64
}

// share is struct Share of compare.cu: half-open ranges.
type share struct{ level, row [2]int64 }

// pitch is the numbers of a row.
func (p *part) pitch() int64 { return p.Levels * p.Nx }

// offset is where a row of a field begins, in numbers.
func (p *part) offset(field, y int64) int64 { return (field*(p.Rows+2) + y + 1) * p.pitch() }

// cut splits the levels into chunks and the rows into slabs for so many blocks, so that the largest share is as small
// as possible.
func (p *part) cut(blocks int64) {
	least := int64(math.MaxInt64)
	for chunks := int64(1); chunks <= min(p.Levels, blocks); chunks++ {
		slabs := min(p.Rows, blocks/chunks)
		most := ((p.Levels + chunks - 1) / chunks) * ((p.Rows + slabs - 1) / slabs)
		if most <= least {
			least, p.Chunks, p.Slabs = most, chunks, slabs
		}
	}
}

func (p *part) share(block int64) share {
	c, s := block/p.Slabs, block%p.Slabs
	return share{
		[2]int64{p.Levels * c / p.Chunks, p.Levels * (c + 1) / p.Chunks},
		[2]int64{p.Rows * s / p.Slabs, p.Rows * (s + 1) / p.Slabs},
	}
}

// problem is the Go counterpart of struct Diffusion or Particles of compare.cu.
type problem struct {
	name           string
	size, small    part // size for a GPU, for diffusion that of the thesis, and size for a CPU device
	fields, phases int64
	made           func(phase, now int64) int64
	sends          func(phase int64, side int) bool
	length         func(p *part, s share, row []float64) int64
	compute        func(p *part, row func(field, y int64) []float64, s share, phase, now int64)
	first          func(p *part, row []float64, y int64) // sets a row before the first step
}

var problems = []problem{{
	name: "diffusion", size: part{Nx: 128, Levels: 26, Rows: 320}, small: part{Nx: 16, Levels: 3, Rows: 12},
	fields: 5, phases: 3, compute: diffuse,
	made:   func(phase, now int64) int64 { return [...]int64{fieldLap, fieldFly, 1 - now}[phase] },
	sends:  func(phase int64, side int) bool { return phase != int64(1-side) },
	length: func(p *part, s share, _ []float64) int64 { return (s.level[1] - s.level[0]) * p.Nx },
	first: func(p *part, row []float64, y int64) {
		for i := range row {
			row[i] = 10 + math.Sin(float64(i)) + math.Cos(float64(y)/3)
		}
	},
}, {
	name: "particles", size: part{Nx: 1 + 256, Levels: 1, Rows: 416}, small: part{Nx: 1 + 16, Levels: 1, Rows: 12},
	fields: 2, phases: 1, compute: repel,
	made:   func(_, now int64) int64 { return 1 - now },
	sends:  func(int64, int) bool { return true },
	length: func(_ *part, _ share, row []float64) int64 { return 1 + int64(row[0]) },
	first: func(p *part, row []float64, y int64) {
		row[0] = float64((p.Nx-1)/2 + y%5)
		for i := range row[1:] {
			row[1+i] = (float64(i) + 0.5) / float64(p.Nx-1)
		}
	},
}}

// Fields of diffusion other than the two of values.
const (
	fieldLap = 2 + iota
	fieldFlx
	fieldFly
)

func diffuse(p *part, row func(field, y int64) []float64, s share, phase, now int64) {
	limited := func(ahead, here, valueAhead, value float64) float64 {
		flux := ahead - here
		if float64(flux*(valueAhead-value)) > 0 {
			return 0
		}
		return flux
	}
	for y := s.row[0]; y < s.row[1]; y++ {
		u, south, north, l, lNorth := row(now, y), row(now, y-1), row(now, y+1), row(fieldLap, y), row(fieldLap, y+1)
		fx, fy, fSouth, next := row(fieldFlx, y), row(fieldFly, y), row(fieldFly, y-1), row(1-now, y)
		for i := s.level[0] * p.Nx; i < s.level[1]*p.Nx; i++ {
			begin := i / p.Nx * p.Nx
			west, east := begin+(i-begin+p.Nx-1)%p.Nx, begin+(i-begin+1)%p.Nx
			switch phase {
			case 0:
				l[i] = float64(4*u[i]) - (u[west] + u[east] + south[i] + north[i])
			case 1:
				fx[i] = limited(l[east], l[i], u[east], u[i])
				fy[i] = limited(lNorth[i], l[i], north[i], u[i])
			default:
				next[i] = u[i] - float64(0.025*(fx[i]-fx[west]+fy[i]-fSouth[i]))
			}
		}
	}
}

func repel(p *part, row func(field, y int64) []float64, s share, _, now int64) {
	for y := s.row[0]; y < s.row[1]; y++ {
		here, to := row(now, y), row(1-now, y)
		n, capacity := int64(here[0]), p.Nx-1
		next := capacity/2 + (n*7+3)%(capacity-capacity/2+1)
		for i := range next {
			at, force := (float64(i)+0.5)/float64(capacity), 0.0
			if i < n {
				at = here[1+i]
			}
			for other := int64(-1); other <= 1; other++ {
				list := row(now, y+other)
				for _, v := range list[1 : 1+int64(list[0])] {
					d := at - (v + float64(other))
					if square := float64(d * d); square < 1 && square > 0 {
						r := math.Sqrt(square)
						force += float64((1 - r) / r * d)
					}
				}
			}
			to[1+i] = min(max(at+float64(1e-6*force), 0), 1)
		}
		to[0] = float64(next)
	}
}

// comparison is a problem on some devices.
type comparison struct {
	problem
	*run
	devices []*streams.Device
	threads int
	parts   []part
	memory  []*streams.Memory // by device
	*streams.Resources
}

// newComparison allocates the fields and fills them with the initial state, including ghost rows. They are divided
// among the thread blocks, at most blocks per device.
func (r *run) newComparison(p problem, devices, blocks int, open *streams.Resources) (*comparison, error) {
	c := &comparison{
		problem: p, run: r, devices: r.Devices[:devices], threads: min(r.options.Threads, 512), Resources: open,
	}
	size := p.size
	if c.devices[0].GoKernels {
		size = p.small
	}
	size.cut(int64(blocks))
	for i, d := range c.devices {
		values := make([]float64, size.offset(p.fields, -1))
		for y := int64(-1); y <= size.Rows; y++ {
			all := size.Rows * int64(devices)
			p.first(&size, values[size.offset(0, y):][:size.pitch()], (int64(i)*size.Rows+y+all)%all)
		}
		m, err := streams.Upload(d, values)
		if err != nil {
			return nil, err
		}
		c.Add(m)
		size.Values = m.Address()
		c.parts, c.memory = append(c.parts, size), append(c.memory, m)
	}
	return c, nil
}

func (*comparison) source() kernels.Source {
	return kernels.Source{Name: "compare.cu", Text: compareSource, Mirrors: []kernels.Mirror{
		{Name: "Part", Value: part{}}, {Name: "Phase", Value: phaseArgument{}},
	}}
}

// rows returns the rows of a CPU device.
func (c *comparison) rows(device int) func(field, y int64) []float64 {
	p, values := &c.parts[device], streams.View[float64](c.memory[device].Bytes())
	return func(field, y int64) []float64 { return values[p.offset(field, y):][:p.pitch()] }
}

// rank is by_ranks of compare.cu on CPU devices.
func (c *comparison) rank(r *haloranks.Rank) {
	p, bytes, row := haloranks.Data[part](r), c.memory[r.Device()].Bytes(), c.rows(r.Device())
	n, local := r.Size(haloranks.Device), r.Index(haloranks.Device)
	all, me := r.Size(haloranks.All), r.Index(haloranks.All)
	w, s := r.CreateWindow(haloranks.All, bytes), p.share(int64(local))
	slabs := int(p.Slabs)
	at := local % slabs
	far, neighbors := [2]bool{at == 0, at == slabs-1}, [2]int{me - 1, me + 1}
	if far[0] {
		neighbors[0] = (me-n+all)%all + slabs - 1
	}
	if far[1] {
		neighbors[1] = (me - at + n) % all
	}
	ok := int64(local) < p.Chunks*p.Slabs
	r.StartTimer()
	for t := int64(0); t < p.Steps && ok; t++ {
		for phase := int64(0); phase < c.phases && ok; phase++ {
			now := t % 2
			c.compute(p, row, s, phase, now)
			field, tag, told := c.made(phase, now), int(2*phase+now), uint64(0)
			for side := range 2 {
				if !c.sends(phase, side) {
					continue
				}
				told++
				if !far[side] {
					r.Notify(neighbors[side], haloranks.All, tag)
					continue
				}
				own, there := s.row[1]-1, int64(-1)
				if side == 0 {
					own, there = s.row[0], p.Rows
				}
				from, to := p.offset(field, own)+s.level[0]*p.Nx, p.offset(field, there)+s.level[0]*p.Nx
				r.PutNotify(w, neighbors[side], 8*to, bytes[8*from:][:8*c.length(p, s, row(field, own))], tag)
			}
			ok = r.WaitNotifications(tag, told)
		}
	}
	r.StopTimer()
	r.FreeWindow(w)
}

// stepper returns a function that runs two steps n times in one of the ways, and returns the time.
func (c *comparison) stepper(ctx context.Context, by string) (func(n int) (time.Duration, error), error) {
	if by == byRanks {
		return c.ranks(ctx)
	}
	q, err := c.newQueue()
	if err != nil {
		return nil, err
	}
	twoSteps := q.twoSteps
	if by == byGraph {
		g, err := streams.Capture(q.all[0], q.all[1:], q.twoSteps)
		if err != nil {
			return nil, err
		}
		c.Add(g)
		twoSteps = g.Launch
	}
	return func(n int) (time.Duration, error) {
		begun := time.Now()
		for range n {
			if err := twoSteps(); err != nil {
				return 0, err
			}
		}
		for _, s := range q.all {
			if err := s.Sync(time.Minute); err != nil {
				return 0, err
			}
		}
		return time.Since(begun), nil
	}, nil
}

// ranks creates the world of device ranks.
func (c *comparison) ranks(ctx context.Context) (func(n int) (time.Duration, error), error) {
	w, err := haloranks.New(c.Compiler, c.devices, c.Links, haloranks.Program{
		Name: c.name, Source: c.source(), Kernel: c.name + "_ranks", Threads: c.threads, Host: c.rank,
	}, haloranks.Options{Ranks: int(c.parts[0].Chunks * c.parts[0].Slabs)})
	if err != nil {
		return nil, err
	}
	c.Add(w)
	return func(n int) (took time.Duration, err error) {
		for i := range c.parts {
			c.parts[i].Steps = 2 * int64(n)
		}
		if err := haloranks.Run(ctx, w, c.parts); err != nil {
			return 0, err
		}
		for i := range c.devices {
			took = max(took, w.Timings(i)[0])
		}
		return took, nil
	}, nil
}

// queue orders steps by streams: each device has a stream of kernels, and one of copies to each side.
type queue struct {
	*comparison
	all     []*streams.Stream      // by device: of kernels, of copies to the device below, and to that above
	events  []*streams.Event       // the last work of each stream
	kernels [][2][]*streams.Kernel // by device, field and phase
}

func (c *comparison) newQueue() (*queue, error) {
	q := &queue{comparison: c, kernels: make([][2][]*streams.Kernel, len(c.devices))}
	for i, d := range c.devices {
		for range 3 {
			q.all, q.events = append(q.all, c.NewStream(d, streams.Normal)), append(q.events, c.NewEvent(d))
		}
		if err := c.Err(); err != nil {
			return nil, err
		}
		f, err := c.Compiler.Functions(d, c.source(), c.name+"_phase")
		if err != nil {
			return nil, err
		}
		for phase := range c.phases {
			for now := range int64(2) {
				k, err := c.phase(i, f, phase, now)
				if err != nil {
					return nil, err
				}
				q.kernels[i][now] = append(q.kernels[i][now], k)
			}
		}
	}
	return q, nil
}

// phase prepares the launch of a phase on a device.
func (c *comparison) phase(device int, f []streams.Function, phase, now int64) (*streams.Kernel, error) {
	p := &c.parts[device]
	blocks := p.Chunks * p.Slabs
	spec := kernels.LaunchSpec[phaseArgument]{
		Name: c.name, Uses: []streams.Span{c.memory[device].All()}, Grid: [3]int{int(blocks), 1, 1},
		Block: [3]int{c.threads, 1, 1}, Argument: phaseArgument{*p, phase, now},
	}
	if c.devices[device].GoKernels {
		row := c.rows(device)
		spec.Host = func() {
			for i := range blocks {
				c.compute(p, row, p.share(i), phase, now)
			}
		}
	} else {
		spec.Function = f[0]
	}
	k, err := kernels.Launch(c.devices[device], spec)
	if err == nil {
		c.Add(k)
	}
	return k, err
}

// twoSteps queues two steps: for each phase a kernel on each device, then the copies to its neighbors, then the next
// kernels of the neighbors.
func (q *queue) twoSteps() (err error) {
	do := func(e error) {
		if err == nil {
			err = e
		}
	}
	for now := range int64(2) {
		for phase := range q.phases {
			for d := range q.devices {
				do(q.all[3*d].Launch(q.kernels[d][now][phase]))
				do(q.all[3*d].Record(q.events[3*d]))
			}
			for copier := range q.all {
				d, side := copier/3, copier%3-1
				if side < 0 || !q.sends(phase, side) {
					continue
				}
				do(q.all[copier].Wait(q.events[3*d]))
				do(q.copyRow(q.all[copier], d, side, q.made(phase, now)))
				do(q.all[copier].Record(q.events[copier]))
				do(q.all[3*q.neighbor(d, side)].Wait(q.events[copier]))
			}
		}
	}
	return err
}

// neighbor returns the device below (side 0) or above another.
func (q *queue) neighbor(device, side int) int {
	return (device + 2*side - 1 + len(q.devices)) % len(q.devices)
}

// copyRow queues a copy of the row at a side of a device to the neighbor there.
func (q *queue) copyRow(s *streams.Stream, device, side int, field int64) error {
	p := &q.parts[device]
	own, there := int64(0), p.Rows
	if side == 1 {
		own, there = p.Rows-1, -1
	}
	to := q.memory[q.neighbor(device, side)]
	bytes := 8 * p.pitch()
	return s.Copy(to.Span(8*p.offset(field, there), bytes), q.memory[device].Span(8*p.offset(field, own), bytes))
}

// compareBlocks is the number of blocks, or device ranks, per multiprocessor.
const compareBlocks = 4

// compareTasks returns the tasks: each problem in each way on the given number of devices.
func (r *run) compareTasks(devices int) (all []bench.Task) {
	for _, p := range problems {
		for _, by := range []string{byRanks, byStreams, byGraph} {
			labels := results.NewRow().Label("what", p.name).Label("by", by).Label("devices", devices)
			measure := func(ctx context.Context, open *streams.Resources) (results.Row, error) {
				us, err := r.compare(ctx, p, by, devices, open)
				return labels.Value(results.Step, us), bench.LeaveOut(err, haloranks.ErrNoRoom)
			}
			all = append(all, bench.OneRow(labels, measure))
		}
	}
	return all
}

// compare returns the time of a step, in microseconds.
func (r *run) compare(
	ctx context.Context, p problem, by string, devices int, open *streams.Resources,
) (us results.Sample, err error) {
	c, err := r.newComparison(p, devices, compareBlocks*r.Devices[0].Cores, open)
	if err != nil {
		return us, err
	}
	steps, err := c.stepper(ctx, by)
	if err != nil {
		return us, err
	}
	us, err = r.pace.Measure(ctx, func(n int) (float64, error) {
		took, err := steps(n)
		return took.Seconds() * 1e6 / float64(n), err
	})
	return us.Scale(0.5), err // of two steps
}
