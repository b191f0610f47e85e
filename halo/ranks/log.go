package ranks

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/halox/halox/streams"
)

// logger writes the lines of all ranks, one at a time.
type logger struct {
	mu sync.Mutex
	to io.Writer // nil: nowhere
}

// write writes a line of a rank. What the writer fails of is not looked at: a log is for people.
func (l *logger) write(rank int, device fmt.Stringer, line string) {
	if l.to == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.to, "rank %d (%v): %s\n", rank, device, line)
}

// read writes the lines that a GPU has logged since it was last called.
func (l *logger) read(d *streams.Device, lines *streams.Memory, c *control) {
	all := unsafe.Slice((*logLine)(unsafe.Pointer(&lines.Bytes()[0])), logLines)
	for n := c.logged; ; n++ {
		line := &all[n%logLines]
		if atomic.LoadUint64(&line.number) != n+1 {
			return
		}
		l.write(int(line.rank), d, format(line.text[:min(line.length, uint64(len(line.text)))]))
		atomic.StoreUint64(&c.logged, n+1)
	}
}

// format returns a line with its numbers as text.
func format(items []byte) string {
	var text []byte
	for i := 0; i < len(items); i++ {
		if items[i] < logSigned || items[i] > logDouble || i+8 >= len(items) {
			text = append(text, items[i])
			continue
		}
		bits := binary.LittleEndian.Uint64(items[i+1:])
		switch items[i] {
		case logSigned:
			text = strconv.AppendInt(text, int64(bits), 10)
		case logUnsigned:
			text = strconv.AppendUint(text, bits, 10)
		case logDouble:
			text = strconv.AppendFloat(text, math.Float64frombits(bits), 'g', -1, 64)
		}
		i += 8
	}
	return string(text)
}
