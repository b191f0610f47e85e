package mpi

// SetMost sets how many bytes one call is given.
func (l *Library) SetMost(bytes int) { l.most = bytes }

// StartAsUser starts MPI as a program does that lends a communicator, and returns MPI_COMM_WORLD.
func (l *Library) StartAsUser() (Handle, error) { return l.handles.world, l.initThread() }

// EndAsUser ends MPI as such a program does.
func (l *Library) EndAsUser() error { return l.finalize() }
