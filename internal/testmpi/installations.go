package testmpi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Installation is a launcher with a library that belongs to it.
type Installation struct {
	Name    string
	Launch  string   // the file of mpiexec
	Library string   // the file of the library
	Hydra   bool     // the launcher is that of MPICH, else that of Open MPI
	Args    []string // of the launcher
}

// wheels are what make mpi puts below .mpi of the module.
var wheels = []struct {
	name, folder, library string
	hydra                 bool
}{
	{"mpich", "mpich", "libmpi.so.12", true},
	{"mpich-abi", "mpich", "libmpi_abi.so.1", true},
	{"openmpi", "openmpi", "libmpi.so.40", false},
}

// All returns the installations that are here, and names those that are not with the reason.
func All(t *testing.T) (found []Installation, missing map[string]string) {
	t.Helper()
	missing = map[string]string{}
	root := moduleRoot(t)
	for _, w := range wheels {
		prefix := filepath.Join(root, ".mpi", w.folder)
		if local := filepath.Join(prefix, "local"); isFolder(local) {
			prefix = local // where Debian's pip puts what it installs
		}
		in := Installation{
			Name: w.name, Hydra: w.hydra,
			Launch:  filepath.Join(prefix, "bin", "mpiexec"),
			Library: filepath.Join(prefix, "lib", w.library),
		}
		if why := in.lacks(); why != "" {
			missing[w.name] = why + "; make mpi gets it"
			continue
		}
		found = append(found, in)
	}
	if in, why := system(); why == "" {
		found = append(found, in)
	} else {
		missing[in.Name] = why
	}
	for i := range found {
		found[i].Args = found[i].arguments()
	}
	return found, missing
}

func (in Installation) lacks() string {
	for _, path := range []string{in.Launch, in.Library} {
		if _, err := os.Stat(path); err != nil {
			return "there is no " + filepath.Base(path)
		}
	}
	return ""
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// systemName names the Open MPI that the system has installed.
const systemName = "system"

// system returns the Open MPI that the system has installed.
func system() (in Installation, why string) {
	in = Installation{Name: systemName}
	launch, err := exec.LookPath("mpiexec.openmpi")
	if err != nil {
		return in, "the system has no mpiexec.openmpi"
	}
	in.Launch = launch
	found, _ := filepath.Glob("/usr/lib/*/libmpi.so.40") // the pattern is well formed
	if len(found) == 0 {
		return in, "the system has no libmpi.so.40 below /usr/lib"
	}
	in.Library = found[0]
	return in, ""
}

// arguments returns those with which a launcher starts more ranks than there are cores, by any user.
func (in Installation) arguments() []string {
	if in.Hydra {
		return nil
	}
	return []string{"--allow-run-as-root", "--oversubscribe", "--bind-to", "none"}
}

// local returns the arguments with which a launcher starts ranks on its own host alone without ssh, which Open MPI 4 asks for
// even there.
func (in Installation) local() []string {
	if in.Name != systemName {
		return nil
	}
	return []string{"--mca", "plm", "isolated"}
}

// Alone returns the environment of a process that no launcher starts, for the same reason: MPI_Init of Open MPI 4 starts a daemon then.
func (in Installation) Alone() []string {
	if in.Name != systemName {
		return nil
	}
	return []string{"OMPI_MCA_plm=isolated"}
}

// Prte reports whether the launcher is that of Open MPI 5, which is PRRTE.
func (in Installation) Prte() bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(in.Launch), "prterun"))
	return !in.Hydra && err == nil && in.Name != "system"
}

// moduleRoot returns the folder of go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		if parent := filepath.Dir(folder); parent != folder {
			folder = parent
			continue
		}
		return "" // a test program that was copied to a machine without sources
	}
}

// allVariable set to "all" has Each run a test with all installations, else with one.
const allVariable = "HALOX_TEST_MPI"

// Each runs a test with each installation, or with the first where make test-mpi does not ask for
// all. Those that are not here are skipped, each by name.
func Each(t *testing.T, test func(t *testing.T, in Installation)) {
	t.Helper()
	found, missing := All(t)
	for name, why := range missing {
		t.Run(name, func(t *testing.T) { t.Skip("SKIPPED: ", why) })
	}
	for i, in := range found {
		t.Run(in.Name, func(t *testing.T) {
			if i > 0 && os.Getenv(allVariable) != "all" {
				t.Skip("SKIPPED: make test-mpi tests with every MPI library")
			}
			test(t, in)
		})
	}
}

// Named returns one installation, and skips the test where it is not here.
func Named(t *testing.T, name string) Installation {
	t.Helper()
	found, missing := All(t)
	for _, in := range found {
		if in.Name == name {
			return in
		}
	}
	t.Skip("SKIPPED: ", strings.TrimSpace(name+": "+missing[name]))
	return Installation{}
}
