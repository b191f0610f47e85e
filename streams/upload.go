package streams

import (
	"errors"
	"time"
	"unsafe"
)

// UploadLimit is how long Upload waits for the device.
const UploadLimit = 30 * time.Second

// Upload allocates memory on a device and fills it with the bytes of the values; none are an error. T holds no pointers. It waits until they are there.
func Upload[T any](d *Device, values []T) (m *Memory, err error) {
	if len(values) == 0 {
		return nil, errors.New("streams: upload of no values")
	}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(values[0])))
	var open Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	host, err := d.AllocPinned(int64(len(bytes)))
	if err != nil {
		return nil, err
	}
	open.Add(host)
	copy(host.Bytes(), bytes)
	s, err := d.NewStream(Normal)
	if err != nil {
		return nil, err
	}
	open.Add(s)
	if m, err = d.Alloc(int64(len(bytes))); err != nil {
		return nil, err
	}
	if err = errors.Join(s.Copy(m.All(), host.All()), s.Sync(UploadLimit)); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}
