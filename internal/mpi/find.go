package mpi

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Variable is the environment's variable that names the library.
const Variable = "HALOX_MPI"

// names are the files of each family, the newest interface last: of one installation that
// has two, all processes must take the same.
var names = []struct {
	family Family
	files  []string
}{
	{MPICH, []string{"libmpi.so.12", "libmpich.so.12"}},
	{OpenMPI, []string{"libmpi.so.40"}},
	{Standard, []string{"libmpi_abi.so.1", "libmpi_abi.so.0"}},
}

// candidates returns the libraries to try, in this order: those beside the launcher, then by
// name, so that the loader looks for them; of a launcher that knows one family, only that and
// the standard ABI, which may be of any.
func candidates(launcher Launcher) (paths []string) {
	files := filesOf(launcher.Family)
	for _, folder := range besideLauncher() {
		for _, file := range files {
			path := filepath.Join(folder, file)
			if _, err := os.Stat(path); err == nil && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return append(paths, files...)
}

func filesOf(f Family) (files []string) {
	for _, n := range names {
		if f == Unknown || f == n.family || n.family == Standard {
			files = append(files, n.files...)
		}
	}
	return files
}

// besideLauncher returns the folders where the library of a launcher is installed: of the
// process that started this one, and of the first launcher of the user's PATH.
func besideLauncher() (folders []string) {
	programs := []string{parentProgram()}
	for _, name := range []string{"mpiexec", "mpirun"} {
		if path, err := exec.LookPath(name); err == nil {
			programs = append(programs, path)
		}
	}
	for _, program := range programs {
		if program == "" {
			continue
		}
		for _, path := range []string{program, resolved(program)} {
			root := filepath.Dir(filepath.Dir(path))
			for _, lib := range []string{"lib", "lib64", "lib/release"} {
				if folder := filepath.Join(root, lib); !slices.Contains(folders, folder) {
					folders = append(folders, folder)
				}
			}
		}
	}
	return folders
}

// resolved follows links.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}
