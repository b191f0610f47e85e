package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/halox/halox/p2p/mpi"
)

const probeName = "probe-mpi"

// probeCommand is the command line that tries MPI with device memory, none where nobody knows where halox lies.
func probeCommand() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, probeName}
}

// newProbeCommand is what halox starts itself with, see mpi.Options.Probe. Users have no need of it.
func newProbeCommand() *cobra.Command {
	return &cobra.Command{
		Use: probeName, Short: "Give MPI device memory, which may crash", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if mpi.TakeProbe(cmd.ErrOrStderr()) != 0 {
				return errors.New("device memory is not for MPI here")
			}
			return nil
		},
	}
}
