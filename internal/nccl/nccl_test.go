//go:build linux && cgo

package nccl_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/halox/halox/internal/nccl"
	"github.com/halox/halox/internal/nccl/ncclfake"
	"github.com/halox/halox/internal/test"
)

// stream is any address: this library has no streams.
const stream = 1

func open(t *testing.T) *nccl.Library {
	t.Helper()
	l := test.Must(nccl.Open(ncclfake.Build(t)))(t)
	if l.Version != "2.27.5" {
		t.Errorf("version %s", l.Version)
	}
	return l
}

// pair begins both ranks of a communicator.
func pair(t *testing.T, l *nccl.Library) (comms [2]*nccl.Comm) {
	t.Helper()
	id, err := l.NewID()
	test.Check(t, err)
	for rank := range comms {
		if comms[rank], err = l.Begin(id, 2, rank); err != nil {
			t.Fatal(err)
		}
	}
	return comms
}

// await waits until a communicator is ready.
func await(c *nccl.Comm, limit time.Duration) error {
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(time.Millisecond) {
		if ready, err := c.Ready(); ready || err != nil {
			return err
		}
	}
	return os.ErrDeadlineExceeded
}

// memory is what C may keep the address of.
func memory(t *testing.T, n int) ([]byte, uint64) {
	t.Helper()
	b := test.Must(unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE))(t)
	return b, uint64(uintptr(unsafe.Pointer(&b[0])))
}

func TestMessagesArriveInOrder(t *testing.T) {
	l := open(t)
	comms := pair(t, l)
	for _, n := range []int{1, 1000, 3 << 20} {
		out, from := memory(t, n)
		in, to := memory(t, n)
		for i := range out {
			out[i] = byte(7*i + n)
		}
		err := errors.Join(await(comms[0], time.Minute), await(comms[1], time.Minute),
			comms[0].Send(from, int64(n), 1, stream), comms[1].Receive(to, int64(n), 0, stream),
			await(comms[0], time.Minute), await(comms[1], time.Minute))
		test.Check(t, err)
		if !bytes.Equal(in, out) {
			t.Errorf("%d bytes arrived wrong", n)
		}
	}
	test.Report(t, errors.Join(comms[0].Finalize(), await(comms[0], time.Minute), comms[0].Destroy(), comms[1].Abort(), comms[1].Abort()))
}

func TestErrorsNameTheCall(t *testing.T) {
	l := open(t)
	comms := pair(t, l)
	test.Check(t, errors.Join(await(comms[0], time.Minute), await(comms[1], time.Minute)))
	_, at := memory(t, 8)
	err := comms[0].Send(at, 8, 0, stream) // to itself
	if e, ok := errors.AsType[*nccl.Error](err); !ok || e.Call != "ncclSend" || e.Code != 4 || !strings.Contains(err.Error(), "invalid argument") {
		t.Errorf("a message to the rank itself: %v", err)
	}
	if _, err := l.Begin(nccl.ID{}, 3, 0); err == nil {
		t.Error("three ranks")
	}
	test.Report(t, errors.Join(comms[0].Abort(), comms[1].Abort()))
}

// What hangs ends by Abort. What is said of a rank that is gone comes from Ready.
func TestAbort(t *testing.T) {
	l := open(t)
	comms := pair(t, l)
	_, at := memory(t, 8)
	test.Check(t, errors.Join(await(comms[0], time.Minute), await(comms[1], time.Minute), comms[1].Receive(at, 8, 0, stream)))
	if err := await(comms[1], 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("nothing was sent: %v", err)
	}
	test.Check(t, comms[0].Abort())
	test.Says(t, await(comms[1], time.Minute), "remote process exited")
	test.Report(t, comms[1].Abort())
}

func TestLibrariesThatAreNone(t *testing.T) {
	test.Is(t, test.ErrorOf(nccl.Open("/nowhere/libnccl.so.2")), nccl.ErrNotFound)
	other := filepath.Join(t.TempDir(), "libother.so")
	c := exec.Command("cc", "-shared", "-x", "c", "-o", other, "-")
	c.Stdin = strings.NewReader("int ncclGetVersion(int *v) { return 0; }")
	if out, err := c.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no C compiler: %v %s", err, out)
	}
	test.Says(t, test.ErrorOf(nccl.Open(other)), "lacks ncclGetUniqueId, ncclCommInitRankConfig")
}

func TestLogNamesTransports(t *testing.T) {
	log := test.Must(nccl.StartLog())(t)
	file, err := os.OpenFile(os.Getenv("NCCL_DEBUG_FILE"), os.O_APPEND|os.O_WRONLY, 0)
	test.Check(t, err)
	_, err = file.WriteString(`host:1:9 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read
host:1:9 [0] NCCL INFO Channel 00/0 : 1[1] -> 0[0] [send] via NET/IB/2/GDRDMA
host:1:9 [0] NCCL INFO Channel 00/1 : 0[b7000] -> 1[1] via P2P/CUMEM/read
host:1:9 [0] NCCL INFO Connected all rings, via nothing
`)
	test.Check(t, errors.Join(err, file.Close()))
	if got := strings.Join(log.Transports(), " "); got != "NET/IB/2/GDRDMA P2P/CUMEM/read" {
		t.Errorf("transports %q", got)
	}
	if err := errors.Join(log.Close(), log.Close()); err != nil || os.Getenv("NCCL_DEBUG") != "" || log.Transports() != nil {
		t.Errorf("a log that is closed: %v", err)
	}
	t.Setenv("NCCL_DEBUG", "WARN")
	if log, err := nccl.StartLog(); err != nil || os.Getenv("NCCL_DEBUG_FILE") != "" || log.Transports() != nil {
		t.Errorf("a user's log: %v", err)
	}
}
