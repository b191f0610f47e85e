package ranks

import "unsafe"

// letter is what a process has another do for its ranks; bytes may follow it. What the numbers are depends on its kind.
type letter struct {
	what        letterKind
	to, from    int64 // of letterReply and on host devices: ranks of the world; else devices
	slot, at, n int64
}

type letterKind int64

const (
	letterEnded   letterKind = iota // the run ends there too
	letterApplied                   // n more letters that store have been done

	// For proxies of GPUs. to is a device, at an address of it.
	letterStore        // the bytes
	letterRaise        // a count
	letterRaiseBarrier // the same for a barrier
	letterFetch        // n bytes, for command number slot of device from
	letterFetched      // the bytes, for command number slot of device to

	// For ranks on host devices. to is a rank, at an offset in its window number slot.
	letterPut    // the bytes
	letterPacket // the bytes, each 4 with number n
	letterGet    // n bytes, for rank from
	letterGot    // the bytes, for rank to
	letterWindow // rank from has a window of n bytes in this slot
	letterNotify // tag at, of window number slot, by rank from
	letterArrive // all ranks of the process have come to the n-th barrier of all
	letterValues // the bytes, which begin at this offset of n, of a collective at level slot
	letterTaken  // rank from has taken what came at level slot
	letterSent   // the bytes: the next message of channel number slot
	letterRead   // n messages of channel number slot have been read
)

// stores reports whether a barrier waits until the letter has been done.
func (k letterKind) stores() bool {
	return k == letterStore || k == letterPut || k == letterPacket
}

// room is how many bytes a window has for so many bytes that follow the letter.
func (k letterKind) room(bytes int64) int64 {
	if k == letterPacket {
		return 2 * bytes
	}
	return bytes
}

const letterBytes = int(unsafe.Sizeof(letter{}))

// bytes is the letter as it is sent.
func (l *letter) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(l)), letterBytes)
}

// letterIn returns a letter and the bytes that follow it.
func letterIn(record []byte) (l letter, body []byte) {
	n := copy(l.bytes(), record)
	return l, record[n:]
}
