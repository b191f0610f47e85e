package forecast

import "math"

// Model says how long a step takes. A device sweeps all its points in the larger of two times: the least that a step
// takes, and that of its points, of which each takes Near where all fit into the caches; of more points than Cached those
// beyond take Point. Where it has neighbours, Together is added, and of its exchange what lasts longer
// than the share Hidden of the sweep:
//
//	step = sweep + Together + max(0, exchange - Hidden sweep)
//	exchange = messages Message + max(bytes within the host / Within, network)
//	network = Latency + messages to other hosts times the network's Message + bytes that leave the host / Bandwidth of its adapters
//
// Times are in seconds.
type Model struct {
	Least    float64 // a step without points
	Near     float64 // a point of a subdomain that fits into the caches
	Cached   float64 // points that do
	Point    float64 // one beyond these
	Together float64 // devices keep in step
	Message  float64 // beside its bytes, of a device
	Within   float64 // bytes/s from device to device of a host
	Hidden   float64 // share of a sweep behind which an exchange hides, 0 to 1
}

// sharpness is how quickly Least and the time of all points take over from each other: the power of their norm.
const sharpness = 4

// sweep returns the time that a device sweeps.
func (m Model) sweep(points int64) float64 {
	n := float64(points)
	all := m.Near*min(n, m.Cached) + m.Point*max(0, n-m.Cached)
	return math.Pow(math.Pow(m.Least, sharpness)+math.Pow(all, sharpness), 1./sharpness)
}

// step returns the time of a step of the busiest device.
func (m Model) step(l load, n Network) float64 {
	sweep := m.sweep(l.points)
	if l.messages == 0 {
		return sweep
	}
	return sweep + m.Together + max(0, m.exchange(l, n)-m.Hidden*sweep)
}

func (m Model) exchange(l load, n Network) float64 {
	within, network := float64(l.within)/m.Within, 0.
	if l.abroad > 0 {
		network = n.Latency.Seconds() + float64(l.abroad)*n.Message.Seconds() + float64(l.fromHost)/(n.Bandwidth*float64(n.Adapters))
	}
	return float64(l.messages)*m.Message + max(within, network)
}
