//go:build linux

package halo_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/halotest"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

func TestMain(m *testing.M) {
	testmpi.Main(m, map[string]func() error{
		"geometry":        inProcesses(testLimit, agreesWithGeometry),
		"different plans": inProcesses(testLimit, differentPlans),
		"one cannot":      inProcesses(testLimit, oneCannot),
		"one errs":        inProcesses(testLimit, oneErrs),
		"a rank hangs":    inProcesses(testmpi.Limit(), oneHangs),
		"own points":      inProcesses(testLimit, ownPoints),
		"session":         inProcesses(testLimit, inSession),
		"measure":         inProcesses(testLimit, measures),
		"accumulate":      inProcesses(testLimit, accumulates),
		"snapshots":       inProcesses(testLimit, snapshots),
		"exchanges":       inProcesses(testmpi.Limit(), exchanges),
		"networks":        inPieces(1<<20, testLimit, triesNetworks),
		"without ipc":     inProcesses(testLimit, withoutIPC),
	})
}

// processes is one process in a test, with two CPU devices.
type processes struct {
	*mpi.Processes
	devices  []*streams.Device
	links    *p2p.Links
	compiler *kernels.Compiler
}

// absent is the output of a program if the named network is unavailable.
const absent = "the network is unavailable"

// tries tries a network. With emulated GPUs it trusts MPI without a trial.
func (p processes) tries(n mpi.Network) error {
	switch {
	case n == mpi.NCCL:
		return p.TryNCCL(context.Background(), p.devices[0])
	case n == mpi.Device && os.Getenv(ownVariable) != "":
		return p.TryDevice(context.Background(), p.devices[0], false)
	case n == mpi.IPC:
		return p.TryIPC(context.Background(), p.devices)
	}
	return nil
}

// ownVariable gives each process its own GPU, and for NCCL its own host.
const ownVariable = "HALOX_TEST_OWN"

// ownGPU returns the GPU of a process if each has its own; otherwise it takes all.
func ownGPU(p *mpi.Processes) []int {
	if os.Getenv(ownVariable) == "" {
		return nil
	}
	os.Setenv("NCCL_HOSTID", fmt.Sprint("host-", p.Rank))
	return []int{p.Rank}
}

// networkVariable names the network of all messages between processes.
const networkVariable = "HALOX_TEST_NETWORK"

// inProcesses runs a program as one of several processes. A failure ends all of them.
func inProcesses(limit time.Duration, program func(processes) error) func() error {
	return inPieces(200, limit, program)
}

// inPieces is inProcesses with the given piece size in bytes.
func inPieces(piece int64, limit time.Duration, program func(processes) error) func() error {
	return testmpi.AsOne(mpi.Options{Limit: limit, Piece: piece}, func(joined *mpi.Processes) error {
		p := processes{Processes: joined, compiler: kernels.CompilerFromEnv()}
		platform, err := testdevices.Launched(2)
		if err != nil {
			return err
		}
		if p.devices, err = platform.Open(ownGPU(joined)...); err != nil {
			return err
		}
		if n := mpi.Network(os.Getenv(networkVariable)); n != "" {
			if err := p.tries(n); err != nil {
				return fmt.Errorf("%s: %w", absent, err)
			}
			across := n
			if n == mpi.IPC {
				across = mpi.Pieces
			}
			if err := p.Use(n, across); err != nil {
				return err
			}
		}
		if p.links, err = p2p.Discover(context.Background(), p.devices, nil); err != nil {
			return err
		}
		if len(p.devices) == 1 {
			p.devices = append(p.devices, p.devices[0])
		}
		if err := p.run(program); err != nil {
			return err
		}
		return errors.Join(p.Close(), streams.CloseAll(p.devices), platform.Close())
	})
}

// run runs a program up to the first failure.
func (p processes) run(program func(processes) error) (err error) {
	defer func() {
		if f, failed := recover().(failure); failed {
			err = f.error
		}
	}()
	return program(p)
}

// failure is the panic value that ends a program.
type failure struct{ error }

// programTB replaces the test in programs.
type programTB struct{ tb }

func (programTB) Helper() {}

func (programTB) Cleanup(func()) {}

func (programTB) Fatal(args ...any) {
	if err, ok := args[0].(error); ok {
		panic(failure{err})
	}
	panic(failure{errors.New(fmt.Sprint(args...))})
}

var here tb = programTB{}

// place assigns subdomains to processes, and those of this one to its devices.
func (p processes) place(d *domain.Decomposition, owners []int) (*halo.Placement, error) {
	devices := make([]*streams.Device, len(owners))
	for rank, owner := range owners {
		if owner == p.Rank {
			devices[rank] = p.devices[rank%len(p.devices)]
		}
	}
	return halo.PlaceShared(p.Processes, d, owners, devices)
}

// drawnCase is drawn identically by all processes.
type drawnCase struct {
	cut    *domain.Decomposition
	owners []int
	specs  []halo.Spec
	way    int
	late   int // the first subdomain to be late; -1 for none
}

// drawCase draws a grid, its decomposition over the processes, and fields.
func drawCase(processes int) func(t *rapid.T) drawnCase {
	return func(t *rapid.T) (c drawnCase) {
		c.cut = drawCut(t, 12)
		for range c.cut.Subdomains {
			c.owners = append(c.owners, rapid.IntRange(0, processes-1).Draw(t, "owner"))
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "fields") {
			c.specs = append(c.specs, drawSpec(t, i, &halo.Placement{Decomposition: c.cut}))
		}
		c.way = rapid.IntRange(0, 2).Draw(t, "way")
		c.late = rapid.IntRange(-1, len(c.cut.Subdomains)-1).Draw(t, "late")
		return c
	}
}

// agreesWithGeometry executes random exchanges, with subdomains of any process anywhere.
func agreesWithGeometry(p processes) error {
	crossing := 0
	for seed := range seeds() {
		c := rapid.Custom(drawCase(p.Size())).Example(seed)
		n, err := p.exchanged(c)
		if err != nil {
			return fmt.Errorf("seed %d, %v cut %v, owners %v: %w", seed, c.cut.Grid.Size, c.cut.Parts, c.owners, err)
		}
		crossing += n
	}
	if crossing < 100*seeds()/40 {
		return fmt.Errorf("only %d messages between processes were planned", crossing)
	}
	return nil
}

// seeds returns the number of drawn cases: fewer if kernels run on the CPU.
func seeds() int {
	if os.Getenv(networkVariable) != "" {
		return 12
	}
	return 40
}

// exchanged executes one case, and returns the number of messages between processes.
func (p processes) exchanged(c drawnCase) (crossing int, err error) {
	place := must(p.place(c.cut, c.owners))(here)
	plan := must(halo.NewPlan(place, p.links, p2p.Auto, c.specs...))(here)
	for _, m := range plan.Messages {
		if (m.Path == p2p.MPI) != (c.owners[m.From] != c.owners[m.To]) {
			return 0, fmt.Errorf("the message from subdomain %d to %d takes path %q", m.From, m.To, m.Path)
		}
		if m.Path == p2p.MPI {
			crossing++
		}
	}
	trial := halotest.Case{
		Placement: place, Links: p.links, Compiler: p.compiler, Path: p2p.Auto, Specs: c.specs,
		Exchange: []way{nil, byStart, byTransfers(here, plan)}[c.way],
	}
	if c.late >= 0 {
		trial.Late = inTurn(c.late, len(c.owners))
	}
	return crossing, trial.Run()
}

// chain decomposes 12 points along x into one subdomain per process.
func (p processes) chain(width int) (*halo.Placement, halo.Spec) {
	var owners []int
	for rank := range p.Size() {
		owners = append(owners, rank)
	}
	place := must(p.place(cut(here, []int{12, 5, 4}, [3]bool{true, false, false}, domain.Vec{p.Size(), 1, 1}), owners))(here)
	return place, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, width)}
}

// exchanger returns an exchanger of a field of the chain.
func (p processes) exchanger(width int) (*halo.Exchanger, error) {
	place, spec := p.chain(width)
	plan := must(halo.NewPlan(place, p.links, p2p.Auto, spec))(here)
	return halo.NewExchanger(plan, p.compiler, must(halo.NewField(place, spec))(here))
}

// differentPlans plans wider ghosts on rank 1 than on the others: all fail.
func differentPlans(p processes) error {
	width := 1
	if p.Rank == 1 {
		width = 2
	}
	_, err := p.exchanger(width)
	if err == nil || !strings.Contains(err.Error(), "plans a different exchange than") {
		return fmt.Errorf("different plans: %v", err)
	}
	return nil
}

// oneCannot fails to prepare the part of rank 1: all get an error that names it.
func oneCannot(p processes) error {
	place, spec := p.chain(1)
	plan := must(halo.NewPlan(place, p.links, p2p.Auto, spec))(here)
	f := must(halo.NewField(place, spec))(here)
	if p.Rank == 1 {
		done(here, nil, p.devices[1].Close())
	}
	_, err := halo.NewExchanger(plan, p.compiler, f)
	if err == nil || p.Rank != 1 && !strings.Contains(err.Error(), p.Name(1)) {
		return fmt.Errorf("rank 1 has lost its device: %v", err)
	}
	return nil
}

// oneHangs does not take part in an exchange on the last rank.
func oneHangs(p processes) error {
	x := must(p.exchanger(1))(here)
	if p.Rank == p.Size()-1 {
		<-p.Context().Done()
		return context.Cause(p.Context())
	}
	place, _ := p.chain(1)
	at := must(place.NewStreams())(here)
	return x.Exchange(at)
}

// ownPoints fills, reads and writes the points of this process, and gets errors for others.
func ownPoints(p processes) error {
	place, spec := p.chain(1)
	f := must(halo.NewField(place, spec))(here)
	done(here, nil, halo.Fill(f, func(int) halo.Row[float64] {
		return func(values []float64, at domain.Vec) {
			for i := range values {
				values[i] = float64(1000*(at[0]+i) + 10*at[1] + at[2])
			}
		}
	}))
	for rank, s := range place.Subdomains {
		values := make([]float64, s.Box.Points())
		err := halo.Read(values, f, s.Box)
		if place.IsLocal(rank) != (err == nil) {
			return fmt.Errorf("read subdomain %d: %v", rank, err)
		}
		if err != nil {
			if !strings.Contains(err.Error(), fmt.Sprintf("belongs to another process, %s: use halo.Gather", p.Name(rank))) {
				return err
			}
			continue
		}
		if want := float64(1000 * s.Box.Lo[0]); values[0] != want {
			return fmt.Errorf("subdomain %d begins with %v, want %v", rank, values[0], want)
		}
		done(here, nil, halo.Write(f, s.Box, values))
	}
	return f.Close()
}

// wave is the value of a point; it needs all digits.
func wave(p domain.Vec) float64 {
	return math.Sin(0.1+0.37*float64(p[0])) * math.Cos(1.3*float64(p[1])) / (1 + 0.01*float64(p[2]))
}

// reductions returns reductions of a field of a separate session, the field and the session.
func reductions(devices halo.Devices) (s *halo.Session, f *halo.Field, values []float64) {
	ctx := context.Background()
	s = must(halo.Open(ctx, devices))(here)
	spec := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}
	place := must(s.Cut(ctx, halo.Cutting{Size: []int{24, 21, 16}, Periodic: []bool{true, false, true}, Fields: []halo.Spec{spec}, Path: p2p.Peer}))(here)
	f = must(halo.NewField(place, spec))(here)
	done(here, nil, halo.Fill(f, func(rank int) halo.Row[float64] {
		own := place.Subdomains[rank].Box
		return func(row []float64, at domain.Vec) {
			for i := range row {
				p := domain.Vec{at[0] + i, at[1], at[2]}
				if row[i] = wave(p); !own.Contains(p) {
					row[i] = math.NaN()
				}
			}
		}
	}))
	for _, op := range []halo.Op{halo.Sum, halo.L2, halo.Max, halo.Min} {
		r := must(halo.Reduce(f, s.Compiler, op))(here)
		values = append(values, r.Floats...)
	}
	return s, f, values
}

// inSession shares a grid among sessions of several processes: reductions are bitwise identical to those of
// one process, and an exchange updates all ghosts.
func inSession(p processes) error {
	alone, _, want := reductions(halo.Devices{Backend: "host", Count: 3})
	s, f, got := reductions(halo.Devices{Backend: "host", Count: 2, Processes: p.Processes})
	if !slices.Equal(got, want) || len(got) != 4 {
		return fmt.Errorf("reductions %v, with one process %v", got, want)
	}
	if n := len(f.Placement.Subdomains); n != 2*p.Size() {
		return fmt.Errorf("%d subdomains on %d processes of 2 devices", n, p.Size())
	}
	x := must(s.NewExchanger(context.Background(), f))(here)
	at := must(f.Placement.NewStreams())(here)
	done(here, nil, errors.Join(x.Exchange(at), at.Sync(testLimit)))
	facesAreRight(f)
	collected(p, f)
	return errors.Join(at.Close(), x.Close(), f.Close(), s.Close(), alone.Close())
}

// measures finds the same message times on all processes, between the first two on the host.
func measures(p processes) error {
	s := must(halo.Open(context.Background(), halo.Devices{Backend: "host", Count: 1, Processes: p.Processes}))(here)
	m := must(s.MeasureProcesses(context.Background()))(here)
	if m.SameHost == nil || m.OtherHosts != nil || m.SameHost.From != 0 || m.SameHost.To != 1 {
		return fmt.Errorf("measured %+v", m)
	}
	few, ok := m.Time(0, 1, 1<<10)
	many, alike := m.Time(p.Size()-1, 0, 1<<20)
	if !ok || !alike || few <= 0 || many < few || len(m.SameHost.Curve) < 2 {
		return fmt.Errorf("1 KiB takes %v, %t, and 1 MiB %v, %t", few, ok, many, alike)
	}
	all := must(mpi.Gather(context.Background(), p.Processes, "compare", fmt.Sprint(m.SameHost.Curve)))(here)
	for _, other := range all {
		if other != all[0] {
			return fmt.Errorf("rank 0 has %s, another %s", all[0], other)
		}
	}
	alone := must(s.WithProcesses(context.Background(), nil))(here)
	if m, err := alone.MeasureProcesses(context.Background()); m != nil || err != nil {
		return fmt.Errorf("single process: %v, %w", m, err)
	}
	return s.Close()
}

// facesAreRight compares all points next to faces of subdomains with the wave.
func facesAreRight(f *halo.Field) {
	grid := f.Placement.Grid
	for rank, sub := range f.Placement.Subdomains {
		if !f.Placement.IsLocal(rank) {
			continue
		}
		for _, dir := range domain.Faces(3) {
			if _, ok := f.Placement.Neighbor(rank, dir); !ok {
				continue
			}
			box := domain.GhostBox(sub.Box, dir, f.Spec.Width)
			values := make([]float64, box.Points())
			done(here, nil, halo.ReadSubdomain(values, f, rank, box))
			i := 0
			eachPoint(box, func(q domain.Vec) {
				for a := range q {
					q[a] = (q[a] + grid.Size[a]) % grid.Size[a]
				}
				if values[i] != wave(q) {
					here.Fatal(fmt.Errorf("subdomain %d, %v: point %v has %v, want %v", rank, dir, q, values[i], wave(q)))
				}
				i++
			})
		}
	}
}

// collected gathers points at each process in turn, and scatters other values from there.
func collected(p processes, f *halo.Field) {
	ctx := context.Background()
	for root := range p.Size() {
		box := domain.Box{Lo: domain.Vec{root, 1, 0}, Hi: domain.Vec{23, 20, 15 - root}}
		var values []float64
		if p.Rank == root {
			values = make([]float64, box.Points())
		}
		done(here, nil, halo.Gather(ctx, values, f, box, root))
		i := 0
		eachPoint(box, func(q domain.Vec) {
			if p.Rank != root {
				return
			}
			want := wave(q)
			for range root {
				want++ // as done by earlier roots
			}
			if values[i] != want {
				here.Fatal(fmt.Errorf("gathered by %d: point %v has %v, want %v", root, q, values[i], want))
			}
			values[i]++
			i++
		})
		done(here, nil, halo.Scatter(ctx, f, box, values, root))
		// The next root finds all its points changed: points outside of the box change here.
		addOutside(f, box)
	}
}

// addOutside adds 1 to the points of this process outside of a box.
func addOutside(f *halo.Field, box domain.Box) {
	for rank, sub := range f.Cut.Subdomains {
		if !f.Placement.IsLocal(rank) {
			continue
		}
		values := make([]float64, sub.Box.Points())
		done(here, nil, halo.Read(values, f, sub.Box))
		i := 0
		eachPoint(sub.Box, func(q domain.Vec) {
			if !box.Contains(q) {
				values[i]++
			}
			i++
		})
		done(here, nil, halo.Write(f, sub.Box, values))
	}
}

// accumulated adds the ghosts of a field to their owners, for a placement of 12 subdomains, and returns the
// values of the subdomains of this process.
func accumulated(place *halo.Placement, links *p2p.Links, c *kernels.Compiler) map[int][]float64 {
	spec := halo.Spec{Name: "u", Element: halo.Float64, Connectivity: halo.Corners, Width: domain.Radius{Minus: domain.Vec{1, 2, 1}, Plus: domain.Vec{2, 1, 1}}}
	f := must(halo.NewField(place, spec))(here)
	done(here, nil, halo.Fill(f, func(rank int) halo.Row[float64] {
		return func(row []float64, at domain.Vec) {
			for i := range row {
				row[i] = wave(domain.Vec{at[0] + i + 3*rank, at[1], at[2]})
			}
		}
	}))
	plan := must(halo.NewPlan(place, links, p2p.Auto, spec))(here)
	a := must(halo.NewAccumulator(plan, c, f))(here)
	at := must(place.NewStreams())(here)
	for range 3 {
		done(here, nil, a.Exchange(at))
	}
	done(here, nil, at.Sync(testLimit))
	values := map[int][]float64{}
	for rank, s := range place.Subdomains {
		if !place.IsLocal(rank) {
			continue
		}
		values[rank] = make([]float64, s.Box.Points())
		done(here, nil, halo.Read(values[rank], f, s.Box))
	}
	done(here, nil, at.Close(), a.Close(), f.Close())
	return values
}

// accumulates compares sums of ghosts with those of one process, which other tests compare with geometry:
// they are bitwise identical.
func accumulates(p processes) error {
	cut := cut(here, []int{9, 8, 7}, [3]bool{true, false, true}, domain.Vec{3, 2, 2})
	var owners []int
	var devices []*streams.Device
	for rank := range cut.Subdomains {
		owners, devices = append(owners, rank*rank%p.Size()), append(devices, p.devices[rank%2])
	}
	alone := must(halo.Place(cut, devices))(here)
	among := must(p.place(cut, owners))(here)
	want := accumulated(alone, p.links, p.compiler)
	got := accumulated(among, p.links, p.compiler)
	for rank, values := range got {
		if !slices.Equal(values, want[rank]) {
			return fmt.Errorf("subdomain %d: %v; with one process %v", rank, values, want[rank])
		}
	}
	return nil
}

// snapshots takes a snapshot on several processes, and gathers it in the background while the other group is used.
func snapshots(p processes) error {
	ctx := context.Background()
	place, spec := p.chain(1)
	f := must(halo.NewField(place, spec))(here)
	s := must(halo.NewSnapshot(ctx, f))(here)
	value := func(factor float64) func(domain.Vec) float64 {
		return func(at domain.Vec) float64 { return factor * wave(at) }
	}
	done(here, nil, halo.FillPoints(f, value(1)), s.Take(f), halo.FillPoints(f, value(2)))
	box := place.Grid.Box()
	copied, now := make([]float64, box.Points()), make([]float64, box.Points())
	background := make(chan error)
	go func() { background <- halo.Gather(ctx, copied, s.Fields()[0], box, 0) }()
	done(here, nil, halo.Gather(ctx, now, f, box, 0), <-background)
	if p.Rank == 0 {
		i := 0
		eachPoint(box, func(at domain.Vec) {
			if copied[i] != wave(at) || now[i] != 2*wave(at) {
				panic(failure{fmt.Errorf("point %v: %v in the snapshot, %v in the field", at, copied[i], now[i])})
			}
			i++
		})
	}
	return errors.Join(s.Close(), f.Close())
}
