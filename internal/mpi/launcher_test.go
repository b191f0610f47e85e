package mpi_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/halox/halox/internal/mpi"
	"github.com/halox/halox/internal/test"
)

func TestFindLauncher(t *testing.T) {
	srun := map[string]string{"SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "5", "SLURM_LOCALID": "1"}
	with := func(base map[string]string, more ...string) map[string]string {
		all := map[string]string{}
		maps.Copy(all, base)
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	for _, tc := range []struct {
		name string
		env  map[string]string
		want mpi.Launcher
		ok   bool
	}{
		{"nothing", nil, mpi.Launcher{}, false},
		{"a batch script of Slurm", map[string]string{"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}, mpi.Launcher{}, false},
		{"srun", srun, mpi.Launcher{Name: "srun", Size: 8, Rank: 5, LocalRank: 1}, true},
		{"srun --mpi=pmi2", with(srun, "PMI_SIZE", "8", "PMI_RANK", "5"), mpi.Launcher{Name: "srun", Size: 8, Rank: 5, LocalRank: -1}, true},
		{"mpirun within a job of Slurm", with(srun, "OMPI_COMM_WORLD_SIZE", "3", "OMPI_COMM_WORLD_RANK", "2", "OMPI_COMM_WORLD_LOCAL_RANK", "0", "PMIX_RANK", "2"),
			mpi.Launcher{Name: "mpirun of Open MPI", Family: mpi.OpenMPI, Size: 3, Rank: 2, LocalRank: 0}, true},
		{"hydra", with(nil, "PMI_SIZE", "4", "PMI_RANK", "3", "MPI_LOCALRANKID", "1"),
			mpi.Launcher{Name: "mpiexec of MPICH or Intel MPI", Family: mpi.MPICH, Size: 4, Rank: 3, LocalRank: 1}, true},
		{"PMIx alone", with(nil, "PMIX_RANK", "3"), mpi.Launcher{Name: "a launcher with PMIx", Rank: 3, LocalRank: -1}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok, err := mpi.FindLauncher(func(name string) (string, bool) { v, ok := tc.env[name]; return v, ok })
			if err != nil || ok != tc.ok || got != tc.want {
				t.Errorf("got  %+v, %t, %v\nwant %+v, %t", got, ok, err, tc.want, tc.ok)
			}
		})
	}
	for want, env := range map[string]map[string]string{
		`must be a number of processes, got "many"`: {"OMPI_COMM_WORLD_SIZE": "many", "OMPI_COMM_WORLD_RANK": "0"},
		`PMI_RANK=1 of `:             {"PMI_RANK": "1"}, // of a launcher that does not say of how many
		`OMPI_COMM_WORLD_RANK=2 of `: {"OMPI_COMM_WORLD_RANK": "2", "PMIX_RANK": "2"},
		`SLURM_PROCID=7 of srun`:     {"SLURM_PROCID": "7", "SLURM_NTASKS": "8"},
	} {
		_, _, err := mpi.FindLauncher(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		test.Says(t, err, want)
	}
}

func TestLauncherCheck(t *testing.T) {
	for _, tc := range []struct {
		name     string
		launcher mpi.Launcher
		size     int
		words    []string // of the error; nil for none
	}{
		{"they agree", mpi.Launcher{Name: "srun", Size: 4}, 4, nil},
		{"the launcher does not say", mpi.Launcher{Name: "a launcher with PMIx"}, 4, nil},
		{"rank 1 of no size", mpi.Launcher{Name: "a launcher with PMIx", Rank: 1}, 1, []string{"a launcher with PMIx started at least 2 processes", "lib finds 1"}},
		{"srun without PMIx", mpi.Launcher{Name: "srun", Size: 4}, 1, []string{"srun started 4 processes", "lib finds 1", "srun --mpi=pmix"}},
		{"another launcher", mpi.Launcher{Name: "mpirun of Open MPI", Size: 4}, 1, []string{"mpirun of Open MPI started 4", "HALOX_MPI"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.launcher.Check(tc.size, "lib")
			if (err == nil) != (tc.words == nil) {
				t.Fatal(err)
			}
			for _, w := range tc.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v does not say %q", err, w)
				}
			}
		})
	}
}
