package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/zarr"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// Compression says whether values are compressed.
type Compression string

// The compressions. Auto compresses an array with zstd if a sample of it shrinks by a fifth.
const (
	Auto Compression = "auto"
	None Compression = "none"
	Zstd Compression = "zstd" // at its fastest level
)

// Options of a Writer. Only Folder is required. They must be the same on all processes, except for Report.
type Options struct {
	Folder   string      // required: folder of the checkpoints, on a file system that all processes share
	Keep     int         // number of checkpoints that are kept; default 2
	Compress Compression // default Auto

	// Run identifies the run in its checkpoints. A run that continues from a checkpoint takes the Run of that. A folder
	// has checkpoints of one run only: NewWriter returns ErrOtherRun otherwise, and never removes those of another run.
	// Default: a new one.
	Run string

	// Fatal makes Write and Wait return the error of a checkpoint that could not be written. By default only Status has
	// it, earlier checkpoints stay, and the next Write tries again.
	Fatal bool

	// Report is called on each process after each checkpoint, whole or failed, from another goroutine than Write.
	Report func(Status)

	chunkBytes, shardBytes int                // for tests; default 0: those of package zarr
	at                     func(point string) // for tests: called at points of a write; default nil
}

// Status is the state of a Writer.
type Status struct {
	Step    int64         // of the last whole checkpoint of this Writer; -1 if there is none
	Path    string        // its folder
	Bytes   int64         // its size
	Took    time.Duration // from its Write until it was whole
	Written int           // whole checkpoints
	Skipped int           // not begun, because the one before was still being written
	Failed  int           // failed checkpoints
	Waited  int           // of those written: during Write, because devices lack memory for a copy
	Writing bool          // whether one is being written
	Err     error         // of the last checkpoint; nil if it is whole and older ones were removed
}

// Writer writes checkpoints of fields while steps continue. If processes share the grid, all of them make the same
// calls of NewWriter, Write, and Close in the same order, and Write with the same steps.
type Writer struct {
	o        Options
	names    []string
	place    *halo.Placement
	group    *mpi.Processes // for the background
	snapshot *halo.Snapshot // nil without memory for it
	folder   *folder        // nil except on rank 0
	busy     int            // shards at once
	end      context.CancelFunc
	ctx      context.Context // of the background

	lock    sync.Mutex
	status  Status
	done    chan struct{} // closed when no checkpoint is being written
	failure error         // of checkpoints, not yet returned
}

// patience is the longest wait for another process, which may be writing a shard to a slow disk.
const patience = time.Hour

// NewWriter returns a Writer of arrays: fields of one placement, with distinct names. It makes the folder and locks it,
// so that only one run writes there, and removes what killed writers have left. It allocates a copy of all fields on
// their devices. If there is too little memory, checkpoints are written during Write instead.
func NewWriter(ctx context.Context, o Options, arrays ...Array) (w *Writer, err error) {
	if err := check(arrays); err != nil {
		return nil, err
	}
	place := arrays[0].Field.Placement
	p := place.Processes
	if o.Keep == 0 {
		o.Keep = 2
	}
	if o.Compress == "" {
		o.Compress = Auto
	}
	switch {
	case ctx == nil:
		return nil, p.Fail(errors.New("checkpoint: the context is nil: see context.Background"))
	case o.Folder == "":
		return nil, errors.New("checkpoint: Options.Folder must not be empty")
	case o.Keep < 1:
		return nil, fmt.Errorf("checkpoint: Options.Keep: must be at least 1, got %d", o.Keep)
	case o.Compress != Auto && o.Compress != None && o.Compress != Zstd:
		return nil, fmt.Errorf("checkpoint: Options.Compress: must be auto, none or zstd, got %q", o.Compress)
	}
	w = &Writer{o: o, place: place, busy: shardsAtOnce(place), status: Status{Step: -1}, done: make(chan struct{})}
	close(w.done)
	w.ctx, w.end = context.WithCancel(context.WithoutCancel(ctx))
	for _, a := range arrays {
		w.names = append(w.names, a.Name)
	}
	if p.Rank == 0 {
		if err = w.open(ctx); err != nil {
			err = fmt.Errorf("checkpoint: folder %s: %w", o.Folder, err)
		}
	}
	if err = p.Agree(ctx, "open the folder of checkpoints", err, ErrOtherRun); err == nil {
		w.o.Run, err = mpi.Broadcast(ctx, p, "name of the run", w.o.Run, 0)
	}
	if err == nil {
		w.group, err = p.Duplicate(ctx, patience)
	}
	if err == nil {
		w.snapshot, err = halo.NewSnapshot(ctx, fieldsOf(arrays)...)
		if errors.Is(err, streams.ErrOutOfMemory) {
			err = nil
		}
	}
	if err != nil {
		return nil, errors.Join(err, w.free())
	}
	return w, nil
}

// shardsAtOnce returns how many shards a process encodes and writes at once: few on CPU devices, whose sweeps need the
// cores.
func shardsAtOnce(place *halo.Placement) int {
	d := place.FirstDevice()
	if d == nil || d.HostMemory {
		return 1
	}
	_, local := place.Processes.Local()
	return min(max(runtime.GOMAXPROCS(0)/local/2, 1), 8)
}

// open opens the folder, and names the run.
func (w *Writer) open(ctx context.Context) (err error) {
	if w.folder, err = openFolder(ctx, w.o.Folder); err != nil {
		return err
	}
	all, err := List(w.o.Folder)
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.Run != "" && e.Run != w.o.Run {
			return fmt.Errorf("%w, such as %s: continue from them, remove them, or choose another folder", ErrOtherRun,
				filepath.Base(e.Path))
		}
	}
	if w.o.Run == "" {
		w.o.Run = fmt.Sprintf("%016x", rand.Uint64())
	}
	return nil
}

// state is what Write gathers from the processes.
type state struct {
	Step    int64  // of the last whole checkpoint
	Writing bool   // whether one is being written
	Wrong   string // wrong arguments
	Failure string // failure that must be returned
}

// Write writes a checkpoint of fields with the names and Specs of those of NewWriter, and with attributes that
// package json encodes as an object; those of rank 0 are taken. It copies the fields on their devices and returns while
// the copy is written. No queued work may write the fields during Write. If another checkpoint is still being written,
// this one is skipped: call Wait before one that must not be. So is one of a step that the last whole one has.
//
// The error is that of wrong arguments, of a device or another process, or with Options.Fatal of writing files. It is
// the same on all processes.
func (w *Writer) Write(ctx context.Context, step int64, attributes any, arrays ...Array) error {
	began := time.Now()
	object, err := w.checkWrite(step, attributes, arrays)
	w.lock.Lock()
	mine := state{w.status.Step, w.status.Writing, text(err), text(w.failure)}
	w.failure = nil
	w.lock.Unlock()
	all, err := mpi.Gather(ctx, w.place.Processes, fmt.Sprintf("checkpoint of step %d", step), mine)
	if err != nil {
		return err
	}
	busy := false
	for _, other := range all {
		busy = busy || other.Writing
		if reason := other.Wrong + other.Failure; reason != "" {
			return errors.New(reason)
		}
	}
	if busy || all[0].Step == step {
		w.lock.Lock()
		defer w.lock.Unlock()
		if busy {
			w.status.Skipped++
		}
		return nil
	}
	if w.snapshot != nil {
		err := w.snapshot.Take(fieldsOf(arrays)...)
		if err = w.place.Agree(ctx, "copy fields", err); err != nil {
			return err
		}
		arrays = slices.Clone(arrays)
		for i, f := range w.snapshot.Fields() {
			arrays[i].Field = f
		}
	}
	done := make(chan struct{})
	w.lock.Lock()
	w.status.Writing, w.done = true, done
	w.lock.Unlock()
	write := func() {
		defer close(done)
		w.finish(w.write(step, object, arrays), step, began)
	}
	if w.snapshot != nil {
		go write()
		return nil
	}
	write()
	return w.takeFailure()
}

// checkWrite returns the encoded attributes, or an error for wrong arguments.
func (w *Writer) checkWrite(step int64, attributes any, arrays []Array) (object json.RawMessage, err error) {
	if err := check(arrays); err != nil {
		return nil, err
	}
	if step < 0 {
		return nil, fmt.Errorf("checkpoint: step: must be at least 0, got %d", step)
	}
	if len(arrays) != len(w.names) {
		return nil, fmt.Errorf("checkpoint: must have %d arrays, got %d", len(w.names), len(arrays))
	}
	for i, a := range arrays {
		if a.Name != w.names[i] {
			return nil, fmt.Errorf("checkpoint: array %d: must be %q as in NewWriter, got %q", i, w.names[i], a.Name)
		}
	}
	if object, err = json.Marshal(attributes); err != nil {
		return nil, fmt.Errorf("checkpoint: attributes: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, fmt.Errorf("checkpoint: attributes: must be an object in JSON, got %.40s", object)
	}
	return object, nil
}

// finish stores the result of a checkpoint.
func (w *Writer) finish(r result, step int64, began time.Time) {
	w.lock.Lock()
	s := &w.status
	s.Writing, s.Err = false, r.err
	if !r.whole.IsZero() {
		s.Step, s.Bytes, s.Took, s.Path = step, r.bytes, r.whole.Sub(began), filepath.Join(w.o.Folder, folderOf(step))
		s.Written++
		if w.snapshot == nil {
			s.Waited++
		}
	} else {
		s.Failed++
		if w.o.Fatal {
			w.failure = r.err
		}
	}
	status := *s
	w.lock.Unlock()
	if w.o.Report != nil {
		w.o.Report(status)
	}
}

func (w *Writer) takeFailure() error {
	w.lock.Lock()
	defer w.lock.Unlock()
	err := w.failure
	w.failure = nil
	return err
}

// Status returns the state of the writer. Processes may see a change at different times.
func (w *Writer) Status() Status {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.status
}

// Wait waits until no checkpoint is being written, or returns the error of a context that ends before. With
// Options.Fatal it returns the error of a failed one.
func (w *Writer) Wait(ctx context.Context) error {
	w.lock.Lock()
	done := w.done
	w.lock.Unlock()
	select {
	case <-done:
		return w.takeFailure()
	case <-ctx.Done():
		return fmt.Errorf("checkpoint: wait until it is written: %w", context.Cause(ctx))
	}
}

// Close waits as Wait does, frees the copies, and unlocks the folder. When the context ends before, it returns its
// error at once: the process should end then, and what it was writing is removed by the next Writer.
func (w *Writer) Close(ctx context.Context) error {
	err := w.Wait(ctx)
	if ctx.Err() != nil {
		w.end()
		return err
	}
	return errors.Join(err, w.free())
}

func (w *Writer) free() (err error) {
	w.end()
	if w.snapshot != nil {
		err = w.snapshot.Close()
	}
	if w.folder != nil {
		err = errors.Join(err, w.folder.close())
	}
	return errors.Join(err, w.group.Close())
}

// result is the result of a checkpoint on all processes.
type result struct {
	whole time.Time // when it was; zero if it is not
	bytes int64
	err   error
}

// write writes a checkpoint of arrays that do not change. All processes call it.
func (w *Writer) write(step int64, attributes json.RawMessage, arrays []Array) result {
	r, err := w.tryWrite(step, attributes, arrays)
	if err != nil {
		r.err = fmt.Errorf("checkpoint of step %d: %w", step, err)
	}
	return r
}

func (w *Writer) tryWrite(step int64, attributes json.RawMessage, arrays []Array) (r result, err error) {
	all, done, err := parts(arrays...)
	if err != nil {
		return r, w.group.Fail(err)
	}
	defer func() { err = errors.Join(err, done()) }()
	levels, err := w.levels(all)
	if err != nil {
		return r, err
	}
	begun, err := w.onRoot("begin a checkpoint", func() (string, error) { return w.folder.begin(step) })
	if err != nil {
		return r, err
	}
	w.pass("begun")
	s := &share{w: w, parts: all, folder: begun}
	for i, p := range all {
		a, err := p.create(begun, levels[i], w.o.chunkBytes, w.o.shardBytes)
		if err != nil {
			return r, w.group.Fail(err)
		}
		s.arrays = append(s.arrays, a)
	}
	if err := s.write(divide(all, s.arrays)); err != nil {
		return r, err
	}
	w.pass("written")
	mine := written{s.files, text(s.failure)}
	everyone, err := mpi.Gather(w.ctx, w.group, "files of a checkpoint", mine)
	if err != nil {
		return r, err
	}
	m := Manifest{Format: newest, Run: w.o.Run, Step: step}
	for rank, other := range everyone {
		if other.Failure != "" && err == nil {
			if err = errors.New(other.Failure); !w.group.IsAlone() {
				err = fmt.Errorf("%s: %w", w.group.Name(rank), err)
			}
		}
		m.Files = append(m.Files, other.Files...)
	}
	if err == nil {
		_, err = w.onRoot("complete a checkpoint", func() (string, error) {
			return "", s.complete(&m, attributes)
		})
	}
	if err != nil {
		_ = os.RemoveAll(begun) // all processes: the folder may not be shared
		return r, err
	}
	w.pass("whole")
	r.whole = time.Now()
	for _, f := range m.Files {
		r.bytes += f.Size
	}
	_, err = w.onRoot("remove old checkpoints", func() (string, error) {
		return "", w.folder.removeOthers(w.o.Run, step, w.o.Keep)
	})
	return r, err
}

func (w *Writer) pass(point string) {
	if w.o.at != nil {
		w.o.at(point)
	}
}

// written is what a process has written.
type written struct {
	Files   []zarr.File
	Failure string
}

// onRoot calls a function on rank 0, and returns its result on all processes.
func (w *Writer) onRoot(what string, do func() (string, error)) (string, error) {
	var out [2]string
	if w.group.Rank == 0 {
		result, err := do()
		out = [2]string{result, text(err)}
	}
	out, err := mpi.Broadcast(w.ctx, w.group, what, out, 0)
	if err != nil {
		return "", err
	}
	return out[0], first(out[1:])
}

// Parts of a field that are compressed on trial.
const (
	sampleBytes = 1 << 20
	worthwhile  = 0.8 // compressed bytes per byte
)

// levels returns the level of zstd of each array, the same on all processes; 0 for none.
func (w *Writer) levels(all []part) (levels []int, err error) {
	levels = make([]int, len(all))
	if w.o.Compress == None {
		return levels, nil
	}
	tried := make([][2]int64, len(all)) // bytes, and compressed bytes
	for i, p := range all {
		if levels[i] = 1; w.o.Compress == Auto {
			if tried[i], err = p.sample(); err != nil {
				return nil, w.group.Fail(err)
			}
		}
	}
	if w.o.Compress == Zstd {
		return levels, nil
	}
	everyone, err := mpi.Gather(w.ctx, w.group, "compression of a checkpoint", tried)
	if err != nil {
		return nil, err
	}
	for i := range levels {
		var sum [2]int64
		for _, other := range everyone {
			sum[0], sum[1] = sum[0]+other[i][0], sum[1]+other[i][1]
		}
		if float64(sum[1]) > worthwhile*float64(sum[0]) {
			levels[i] = 0
		}
	}
	return levels, nil
}

// sample compresses rows from the middle of each subdomain of this process.
func (p part) sample() (bytes [2]int64, err error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return bytes, err
	}
	for rank, sub := range p.field.Cut.Subdomains {
		if !p.field.Placement.IsLocal(rank) {
			continue
		}
		box := sub.Box
		for a := 2; a >= 0; a-- {
			most := max(1, sampleBytes*int64(box.Size()[a])/(box.Points()*int64(p.bytes)))
			if n := int64(box.Size()[a]); n > most {
				box.Lo[a] += int(n-most) / 2
				box.Hi[a] = box.Lo[a] + int(most)
			}
		}
		data := make([]byte, box.Points()*int64(p.bytes))
		if err := halo.Read(data, p.field, box); err != nil {
			return bytes, err
		}
		bytes[0] += int64(len(data))
		bytes[1] += int64(len(encoder.EncodeAll(data, nil)))
	}
	return bytes, encoder.Close()
}

// share is the work of one process for a checkpoint.
type share struct {
	w      *Writer
	parts  []part
	arrays []*zarr.Array
	folder string

	lock    sync.Mutex
	files   []zarr.File // written by this process
	failure error       // of writing them
}

// write collects and writes the shards of this process, and sends the points of others. The error is one of reading
// fields or of messages; those of files are in failure, and do not keep others from sending.
//
// All processes go through the shards in the same order, one goroutine sends and one receives: no process waits for a
// message that is behind one which waits for the process.
func (s *share) write(tasks []task) error {
	group, ctx := errgroup.WithContext(s.w.ctx)
	me := s.w.group.Rank
	group.Go(func() error {
		for _, t := range tasks {
			if t.owner == me {
				continue
			}
			if err := s.eachPiece(t, func(rank, owner int, box domain.Box) error {
				if owner != me {
					return nil
				}
				data, err := s.read(t, box)
				if err != nil {
					return err
				}
				return s.w.group.SendBytes(ctx, s.what(t), data, t.owner)
			}); err != nil {
				return err
			}
		}
		return nil
	})
	group.Go(func() error {
		free := make(chan []byte, s.w.busy)
		for range s.w.busy {
			free <- nil
		}
		for _, t := range tasks {
			if t.owner != me {
				continue
			}
			var shard []byte
			select {
			case shard = <-free:
			case <-ctx.Done():
				return ctx.Err()
			}
			bytes := t.points.Points() * int64(s.parts[t.part].bytes)
			if int64(cap(shard)) < bytes {
				shard = make([]byte, bytes)
			}
			shard = shard[:bytes]
			if err := s.receive(ctx, t, shard); err != nil {
				return err
			}
			group.Go(func() error {
				err := s.writeShard(t, shard)
				free <- shard
				return err
			})
		}
		return nil
	})
	return group.Wait()
}

func (s *share) what(t task) string {
	return fmt.Sprintf("shard %d of %s", t.shard, s.parts[t.part].name)
}

// eachPiece calls do with the points of a shard in each subdomain, and the process that owns them.
func (s *share) eachPiece(t task, do func(rank, owner int, box domain.Box) error) error {
	f := s.parts[t.part].field
	for rank, sub := range f.Cut.Subdomains {
		if box := sub.Box.Intersect(t.points); !box.Empty() {
			if err := do(rank, f.Placement.Owners[rank], box); err != nil {
				return err
			}
		}
	}
	return nil
}

// read returns the points of a box of this process.
func (s *share) read(t task, box domain.Box) ([]byte, error) {
	data := make([]byte, box.Points()*int64(s.parts[t.part].bytes))
	return data, s.readTo(data, t, box)
}

func (s *share) readTo(data []byte, t task, box domain.Box) error {
	if err := halo.Read(data, s.parts[t.part].field, box); err != nil {
		return s.w.group.Fail(err) // before the context ends waits for others
	}
	return nil
}

// receive sets the points of a shard that other processes own.
func (s *share) receive(ctx context.Context, t task, shard []byte) error {
	p := s.parts[t.part]
	return s.eachPiece(t, func(_, owner int, box domain.Box) error {
		if owner == s.w.group.Rank {
			return nil
		}
		data := make([]byte, box.Points()*int64(p.bytes))
		if err := s.w.group.ReceiveBytes(ctx, s.what(t), data, owner); err != nil {
			return err
		}
		copyBox(box, shard, t.points, data, box, p.bytes)
		return nil
	})
}

// writeShard writes a shard, with the points that this process owns.
func (s *share) writeShard(t task, shard []byte) error {
	p := s.parts[t.part]
	s.lock.Lock()
	failed := s.failure != nil
	s.lock.Unlock()
	if failed {
		return nil
	}
	err := s.eachPiece(t, func(_, owner int, box domain.Box) error {
		if owner != s.w.group.Rank {
			return nil
		}
		if box == t.points {
			return s.readTo(shard, t, box)
		}
		data, err := s.read(t, box)
		if err == nil {
			copyBox(box, shard, t.points, data, box, p.bytes)
		}
		return err
	})
	if err != nil {
		return err
	}
	bytes := p.element.Size()
	held := p.valuesOf(t.points)
	file, err := s.arrays[t.part].WriteShard(0, t.shard, func(dst []byte, box domain.Box) error {
		copyBox(box, dst, box, shard, held, bytes)
		return nil
	})
	s.add(t.part, file, err)
	return nil
}

// add records a file of an array that was written, or that could not be.
func (s *share) add(part int, file zarr.File, err error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if err != nil {
		s.failure = errors.Join(s.failure, err)
		return
	}
	file.Name = s.parts[part].name + "/" + file.Name
	s.files = append(s.files, file)
}

// complete writes what describes the arrays, checks that the files of all processes are there, and commits the
// checkpoint.
func (s *share) complete(m *Manifest, attributes json.RawMessage) error {
	described := &share{parts: s.parts}
	for i, a := range s.arrays {
		file, err := a.Commit()
		described.add(i, file, err)
	}
	group, err := zarr.WriteGroup(s.folder, attributes)
	if err = errors.Join(described.failure, err); err != nil {
		return err
	}
	m.Files = append(append(m.Files, described.files...), group)
	for _, f := range m.Files {
		file, err := openFile(s.folder, f)
		if err != nil {
			return fmt.Errorf("%w: the folder must be on a file system that all processes share", err)
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	m.Written = time.Now().UTC().Truncate(time.Second)
	return s.w.folder.commit(s.folder, *m)
}
