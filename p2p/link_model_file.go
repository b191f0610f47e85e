package p2p

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/streams"
)

// linkModelVersion changes when what is measured, or how, does.
const linkModelVersion = 2

// keptCurve is a curve of a link model in the cache.
type keptCurve struct {
	trip
	Samples Curve `json:"samples"`
}

// store returns where the link model of the machine is kept.
func (l *LinkModel) store(folder string) cache.Store[[]keptCurve] {
	key := struct {
		Version int
		Machine Machine
	}{linkModelVersion, l.machine}
	return cache.Remember(cache.At(folder), "links", key, validCurves)
}

// LoadLinkModel reads the link model of the devices that Save kept in the folder of the
// cache; where it is empty, in the one that the variable HALOX_CACHE names, else the
// user's. It is an error if there is none, or if the file is damaged, for other devices, or
// may be the work of another user.
func LoadLinkModel(folder string, devices []*streams.Device, driver string) (*LinkModel, error) {
	if slices.Contains(devices, nil) {
		return nil, errNoDevice
	}
	r := NewLinkModel(devices, driver)
	curves, err := r.store(folder).Get()
	if err != nil {
		return nil, err
	}
	r.take(curves)
	return r, nil
}

func validCurves(curves []keptCurve) bool {
	return !slices.ContainsFunc(curves, func(c keptCurve) bool {
		return !c.Samples.valid() || !slices.Contains(Paths(), c.Path)
	})
}

// take adds curves that were kept.
func (l *LinkModel) take(curves []keptCurve) {
	for _, c := range curves {
		l.curves[c.trip] = c.Samples
	}
}

// Save keeps the link model in the folder, as LoadLinkModel finds it; it makes the folder
// where that is missing.
func (l *LinkModel) Save(folder string) error { return l.store(folder).Put(l.kept()) }

// kept returns the curves in order, as they are kept.
func (l *LinkModel) kept() (all []keptCurve) {
	byText := func(a, b trip) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	for _, t := range slices.SortedFunc(maps.Keys(l.curves), byText) {
		all = append(all, keptCurve{t, l.curves[t]})
	}
	return all
}
