package packing

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// An engine's file has its name, and how it makes a job. This one makes a driver copy for each block.

const blockwise Engine = "blockwise"

var blockwiseEngine = engine{blockwise, 1, (*Packer).blockwise}

func (p *Packer) blockwise(j *Job, t *task) error {
	list, err := listOf(t.message.Layout)
	if err != nil {
		return err
	}
	j.most = len(list)
	j.queue = func(s *streams.Stream) error {
		at := t.packed.Offset
		for _, b := range list {
			dst := t.packed.Memory.Span(at, b.Length)
			src := t.place.Data.Memory.Span(t.place.Data.Offset+t.place.Origin+b.Displacement, b.Length)
			if t.unpack {
				dst, src = src, dst
			}
			if err := s.Copy(dst, src); err != nil {
				return err
			}
			at += b.Length
		}
		return nil
	}
	return nil
}

// An additional engine, which no other file mentions, packs by its name and by auto, transfers messages, and
// has its own measurements.
func TestAdditionalEngine(t *testing.T) {
	b := newAutoBench(t)
	all := append(engines(), blockwiseEngine)
	p, without := b.packerOf(t, Options{}, all), b.packer(t, Options{})
	a := b.column(t, 50)
	if e, _ := b.by(t, p, blockwise, a); e != blockwise {
		t.Errorf("engine %s", e)
	}
	if _, why := b.by(t, p, Auto, a); !strings.Contains(why, "blockwise ") {
		t.Errorf("auto did not try it: %s", why)
	}
	a = b.column(t, 60)
	b.teach(t, p, a, timed{blockwise, 1}, timed{Units, 2})
	if e, why := b.by(t, b.packerOf(t, Options{}, all), Auto, a); e != blockwise || why != "measured: blockwise 0.0 us, units 0.0 us" {
		t.Errorf("auto took %s: %s", e, why)
	}
	test.Says(t, test.ErrorOf(without.Pack(blockwise, a.packed, a.place, a.message)), `or auto, got "blockwise"`)
	b.sendBlockwise(t, p)
}

// sendBlockwise sends a column to another place, packed and unpacked by the engine.
func (b *autoBench) sendBlockwise(t *testing.T, p *Packer) {
	t.Helper()
	here, there := b.column(t, 40), b.column(t, 40)
	filled := slices.Repeat([]byte{1, 2, 3, 5, 7}, int(here.place.Data.Length/5+1))[:here.place.Data.Length]
	host := test.Must(b.device.AllocPinned(int64(len(filled))))(t)
	defer host.Close()
	copy(host.Bytes(), filled)
	side := func(a *task) Side { return Side{Packer: p, Place: a.place, Message: a.message} }
	move := test.Must(NewTransfer(side(there), side(here), TransferOptions{Path: p2p.Staged, Engine: blockwise}))(t)
	defer move.Close()
	s := b.stream
	err := errors.Join(s.Copy(here.place.Data, host.All()), move.Queue(s, s), s.Copy(host.All(), there.place.Data), s.Sync(time.Minute))
	got, want := make([]byte, 40*8), make([]byte, 40*8)
	l := here.message.Layout
	err = errors.Join(err, l.Pack(got, host.Bytes(), 0), l.Pack(want, filled, 0))
	if err != nil || !bytes.Equal(got, want) || !move.InFragments() {
		t.Errorf("other bytes arrived: %v", err)
	}
}

// Measurements are not used after an engine is added or changed.
func TestTuningsDependOnEngines(t *testing.T) {
	b := newAutoBench(t)
	a := b.column(t, 50)
	changed := engines()
	changed[0].revision++
	keys := map[string]bool{}
	for _, all := range [][]engine{engines(), append(engines(), blockwiseEngine), changed} {
		keys[b.packerOf(t, Options{}, all).tuningKey(a)] = true
	}
	if len(keys) != 3 {
		t.Errorf("keys %v", keys)
	}
}
