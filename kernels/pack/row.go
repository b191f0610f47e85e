package pack

import (
	"bytes"
	"fmt"
	"math"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// NewRow returns memory of the device that holds the bytes of an element
// n times, for Repeat. Close frees it.
func (m *BoxCopier) NewRow(element []byte, n int) (*streams.Memory, error) {
	if n < 1 || len(element) < 1 || n > math.MaxInt32/len(element) {
		return nil, fmt.Errorf("pack: a row of %d elements of %d bytes: there is one at least, and a row has less than 2 GiB", n, len(element))
	}
	return streams.Upload(m.device, bytes.Repeat(element, n))
}

// Repeat is the copy that puts the row into every row of the box, which is not
// longer along x.
func Repeat(dst kernels.Array, box domain.Box, row streams.Span) Copy {
	return Copy{Dst: In(dst, box), Src: Place{Data: row}, Size: box.Size(), ElementSize: dst.Layout.ElementSize}
}
