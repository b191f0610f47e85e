package sweep

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// RankSteps are time steps of one stage by device ranks: thread blocks, or goroutines on CPU devices, each of
// which owns a tile of its device's subdomain, see rank_steps.cuh. The caller launches the ranks: the k-th rank of
// a device owns its k-th tile.
type RankSteps struct {
	resources streams.Resources
	devices   []*streams.Device
	phases    [][]StageRank // by phase and device
	boxes     []domain.Box  // owned by the devices
	classes   classes
	tiles     [][]rankTile      // by device; set by Cut
	tables    []*streams.Memory // struct RankSteps of each GPU
}

// RankSpan is struct RankSpan of rank_steps.cuh: the launch argument of the ranks of a device.
type RankSpan struct {
	Steps         uint64  // Table of the device
	Step, Count   int64   // as in Moment
	Start, Length float64 // as in Moment
}

// RankKernel is the name of the kernel in the source of RankSteps.
const RankKernel = "rank_steps"

// A rank has at most 512 threads with 128 registers each, and half as many threads if registers are scarce. With
// columns of more registers, estimated by plan.registers, some stencils spill.
const (
	rankThreads        = 512
	registersOfAColumn = 76
	maxLayersOfAColumn = 2
)

// NewRankSteps plans the steps: ranks by phase, stage and device, on different devices that reach each other. It
// returns ErrImpossible for steps of several stages.
func NewRankSteps(ranks [][][]StageRank) (*RankSteps, error) {
	if err := checkCounts(ranks); err != nil {
		return nil, err
	}
	if n := len(ranks[0]); n != 1 {
		return nil, fmt.Errorf("%w: device ranks support one stage, got %d", ErrImpossible, n)
	}
	s := &RankSteps{}
	for _, r := range ranks[0][0] {
		if slices.Contains(s.devices, r.Sweeper.device) {
			return nil, fmt.Errorf("sweep: ranks must be on different devices, got two on device %v", r.Sweeper.device)
		}
		s.devices, s.boxes = append(s.devices, r.Sweeper.device), append(s.boxes, r.owned())
	}
	for phase, stages := range ranks {
		for device, r := range stages[0] {
			if err := r.check(s.devices); err != nil {
				return nil, err
			}
			if r.owned() != s.boxes[device] {
				return nil, fmt.Errorf("sweep: device %v: box must be equal in all phases, got %v in phase %d, %v in 0",
					s.devices[device],
					r.owned(), phase, s.boxes[device])
			}
			c, _ := classesOf(slices.Concat(r.Arrays...))
			if s.classes == nil {
				s.classes = c
			}
			if !slices.Equal(c, s.classes) {
				return nil, fmt.Errorf(
					"%w: the arrays of device %v in phase %d must share strides like those of device %v",
					ErrImpossible, s.devices[device], phase, s.devices[0])
			}
		}
		s.phases = append(s.phases, slices.Clone(stages[0]))
	}
	return s, nil
}

// owned returns the union of the boundary region and the interior.
func (r StageRank) owned() domain.Box {
	all := r.Interior
	for _, b := range r.Boundary {
		if all.Empty() {
			all = b
		}
		for a := range b.Lo {
			all.Lo[a], all.Hi[a] = min(all.Lo[a], b.Lo[a]), max(all.Hi[a], b.Hi[a])
		}
	}
	return all
}

// plan returns the plan of the stage, which is the same on all devices.
func (s *RankSteps) plan() *plan { return s.phases[0][0].Sweeper.plan }

// Threads returns the number of threads per rank.
func (s *RankSteps) Threads() int {
	n, form := s.plan(), s.phases[0][0].Sweeper.form
	if form.scarce() {
		return rankThreads / 2
	}
	return min(rankThreads, threadsFor([]*plan{n}, false))
}

// layers returns the largest number of layers in the columns of a thread.
func (s *RankSteps) layers() int {
	n, form := s.plan(), s.phases[0][0].Sweeper.form
	if form.scarce() {
		return 1
	}
	layers := maxLayersOfAColumn
	for layers > 1 && n.registers(layers) > registersOfAColumn {
		layers /= 2
	}
	return layers
}

// Source returns the program of the ranks, with kernel RankKernel, compiled so that a multiprocessor can hold the
// given number of ranks.
func (s *RankSteps) Source(perMultiprocessor int) (kernels.Source, error) {
	p := s.program(perMultiprocessor)
	files, err := p.Files()
	return kernels.Source{Name: p.File, Text: files[p.File], Defines: p.Defines, Headers: p.Headers}, err
}

func (s *RankSteps) program(perMultiprocessor int) kernels.Program {
	n, to := s.plan(), storing{}
	for _, devices := range s.phases {
		to.reflects = to.reflects || slices.ContainsFunc(devices, StageRank.reflects)
		to.affine = to.affine || slices.ContainsFunc(devices, StageRank.affine)
	}
	form := s.phases[0][0].Sweeper.form
	options := stageOptions(form, Shape{Layers: 1, Single: true}, 1, len(s.phases), to)
	options += fmt.Sprintf(
		"#define RANK_THREADS %d\n#define RANK_BLOCKS %d\n#define RANK_LAYERS %d\n#define RANK_STEPS_BYTES %d\n",
		s.Threads(), perMultiprocessor, s.layers(), s.tableBytes())
	return n.programOf("rank_steps.cu", n.source(s.classes, form, options))
}

// tableBytes is the size of struct RankSteps.
func (s *RankSteps) tableBytes() int {
	phases := len(s.phases)
	return 8*(phases*(s.plan().arrays+2*s.classes.count()+2)+2) + s.plan().givenBytes()
}

// Table returns the address of the common data of the ranks of a device, 0 on a CPU device.
func (s *RankSteps) Table(device int) uint64 {
	if len(s.tables) == 0 {
		return 0
	}
	return s.tables[device].Address()
}

// Partners returns the ranks of the world, Ranks of each device after another, with which a rank exchanges
// notifications: those that read what it stores, or store what it reads.
func (s *RankSteps) Partners(device, rank int) []int { return s.tiles[device][rank].partners }

// Sweep runs a step of the tile of a rank on a CPU device, and stores its points into ghosts.
func (s *RankSteps) Sweep(device, rank int, m Moment) {
	t := &s.tiles[device][rank]
	if t.box.Empty() {
		return
	}
	phase := int(m.Step % int64(len(s.phases)))
	r := s.phases[phase][device]
	_ = r.Sweeper.plan.set(t.given, m, nil) // only a Give fails
	t.sweep[phase](t.given)
	r.storeOnHost(t.box)
}

// Close frees all resources. No rank may still run. Closing twice is allowed.
func (s *RankSteps) Close() error { return s.resources.Close() }

// rankTile is the tile of one rank.
type rankTile struct {
	box      domain.Box
	partners []int // ranks of the world

	// On a CPU device: the functions that sweep the tile, by phase, and their argument.
	sweep []func(given []byte)
	given []byte
}

// tileRow is the multiple of points at which rows are divided: two cache lines of doubles.
const tileRow = 32

// cutIntoTiles divides a box into at most most tiles such that the estimated time of the largest is minimal: its
// points, and a fraction of those on its surface, which other tiles wait for.
func cutIntoTiles(box domain.Box, most int) (tiles []domain.Box) {
	size := box.Size()
	best, parts := 1<<62, domain.Vec{1, 1, 1}
	for z := 1; z <= min(size[2], most); z++ {
		for y := 1; y <= min(size[1], most/z); y++ {
			for x := 1; x <= min(max(1, size[0]/tileRow), most/(z*y)); x++ {
				nx, ny, nz := longest(size[0], x, tileRow), longest(size[1], y, 1), longest(size[2], z, 1)
				if cost := 4*nx*ny*nz + nx*ny + ny*nz + nx*nz; cost < best {
					best, parts = cost, domain.Vec{x, y, z}
				}
			}
		}
	}
	units := domain.Vec{tileRow, 1, 1}
	for i := range parts[0] * parts[1] * parts[2] {
		at := domain.Vec{i % parts[0], i / parts[0] % parts[1], i / parts[0] / parts[1]}
		b := box
		for a := range at {
			b.Lo[a] = box.Lo[a] + cutAt(size[a], parts[a], at[a], units[a])
			b.Hi[a] = box.Lo[a] + cutAt(size[a], parts[a], at[a]+1, units[a])
		}
		tiles = append(tiles, b)
	}
	return tiles
}

// cutAt returns the start of part i when a length is divided into parts: a multiple of unit.
func cutAt(length, parts, i, unit int) int {
	if i == parts {
		return length
	}
	return length / unit * i / parts * unit
}

// longest returns the length of the longest part.
func longest(length, parts, unit int) (most int) {
	for i := range parts {
		most = max(most, cutAt(length, parts, i+1, unit)-cutAt(length, parts, i, unit))
	}
	return most
}

// readsAround reports whether a sweep of a box reads points of another box, in any array. radius is that of n.
func (n *plan) readsAround(radius domain.Radius, box, of domain.Box) bool {
	if box.Empty() || box.Grow(radius).Intersect(of).Empty() {
		return false
	}
	return slices.ContainsFunc(n.reads, func(r readArray) bool {
		return slices.ContainsFunc(r.footprint, func(o domain.Vec) bool { return !box.Shift(o).Intersect(of).Empty() })
	})
}

// Cut divides the subdomain of each device into tiles of the given number of ranks, and prepares everything. It
// may be called once.
func (s *RankSteps) Cut(ranks int) error {
	if ranks < 1 || s.tiles != nil {
		return fmt.Errorf("sweep: Cut: must be called once with at least 1 rank, got %d ranks, %d devices with tiles",
			ranks, len(s.tiles))
	}
	for _, box := range s.boxes {
		tiles := make([]rankTile, ranks)
		for i, b := range cutIntoTiles(box, ranks) {
			tiles[i].box = b
		}
		s.tiles = append(s.tiles, tiles)
	}
	s.findPartners()
	for device, d := range s.devices {
		if !d.GoKernels {
			if err := s.upload(device); err != nil {
				return err
			}
			continue
		}
		for i := range s.tiles[device] {
			t := &s.tiles[device][i]
			t.given = s.phases[0][device].Sweeper.plan.given()
			for _, devices := range s.phases {
				r := devices[device]
				t.sweep = append(t.sweep, r.Sweeper.plan.hostSpec("ranks", r.Arrays, []domain.Box{t.box}, nil).RunWith)
			}
		}
	}
	return nil
}

// findPartners determines which tiles exchange notifications: those of which one stores points, or ghosts, that
// the other reads.
func (s *RankSteps) findPartners() {
	ranks, radius := len(s.tiles[0]), s.plan().radius()
	reads := func(t rankTile, of domain.Box) bool { return s.plan().readsAround(radius, t.box, of) }
	pair := func(a, b int) {
		for _, p := range [][2]int{{a, b}, {b, a}} {
			t := &s.tiles[p[0]/ranks][p[0]%ranks]
			if at, known := slices.BinarySearch(t.partners, p[1]); !known && a != b {
				t.partners = slices.Insert(t.partners, at, p[1])
			}
		}
	}
	for device, tiles := range s.tiles {
		for i, t := range tiles {
			for k, other := range tiles[:i] {
				if reads(t, other.box) || reads(other, t.box) {
					pair(device*ranks+i, device*ranks+k)
				}
			}
			for _, devices := range s.phases {
				for _, st := range devices[device].Stores {
					piece := st.Send.Intersect(t.box)
					if piece.Empty() {
						continue
					}
					piece = piece.Shift(st.Ghost.Lo.Sub(st.Send.Lo))
					for k, other := range s.tiles[st.To] {
						if reads(other, piece) {
							pair(device*ranks+i, st.To*ranks+k)
						}
					}
				}
			}
		}
	}
}

// upload copies struct RankSteps of a GPU, with all data that it points to, to the GPU's memory.
func (s *RankSteps) upload(device int) error {
	d := s.devices[device]
	tiles, partners := s.tileTable(device)
	var table, lists words
	var targets []int64
	for _, devices := range s.phases {
		r := devices[device]
		all := slices.Concat(r.Arrays...)
		_, strides := classesOf(all)
		table.putArrays(all, strides)
		to, err := targetsOfTiles(r, s.tiles[device], &s.resources)
		if err != nil {
			return err
		}
		at, err := uploaded(s, d, to.all)
		if err != nil {
			return err
		}
		list, err := uploaded(s, d, to.lists)
		if err != nil {
			return err
		}
		targets = append(targets, at)
		lists.put(list)
	}
	table.put(targets...)
	table = append(table, lists...)
	for _, upload := range []func() (int64, error){
		func() (int64, error) { return uploaded(s, d, []byte(tiles)) },
		func() (int64, error) { return uploaded(s, d, partners) },
	} {
		at, err := upload()
		if err != nil {
			return err
		}
		table.put(at)
	}
	table = append(table, s.phases[0][device].Sweeper.plan.given()...)
	if len(table) != s.tableBytes() {
		return fmt.Errorf("sweep: struct RankSteps has %d bytes, not %d", len(table), s.tableBytes())
	}
	m, err := streams.Upload(d, []byte(table))
	if err != nil {
		return err
	}
	s.resources.Add(m)
	s.tables = append(s.tables, m)
	return nil
}

// tileTable returns the tiles of a GPU, and the ranks that they tell of their steps, one after the other.
func (s *RankSteps) tileTable(device int) (tiles words, partners []int32) {
	for _, t := range s.tiles[device] {
		size, grouped := t.box.Size(), 0
		if s.groupedTile(device, t.box) {
			grouped = 1
		}
		columns := s.columnsOf(size, s.groupOf(grouped == 1))
		if t.box.Empty() {
			size = [3]int{}
		}
		tiles.putNarrow(t.box.Lo[:]...)
		tiles.putNarrow(size[:]...)
		tiles.putNarrow(grouped, columns.layers)
		tiles.putNarrow(columns.threads[:]...)
		tiles.putNarrow(len(partners), len(t.partners))
		for _, p := range t.partners {
			partners = append(partners, int32(p))
		}
	}
	return tiles, partners
}

// rankColumns says how the threads of a rank share the columns of a tile.
type rankColumns struct {
	layers  int    // of a column
	threads [3]int // how many a rank has, counted in columns along x, y and the layers
}

// columnsOf returns the columns of a tile of a size, in groups of so many points. It takes the number of layers with
// the least loads by a thread: a thread takes its columns one after the other, and for each also loads the layers
// before and behind.
func (s *RankSteps) columnsOf(size [3]int, group int) (best rankColumns) {
	nx, ny, deep := max(1, size[0]/group), max(1, size[1]), max(1, size[2])
	if s.plan().point.Dims == 2 {
		ny, deep = 1, ny
	}
	const extra = 2 // layers that a column loads besides its own
	threads, least := s.Threads(), 0
	for layers := s.layers(); layers >= 1; layers-- {
		turns := ceil(nx*ny*ceil(deep, layers), threads)
		if cost := turns * (layers + extra); best.layers == 0 || cost < least {
			least, best.layers = cost, layers
		}
	}
	best.threads = [3]int{threads % nx, threads / nx % ny, threads / nx / ny}
	return best
}

// groupedTile reports whether the rows of a tile are whole groups, which are aligned in all phases.
func (s *RankSteps) groupedTile(device int, box domain.Box) bool {
	n := s.plan()
	if box.Empty() || box.Size()[0]%n.group != 0 {
		return false
	}
	for _, devices := range s.phases {
		arrays := slices.Concat(devices[device].Arrays...)
		if !n.grouped(arrays, box) || partOf(arrays, box, n.group, n.group).head != 0 {
			return false
		}
	}
	return true
}

// groupOf returns how many points a thread takes at once.
func (s *RankSteps) groupOf(grouped bool) int {
	if grouped {
		return s.plan().group
	}
	return 1
}

// targetsOfTiles lists where points of tiles go, for each and for each written array in turn.
func targetsOfTiles(r StageRank, tiles []rankTile, made *streams.Resources) (t targets, err error) {
	t.lists = []uint32{0}
	for _, one := range tiles {
		t.list(r, one.box)
	}
	return t, t.uploadAffines(r.Sweeper.device, made)
}

// uploaded puts numbers into the memory of a device, and returns where they lie; 0 if there are none.
func uploaded[T byte | int32 | uint32 | target](s *RankSteps, d *streams.Device, all []T) (int64, error) {
	if len(all) == 0 {
		return 0, nil
	}
	m, err := streams.Upload(d, all)
	if err != nil {
		return 0, err
	}
	s.resources.Add(m)
	return int64(m.Address()), nil
}
