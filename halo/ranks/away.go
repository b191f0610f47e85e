package ranks

import "github.com/halox/halox/p2p/mpi"

// mostBody is the most bytes that follow a letter: whole numbers of 16.
const mostBody = (mpi.MaxRecord - letterBytes) / 16 * 16

// post has a letter and its bytes sent to another process, in pieces where they are many. It waits while the mail is full.
func (r *Rank) post(process int, l letter, bytes []byte) {
	m := r.state.remote.mail
	for first := true; first || len(bytes) > 0; first = false {
		if !r.await(func() bool { return !m.IsFull(process) }) {
			r.fail(failure{why: noProxy, expected: commands, came: l.to / int64(r.state.ranks)})
			return
		}
		piece := bytes[:min(len(bytes), mostBody)]
		if err := r.state.remote.post(process, l, piece); err != nil {
			r.state.end(err)
			return
		}
		l.at += l.what.room(int64(len(piece)))
		bytes = bytes[len(piece):]
	}
	r.flushMail()
}

// tellAll has a letter sent to all other processes.
func (r *Rank) tellAll(l letter) {
	if err := r.state.remote.postAll(l); err != nil {
		r.state.end(err)
	}
	r.flushMail()
}

func (r *Rank) flushMail() {
	if err := r.state.remote.mail.Flush(); err != nil {
		r.state.end(err)
	}
}

// fetch waits for bytes of a window of another process, piece by piece.
func (r *Rank) fetch(process int, l letter, to []byte) {
	reply := &r.state.replies[r.device*r.state.ranks+r.local]
	l.from = int64(r.Index(All))
	for len(to) > 0 {
		piece := to[:min(len(to), mostBody)]
		l.n = int64(len(piece))
		reply.expect(piece)
		r.post(process, l, nil)
		came := r.await(reply.isThere)
		reply.expect(nil)
		if !came {
			r.fail(failure{why: noProxy, expected: commands, came: l.to / int64(r.state.ranks)})
			return
		}
		l.at += l.n
		to = to[len(piece):]
	}
}
