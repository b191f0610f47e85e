package packing

import "github.com/halox/halox/streams"

// Job packs or unpacks one message at one place, any number of times.
type Job struct {
	resources streams.Resources
	Engine    Engine // never Auto
	Why       string // why Auto took it: what was measured or predicted
	queue     func(s *streams.Stream) error
	most      int // operations that it queues, where they are more than two
}

// operations returns how many operations the job queues on a stream at most.
func (j *Job) operations() int { return max(2, j.most) }

// Queue queues the work on a stream of the packer's device.
func (j *Job) Queue(s *streams.Stream) error {
	if j.queue == nil {
		return nil
	}
	return j.queue(s)
}

// launch makes a job of one kernel.
func (j *Job) launch(k *streams.Kernel, err error) error {
	if err != nil {
		return err
	}
	j.resources.Add(k)
	j.queue = func(s *streams.Stream) error { return s.Launch(k) }
	return nil
}

// Close frees what it holds. Closing twice is no error.
func (j *Job) Close() error { return j.resources.Close() }
