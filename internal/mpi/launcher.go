package mpi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Launcher is the launcher that started this process as one of several.
type Launcher struct {
	Name      string // "mpirun of Open MPI", for the user
	Family    Family // family of the libraries that it supports; Unknown if it supports several
	Size      int    // number of processes; 0 if unknown
	Rank      int    // rank of this process
	LocalRank int    // rank of this process on its host; -1 if unknown
}

// Variable is the environment variable that names the library.
const Variable = "HALOX_MPI"

// Family is a binary interface of MPI.
type Family string

// The families.
const (
	Unknown  Family = ""
	MPICH    Family = "MPICH"        // and Intel MPI, MVAPICH and others of MPICH's ABI
	OpenMPI  Family = "Open MPI"     // versions 4 and 5
	Standard Family = "standard ABI" // of MPI 5, which MPICH 5 and Open MPI 6 have
)

// marks are the variables that identify a launcher, in the order in which they are checked: one that another may start,
// such as mpirun in a Slurm job, comes first. SLURM_NTASKS does not identify a launcher, since batch scripts of Slurm
// have it too.
var marks = []struct {
	name                   string
	family                 Family
	size, rank, localRanks string
}{
	{"mpirun of Open MPI", OpenMPI, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"},
	{"mpiexec of MPICH or Intel MPI", MPICH, "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID"},
	{"srun", Unknown, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"},
	{"a launcher with PMIx", Unknown, "", "PMIX_RANK", ""},
}

// FindLauncher finds the launcher of this process in the environment. ok is false if there is none: then this process
// is the only one. A variable that is not a number is an error, and so is a rank above 0 without the number of
// processes: this process is one of several, and would otherwise run as the only one.
func FindLauncher(environment func(string) (string, bool)) (l Launcher, ok bool, err error) {
	for _, m := range marks {
		if _, has := environment(m.rank); !has {
			continue
		}
		if _, has := environment(m.size); !has && m.size != "" {
			if rank, err := number(environment, m.rank, 0); rank > 0 || err != nil {
				return l, false, cmp.Or(err,
					fmt.Errorf("%s=%d of %s: must be set with %s", m.rank, rank, m.name, m.size))
			}
			continue
		}
		l = Launcher{Name: m.name, Family: m.family}
		if _, step := environment("SLURM_STEP_NUM_TASKS"); step && m.size == "PMI_SIZE" {
			if _, hydra := environment("HYDI_CONTROL_FD"); !hydra {
				l.Name, l.Family = "srun", Unknown // srun sets the variables of PMI for libraries of any family
			}
		}
		for _, v := range []struct {
			to       *int
			name     string
			fallback int
		}{{&l.Size, m.size, 0}, {&l.Rank, m.rank, 0}, {&l.LocalRank, m.localRanks, -1}} {
			if *v.to, err = number(environment, v.name, v.fallback); err != nil {
				return l, false, fmt.Errorf("%s: %w", l.Name, err)
			}
		}
		return l, true, nil
	}
	return Launcher{}, false, nil
}

// number reads a variable.
func number(environment func(string) (string, bool), name string, fallback int) (int, error) {
	text, ok := environment(name)
	if !ok || name == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: must be a number of processes, got %q", name, text)
	}
	return n, nil
}

// Check compares the number of processes of the launcher with that of the library's world. They differ if launcher and
// library do not match: each process is then alone in its world.
func (l Launcher) Check(size int, library string) error {
	started := strconv.Itoa(l.Size)
	switch {
	case l.Size == size || l.Size == 0 && l.Rank < size:
		return nil
	case l.Size == 0:
		started = fmt.Sprintf("at least %d", l.Rank+1)
	}
	remedy := "start it with the launcher that belongs to the library, or name the launcher's library in " + Variable
	if l.Name == "srun" {
		remedy = "try srun --mpi=pmix or --mpi=pmi2 (srun --mpi=list lists the available ones), or " +
			"the library's own mpirun"
	}
	return fmt.Errorf("%s started %s processes, but %s finds %d: they do not match; %s", l.Name,
		started, library, size, remedy)
}

// Alone returns an environment without the variables of launchers: a program that is started with it is a single
// process for MPI, and keeps the variables that a user has set for a library.
func Alone(environment []string) (rest []string) {
	for _, v := range environment {
		name, _, _ := strings.Cut(v, "=")
		if !slices.ContainsFunc(ofLaunchers, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			rest = append(rest, v)
		}
	}
	return rest
}

// ofLaunchers are the prefixes of variables that launchers set. From Open MPI's parameters, only those with which a
// process finds its launcher.
var ofLaunchers = []string{
	"PMI_", "PMIX_", "PMI2_", "PRTE_", "HYDI_", "HYDRA_", "MPI_LOCAL", "SLURM_", "OMPI_COMM_", "OMPI_UNIVERSE",
	"OMPI_APP_", "OMPI_FIRST_", "OMPI_NUM_", "OMPI_COMMAND", "OMPI_ARGV", "OMPI_FILE_", "OMPI_MCA_orte_",
	"OMPI_MCA_ess", "OMPI_MCA_pmix",
}
