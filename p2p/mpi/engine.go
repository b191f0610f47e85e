package mpi

import "errors"

// newCarrier makes what carries a message, at the end that sends or at the other one.
func (m *message) newCarrier(sends bool) (carrier, error) {
	p, err := newPieces(m)
	switch {
	case err != nil:
		return nil, err
	case sends:
		return outPieces{p}, nil
	}
	return inPieces{p}, nil
}

// start makes the carrier and runs it.
func (m *message) start(sends bool) error {
	c, err := m.newCarrier(sends)
	if err != nil {
		return errors.Join(err, m.resources.Close())
	}
	m.run(c)
	return nil
}
