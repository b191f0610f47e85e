package p2p

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/halox/halox/internal/cache"
	"github.com/halox/halox/streams"
)

// linkModelVersion changes when the measurement changes.
const linkModelVersion = 2

// keptCurve is a curve in the file of a link model.
type keptCurve struct {
	trip
	Samples Curve `json:"samples"`
}

// store returns the cache entry of the link model of the machine.
func (l *LinkModel) store(folder string) cache.Store[[]keptCurve] {
	key := struct {
		Version int
		Machine Machine
	}{linkModelVersion, l.machine}
	return cache.Remember(cache.At(folder), "links", key, validCurves)
}

// LoadLinkModel reads the link model of the devices that Save stored in the cache folder. If folder is "", it is
// the one in the variable HALOX_CACHE, or else the user's cache folder. LoadLinkModel returns an error if there is
// no file, or if it is damaged, for other devices, or may have been written by another user.
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

// take adds stored curves.
func (l *LinkModel) take(curves []keptCurve) {
	for _, c := range curves {
		l.curves[c.trip] = c.Samples
	}
}

// Save stores the link model in the folder for LoadLinkModel, and creates the folder if needed.
func (l *LinkModel) Save(folder string) error { return l.store(folder).Put(l.kept()) }

// kept returns the curves in the order of the file.
func (l *LinkModel) kept() (all []keptCurve) {
	byText := func(a, b trip) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	for _, t := range slices.SortedFunc(maps.Keys(l.curves), byText) {
		all = append(all, keptCurve{t, l.curves[t]})
	}
	return all
}
