package halo

import "github.com/halox/halox/streams"

// channel holds the streams, the events and the launches of one subdomain's part in an
// exchange by Start and Wait. The events mark what the channels of neighbours wait for.
type channel struct {
	sendStream, receiveStream *streams.Stream
	ready, sent, received     *streams.Event
	out, in                   end        // of all its messages
	to, from                  []*channel // that it has messages for, and from: itself too
	waits                     *streams.WorkerGroup
}

// send queues what the channel sends, once all that it goes to are ready.
func (l *channel) send() error {
	if err := l.sendStream.Wait(l.ready); err != nil {
		return err
	}
	for _, to := range l.to {
		if err := l.sendStream.Wait(to.ready); err != nil {
			return err
		}
	}
	if err := l.out.send(l.waits, l.sendStream); err != nil {
		return err
	}
	return l.sendStream.Record(l.sent)
}

// receive queues what the channel receives, once all that it comes from have sent it. Another
// process knows nothing of what is ready here, and so this end waits for that.
func (l *channel) receive() error {
	if len(l.in.receivers) > 0 {
		if err := l.receiveStream.Wait(l.ready); err != nil {
			return err
		}
	}
	for _, from := range l.from {
		if err := l.receiveStream.Wait(from.sent); err != nil {
			return err
		}
	}
	if err := l.in.receive(l.waits, l.receiveStream); err != nil {
		return err
	}
	if err := l.receiveStream.Wait(l.sent); err != nil {
		return err
	}
	return l.receiveStream.Record(l.received)
}
