package streams

import (
	"errors"
	"time"

	"github.com/halox/halox/internal/cuda"
)

// cudaCapture is a capture of streams of GPUs.
type cudaCapture struct{ queues []*cudaQueue }

func (c *cudaDriver) capture(queues []queue) (capture, error) {
	all := &cudaCapture{}
	for _, q := range queues {
		switch q := q.(type) {
		case *cudaQueue:
			all.queues = append(all.queues, q)
		case *wrappedQueue:
			all.queues = append(all.queues, &q.cudaQueue)
		default:
			return nil, errors.New("the streams are not all of GPUs")
		}
	}
	origin := all.queues[0]
	return all, origin.ctx.StreamBeginCapture(origin.stream)
}

func (c *cudaCapture) stand(i int) queue { return &cudaCaptured{cudaQueue: c.queues[i]} }

// end makes a graph that is ready to be launched, on the device too.
func (c *cudaCapture) end() (graph, error) {
	origin := c.queues[0]
	captured, err := origin.ctx.StreamEndCapture(origin.stream)
	if err != nil {
		return nil, err
	}
	exec, err := origin.ctx.GraphInstantiate(captured)
	err = errors.Join(err, origin.ctx.GraphDestroy(captured))
	if exec == 0 {
		return nil, err
	}
	g := &cudaGraph{origin, exec}
	if err == nil {
		err = origin.ctx.GraphUpload(exec, origin.stream)
	}
	if err != nil {
		return nil, errors.Join(err, g.close(false, 0))
	}
	return g, nil
}

// abandon: the driver complains of streams that the origin did not wait for, and sets
// them free all the same.
func (c *cudaCapture) abandon() {
	origin := c.queues[0]
	if captured, err := origin.ctx.StreamEndCapture(origin.stream); err == nil {
		origin.ctx.GraphDestroy(captured)
	}
}

// cudaCaptured stands for a stream that is being captured.
type cudaCaptured struct {
	*cudaQueue
	afterKernel bool // the last work on the stream is a kernel, and nothing else was waited for
}

// launch lets a kernel begin early only where it comes after a single kernel of its own
// stream: that is what an edge between two nodes of a graph can say. What it says where
// there are copies, or kernels of other devices, among those before is not documented.
func (q *cudaCaptured) launch(k launcher) error {
	launch := q.ctx.LaunchLate
	if q.afterKernel {
		launch = q.ctx.Launch
	}
	q.afterKernel = true
	return launch(k.(*cudaKernel).launch, q.stream)
}

// copy goes to a peer as it goes within a device, which wants peer access: the driver does
// not capture its copies between contexts.
func (q *cudaCaptured) copy(dst, src Span) error {
	q.afterKernel = false
	to, from := dst.Memory, src.Memory
	if to.device == from.device || to.pinned || from.pinned {
		return q.cudaQueue.copy(dst, src)
	}
	if _, _, err := cudaEnds(to, from); err != nil {
		return err
	}
	return q.ctx.MemcpyDtoDAsync(cuda.DevicePtr(dst.Address()), cuda.DevicePtr(src.Address()), uint64(dst.Length), q.stream)
}

func (q *cudaCaptured) copyBox(b box) error {
	q.afterKernel = false
	return q.cudaQueue.copyBox(b)
}

func (q *cudaCaptured) wait(m marker) error {
	q.afterKernel = false
	return q.cudaQueue.wait(m)
}

// cudaGraph is a graph with the stream that it is launched on.
type cudaGraph struct {
	origin *cudaQueue
	exec   cuda.GraphExec
}

func (g *cudaGraph) launch() (at int, err error) {
	return 0, g.origin.ctx.GraphLaunch(g.exec, g.origin.stream)
}

func (g *cudaGraph) close(dead bool, _ time.Duration) error {
	if dead {
		return nil
	}
	return g.origin.ctx.GraphExecDestroy(g.exec)
}
