package sweep

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

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
		at, err := uploaded(s, d, []byte(to.all))
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

// columnsOf returns the columns of a tile of a size, in groups of so many points. It takes the number of layers with the least loads by a
// thread: a thread takes its columns one after the other, and for each also loads the layers before and behind.
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
func uploaded[T byte | int32 | uint32](s *RankSteps, d *streams.Device, all []T) (int64, error) {
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
