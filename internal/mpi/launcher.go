package mpi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Launcher is what started this process as one of several.
type Launcher struct {
	Name      string // "mpirun of Open MPI", for the user
	Family    Family // of the libraries that it works with; Unknown where it works with several
	Size      int    // processes that it started; 0 where it does not say
	Rank      int    // of this one
	LocalRank int    // of this one, among those of its host; -1 where it does not say
}

// Variable is the environment's variable that names the library.
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

// marks are the variables by which a launcher is known, in the order in which they are looked
// for: one that was started by another, as mpirun in a job of Slurm, comes before that. A
// batch script of Slurm has SLURM_NTASKS too, and so that says nothing.
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

// FindLauncher looks in the environment for what started this process. ok is false where
// nothing did: then it is alone. A variable that is not a number is an error, and so is a rank above 0 of a launcher
// that has not said of how many: this process is one of several, and would take itself for the only one.
func FindLauncher(environment func(string) (string, bool)) (l Launcher, ok bool, err error) {
	for _, m := range marks {
		if _, has := environment(m.rank); !has {
			continue
		}
		if _, has := environment(m.size); !has && m.size != "" {
			if rank, err := number(environment, m.rank, 0); rank > 0 || err != nil {
				return l, false, cmp.Or(err, fmt.Errorf("%s=%d of %s, but no %s", m.rank, rank, m.name, m.size))
			}
			continue
		}
		l = Launcher{Name: m.name, Family: m.family}
		if _, step := environment("SLURM_STEP_NUM_TASKS"); step && m.size == "PMI_SIZE" {
			if _, hydra := environment("HYDI_CONTROL_FD"); !hydra {
				l.Name, l.Family = "srun", Unknown // srun gives the variables of PMI to libraries of any family
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
		return 0, fmt.Errorf("%s=%q is no number of processes", name, text)
	}
	return n, nil
}

// Check compares what the launcher says with what a library says of its world. They differ
// where launcher and library do not know each other: the library of each process then believes
// that it is alone.
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
		remedy = "try srun --mpi=pmix or --mpi=pmi2 (srun --mpi=list shows which there are), or " +
			"the library's own mpirun"
	}
	return fmt.Errorf("%s started %s processes, but for %s there are %d: they do not know each other; %s", l.Name,
		started, library, size, remedy)
}

// Alone returns an environment without what launchers have set in it: a program that is started with it is alone for
// MPI, and keeps what a user has set for a library.
func Alone(environment []string) (rest []string) {
	for _, v := range environment {
		name, _, _ := strings.Cut(v, "=")
		if !slices.ContainsFunc(ofLaunchers, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			rest = append(rest, v)
		}
	}
	return rest
}

// ofLaunchers are the beginnings of variables that launchers set. Of Open MPI's parameters these are those that tell a
// process how to find its launcher.
var ofLaunchers = []string{
	"PMI_", "PMIX_", "PMI2_", "PRTE_", "HYDI_", "HYDRA_", "MPI_LOCAL", "SLURM_", "OMPI_COMM_", "OMPI_UNIVERSE",
	"OMPI_APP_", "OMPI_FIRST_", "OMPI_NUM_", "OMPI_COMMAND", "OMPI_ARGV", "OMPI_FILE_", "OMPI_MCA_orte_",
	"OMPI_MCA_ess", "OMPI_MCA_pmix",
}
