package sweep

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// RankSteps are time steps of one stage by ranks: thread blocks, or on host devices goroutines, each of which
// owns a tile of its device's subdomain, see rank_steps.cuh. Who runs them launches the ranks: the k-th rank of a
// device owns its k-th tile.
type RankSteps struct {
	resources streams.Resources
	devices   []*streams.Device
	phases    [][]StageRank // by phase and device
	boxes     []domain.Box  // that the devices own
	classes   classes
	tiles     [][]rankTile      // by device; set by Cut
	tables    []*streams.Memory // struct RankSteps of each GPU
}

// RankSpan is struct RankSpan of rank_steps.cuh: what the ranks of a device are launched with.
type RankSpan struct {
	Steps         uint64 // Table of the device
	Step, Count   int64  // as Moment counts them
	Start, Length float64
}

// RankKernel is the name of the kernel in the source of RankSteps.
const RankKernel = "rank_steps"

// A rank has at most 512 threads, for each of which there are 128 registers, and half as many threads where registers
// are scarce. With columns of more registers, by the estimate of plan.registers, some stencils spill.
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
		return nil, fmt.Errorf("%w: ranks make steps of one stage, and there are %d", ErrImpossible, n)
	}
	s, scales := &RankSteps{}, scalesOf(ranks)
	for _, r := range ranks[0][0] {
		if slices.Contains(s.devices, r.Sweeper.device) {
			return nil, fmt.Errorf("sweep: two ranks on device %v", r.Sweeper.device)
		}
		s.devices, s.boxes = append(s.devices, r.Sweeper.device), append(s.boxes, r.owned())
	}
	for phase, stages := range ranks {
		for device, r := range stages[0] {
			if err := r.check(s.devices); err != nil {
				return nil, err
			}
			if r.owned() != s.boxes[device] {
				return nil, fmt.Errorf("sweep: device %v sweeps %v in phase %d, but %v in phase 0", s.devices[device],
					r.owned(), phase, s.boxes[device])
			}
			c, _ := classesOf(slices.Concat(r.Arrays...))
			if s.classes == nil {
				s.classes = c
			}
			if !slices.Equal(c, s.classes) {
				return nil, fmt.Errorf(
					"%w: the arrays of device %v in phase %d have other strides in common than those of device %v",
					ErrImpossible, s.devices[device], phase, s.devices[0])
			}
		}
		s.phases = append(s.phases, slices.Clone(stages[0]))
		for device := range stages[0] {
			s.phases[phase][device].scales = scales
		}
	}
	return s, nil
}

// owned returns the box of the boundary region and the interior together.
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

// plan returns that of the stage, which all devices have.
func (s *RankSteps) plan() *plan { return s.phases[0][0].Sweeper.plan }

// Threads returns how many threads a rank has.
func (s *RankSteps) Threads() int {
	n, form := s.plan(), s.phases[0][0].Sweeper.form
	if form.scarce() {
		return rankThreads / 2
	}
	return min(rankThreads, threadsFor([]*plan{n}, false))
}

// layers returns how many layers the columns of a thread have at most.
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

// Source returns the program of the ranks, whose kernel is RankKernel, compiled so that a multiprocessor can hold so
// many ranks.
func (s *RankSteps) Source(perMultiprocessor int) (kernels.Source, error) {
	p := s.program(perMultiprocessor)
	files, err := p.Files()
	return kernels.Source{Name: p.File, Text: files[p.File], Defines: p.Defines, Headers: p.Headers}, err
}

func (s *RankSteps) program(perMultiprocessor int) kernels.Program {
	n, reflects := s.plan(), false
	for _, devices := range s.phases {
		reflects = reflects || slices.ContainsFunc(devices, StageRank.reflects)
	}
	form := s.phases[0][0].Sweeper.form
	options := stageOptions(form, Shape{Layers: 1, Single: true}, 1, len(s.phases), storing{
		reflects: reflects, scales: s.phases[0][0].scales})
	options += fmt.Sprintf(
		"#define RANK_THREADS %d\n#define RANK_BLOCKS %d\n#define RANK_LAYERS %d\n#define RANK_STEPS_BYTES %d\n",
		s.Threads(), perMultiprocessor, s.layers(), s.tableBytes())
	return n.programOf("rank_steps.cu", n.source(s.classes, form, options))
}

// tableBytes is the size of struct RankSteps.
func (s *RankSteps) tableBytes() int {
	phases := len(s.phases)
	return 8*(phases*(s.plan().arrays+2*s.classes.count()+2)+2) + s.plan().frameBytes()
}

// Table returns the address of what the ranks of a device share, 0 on a host device.
func (s *RankSteps) Table(device int) uint64 {
	if len(s.tables) == 0 {
		return 0
	}
	return s.tables[device].Address()
}

// Partners returns the ranks of the world, Ranks of each device after another, with which a rank exchanges
// notifications: all that read what it stores, or store what it reads.
func (s *RankSteps) Partners(device, rank int) []int { return s.tiles[device][rank].partners }

// Sweep makes a step of the tile of a rank on a host device, and stores its points into ghosts.
func (s *RankSteps) Sweep(device, rank int, m Moment) {
	t := &s.tiles[device][rank]
	if t.box.Empty() {
		return
	}
	phase := int(m.Step % int64(len(s.phases)))
	putMoment(t.frame, m)
	t.sweep[phase](t.frame)
	s.phases[phase][device].storeOnHost(t.box)
}

// Close frees what is held. No rank may still run. Closing twice is no error.
func (s *RankSteps) Close() error { return s.resources.Close() }

// rankTile is what one rank owns.
type rankTile struct {
	box      domain.Box
	partners []int // ranks of the world

	// On a host device: what sweeps it, by phase, and what that is given.
	sweep []func(frame []byte)
	frame []byte
}

// tileRow is the multiple of points at which rows are cut: those of two cache lines of doubles.
const tileRow = 32

// cutIntoTiles cuts a box into at most so many tiles, of which the largest takes the least time by an estimate: its
// points, and a part of those on its surface, which others wait for.
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

// cutAt returns where the i-th of so many parts of a length begins: at a multiple of unit.
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

// readsAround reports whether who sweeps a box reads points of another one, in any array.
func (n *plan) readsAround(box, of domain.Box) bool {
	if box.Empty() || box.Grow(n.radius()).Intersect(of).Empty() {
		return false
	}
	return slices.ContainsFunc(n.reads, func(r readArray) bool {
		return slices.ContainsFunc(r.footprint, func(o domain.Vec) bool { return !box.Shift(o).Intersect(of).Empty() })
	})
}

// Cut cuts the subdomain of each device into tiles of so many ranks, and makes all ready. It is called once.
func (s *RankSteps) Cut(ranks int) error {
	if ranks < 1 || s.tiles != nil {
		return fmt.Errorf("sweep: tiles for %d ranks, of steps that have %d", ranks, len(s.tiles))
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
			t.frame = s.plan().frame()
			for _, devices := range s.phases {
				r := devices[device]
				t.sweep = append(t.sweep, r.Sweeper.plan.hostSpec("ranks", r.Arrays, []domain.Box{t.box}, nil).RunWith)
			}
		}
	}
	return nil
}

// findPartners finds out which tiles exchange notifications: those of which one stores points, or ghosts, that the
// other reads.
func (s *RankSteps) findPartners() {
	n, ranks := s.plan(), len(s.tiles[0])
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
				if n.readsAround(t.box, other.box) || n.readsAround(other.box, t.box) {
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
						if n.readsAround(other.box, piece) {
							pair(device*ranks+i, st.To*ranks+k)
						}
					}
				}
			}
		}
	}
}

// upload puts struct RankSteps of a GPU, with all that it points to, into the GPU's memory.
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
		to := targetsOfTiles(r, s.tiles[device])
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
	table = append(table, s.plan().frame()...)
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
	const beside = 2 // layers that a column loads beside its own
	threads, least := s.Threads(), 0
	for layers := s.layers(); layers >= 1; layers-- {
		turns := ceil(nx*ny*ceil(deep, layers), threads)
		if cost := turns * (layers + beside); best.layers == 0 || cost < least {
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
		if !n.grouped(arrays, box) || partOf(arrays[0], box, n.group, n.group).head != 0 {
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
func targetsOfTiles(r StageRank, tiles []rankTile) (t targets) {
	t.lists = []uint32{0}
	for _, one := range tiles {
		t.list(r, one.box)
	}
	return t
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
