package datatype_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/typetest"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
)

// mpiPatience is the limit for an MPI library to compile and to answer everything.
const mpiPatience = 60 * time.Second

// An mpiCase is count elements of a type, to be compared with MPI.
type mpiCase struct {
	name  string
	typ   *datatype.Type
	count int
}

// Every installed MPI library is compared in sizes, bounds and packed bytes for all workloads and for random
// types.
func TestLikeMPI(t *testing.T) {
	testdevices.InTurn(t, 3, 4)
	compilers := mpiCompilers(t)
	if len(compilers) == 0 {
		t.Skip("SKIPPED: no working mpicc, types are not compared with MPI (apt-get install libopenmpi-dev openmpi-bin)")
	}
	cases := append(workloadCases(t), randomCases(t)...)
	for _, compiler := range compilers {
		t.Run(filepath.Base(compiler), func(t *testing.T) {
			version, answers := askMPI(t, compiler, cases)
			left := 0
			for i, c := range cases {
				if compareWithMPI(t, version, c, strings.Fields(answers[i])) {
					left++
				}
			}
			t.Logf("%s: %d cases, %d of them compared only by size", version, len(cases), left)
			if left > len(cases)/5 {
				t.Errorf("too many cases compared only by size")
			}
		})
	}
}

// mpiCompilers returns the working MPI compilers, one per library.
func mpiCompilers(t *testing.T) []string {
	var found []string
	seen := map[string]bool{}
	for _, name := range []string{"mpicc.openmpi", "mpicc.mpich", "mpicc"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		target, err := filepath.EvalSymlinks(path)
		if err != nil || seen[target] {
			continue
		}
		seen[target] = true
		if out, err := tryMPI(t, path); err != nil {
			t.Logf("%s is not used: %v\n%s", path, err, out)
			continue
		}
		found = append(found, path)
	}
	return found
}

// tryMPI builds and runs a program that starts MPI: some hosts have mpicc without mpi.h or the library.
func tryMPI(t *testing.T, compiler string) (output []byte, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), mpiPatience)
	defer cancel()
	program := filepath.Join(t.TempDir(), "try")
	compile := exec.CommandContext(ctx, compiler, "-x", "c", "-o", program, "-")
	compile.Stdin = strings.NewReader("#include <mpi.h>\nint main(void) { return MPI_Init(0, 0) || MPI_Finalize(); }\n")
	if output, err = compile.CombinedOutput(); err == nil {
		output, err = exec.CommandContext(ctx, program).CombinedOutput()
	}
	return output, err
}

func workloadCases(t *testing.T) []mpiCase {
	all := test.Must(workloads.All())(t)
	var cases []mpiCase
	for _, w := range all {
		cases = append(cases, mpiCase{w.String() + " sent", w.Send.Type, w.Send.Count})
		if w.Recv.Type != w.Send.Type {
			cases = append(cases, mpiCase{w.String() + " received", w.Recv.Type, w.Recv.Count})
		}
	}
	return cases
}

func randomCases(t *testing.T) []mpiCase {
	var cases []mpiCase
	for seed := range uint64(600) {
		s := typetest.Seeded(seed)
		typ, count := s.Plain(t, 1+s(0, 4)), s.Count(5)
		cases = append(cases, mpiCase{fmt.Sprintf("random %d", seed), typ, count})
	}
	return cases
}

// askMPI builds testdata/mpipack.c and returns the library's name and its answers.
func askMPI(t *testing.T, compiler string, cases []mpiCase) (version string, answers []string) {
	ctx, cancel := context.WithTimeout(t.Context(), mpiPatience)
	defer cancel()
	program := filepath.Join(t.TempDir(), "mpipack")
	if out, err := exec.CommandContext(ctx, compiler, "-O2", "-o", program, "testdata/mpipack.c").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, out)
	}
	var questions bytes.Buffer
	for _, c := range cases {
		fmt.Fprint(&questions, c.count, " ")
		write(&questions, c.typ)
		fmt.Fprintln(&questions)
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.WaitDelay = time.Second
	cmd.Stdin = &questions
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v (limit %v)", program, err, mpiPatience)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(cases)+1 {
		t.Fatalf("%d answers to %d questions", len(lines)-1, len(cases))
	}
	return lines[0], lines[1:]
}

// write writes a type in the format of mpipack.c.
func write(w *bytes.Buffer, t *datatype.Type) {
	e := t.Envelope()
	n := len(e.Displacements)
	letter := "ncvwiIbBstr"[e.Combiner : e.Combiner+1]
	switch e.Combiner {
	case datatype.Named:
		words(w, letter, e.Basic-datatype.ByteKind)
	case datatype.ContiguousCombiner:
		words(w, letter, e.Count)
	case datatype.VectorCombiner, datatype.HVectorCombiner:
		words(w, letter, e.Count, e.BlockLength, e.Stride)
	case datatype.IndexedBlockCombiner, datatype.HIndexedBlockCombiner:
		words(w, letter, n, e.BlockLength, e.Displacements)
	case datatype.SubarrayCombiner:
		words(w, letter, len(e.Sizes), e.Sizes, e.Subsizes, e.Starts, uint8(e.Order))
	case datatype.ResizedCombiner:
		words(w, letter, e.LB, e.Extent)
	default:
		words(w, letter, n, e.BlockLengths, e.Displacements)
	}
	for _, child := range e.Types {
		write(w, child)
	}
}

// words writes words and lists of words.
func words(w *bytes.Buffer, all ...any) {
	for _, a := range all {
		if b, ok := a.(datatype.Basic); ok {
			a = uint8(b)
		}
		fmt.Fprint(w, strings.Trim(fmt.Sprint(a), "[]"), " ")
	}
}

// numbered is the buffer of mpipack.c.
var numbered = sync.OnceValue(func() []byte { return typetest.Numbered(packLimit) })

// compareWithMPI compares one answer with ours, and returns whether only the size can be compared: libraries
// deviate from the standard, or from each other, for some types.
// - Empty parts: in the standard they are not in the type map. In libraries they widen the bounds.
// - MPICH treats set bounds in a struct like any other, and pads only structs.
// - Open MPI 4.1 treats some types that overlap themselves, and so cannot be received into, as contiguous.
func compareWithMPI(t *testing.T, version string, c mpiCase, answer []string) (left bool) {
	t.Helper()
	typ := c.typ
	mpich := strings.Contains(version, "MPICH")
	excused := datatype.HasEmpty(typ) || mpich && (datatype.SetsBoundsInStruct(typ) || datatype.Unaligned(typ))
	sizes := fmt.Sprint(typ.Size(), typ.LB(), typ.Extent(), typ.TrueLB(), typ.TrueExtent())
	if want := strings.Join(answer[:5], " "); sizes != want {
		if !excused || answer[0] != fmt.Sprint(typ.Size()) {
			t.Errorf("%s: %v: size, lb, extent, true lb and extent are %s, MPI has %s", c.name, typ, sizes, want)
		}
		return true
	}
	packed, unpacked, overlaps := hashes(t, c)
	if answer[5] == packed && (answer[6] == unpacked || overlaps) {
		return false
	}
	if !overlaps || mpich {
		t.Errorf("%s: %d of %v pack and unpack to %s %s, MPI to %s", c.name, c.count, typ, packed, unpacked, answer[5:])
	}
	return true
}

// The limits of mpipack.c, in bytes that elements span.
const (
	packLimit   = 16 << 20
	unpackLimit = 1 << 20
)

// hashes returns what mpipack.c answers about packing and unpacking, and whether elements overlap, in which
// case the result of unpacking is unspecified.
func hashes(t *testing.T, c mpiCase) (packed, unpacked string, overlaps bool) {
	l := committed(t, c.typ, c.count)
	span := l.TrueUB() - l.TrueLB()
	if l.Size() == 0 || span > packLimit {
		return "-", "-", false
	}
	bytes := make([]byte, l.Size())
	test.Check(t, l.Pack(bytes, numbered()[:span], -l.TrueLB()))
	if span > unpackLimit {
		return hash(bytes), "-", l.Overlaps()
	}
	back := make([]byte, span)
	test.Check(t, l.Unpack(back, -l.TrueLB(), bytes))
	return hash(bytes), hash(back), l.Overlaps()
}

func hash(b []byte) string {
	h := fnv.New64a()
	h.Write(b)
	return fmt.Sprintf("%016x", h.Sum64())
}
