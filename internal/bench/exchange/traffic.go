package exchange

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/results"
)

// traffic is what an exchange sends, in bytes.
type traffic struct {
	message int64 // the largest, of those of several directions what goes in one
	device  int64 // all that the busiest device sends to others
}

// describe begins the row of a combination with what it sends.
func describe(c combination, plan *halo.Plan) (row results.Row, sent traffic) {
	out := map[int]int64{}
	for _, m := range plan.Messages {
		if m.From != m.To { // a device has one subdomain
			sent.message = max(sent.message, inOneDirection(m))
			out[m.From] += m.Bytes
			sent.device = max(sent.device, out[m.From])
		}
	}
	return c.labels().
		Label("messages", len(plan.Messages)).Label("message_bytes", sent.message).Label("device_bytes", sent.device), sent
}

// inOneDirection returns the most that a message carries in one direction.
func inOneDirection(m halo.Message) (most int64) {
	sums := map[domain.Direction]int64{}
	for _, p := range m.Parts {
		sums[p.Dir] += p.Bytes
		most = max(most, sums[p.Dir])
	}
	return most
}

// compare adds the rate out of the busiest device beside that of plain copies of the
// largest message.
func (t traffic) compare(row results.Row, best, plain results.Sample) results.Row {
	copyRate := plain.Under(float64(t.message) / 1e3)
	rate := best.Under(float64(t.device) / 1e3)
	return row.Value(results.Rate, rate).Value(results.CopyTime, plain).Value(results.CopyRate, copyRate).
		Value(results.Share, rate.Scale(1/copyRate.Median))
}
