// Package checkpoint writes fields to disk while steps continue, and reads them on any decomposition and number of
// devices and processes, with the same bits. A [Writer] writes, [Find] finds the newest whole checkpoint.
//
// A checkpoint is a folder FOLDER/step-000000010000, a group in the format Zarr version 3 (see internal/zarr), which
// other programs read too:
//
//	manifest.json    format version, run, step, and all other files with their sizes and checksums
//	zarr.json        attributes of the caller
//	u/zarr.json      one array per field, in global indices, or per component of a struct of arrays (e.0, e.1)
//	u/c/0/0/0        shards of up to 128 MiB, whatever the decomposition is
//
// Components of a point are consecutive along x. Values that are not numbers are stored as bytes. Ghosts are not
// stored.
//
// Each shard is written by one process, which collects the points of others. A checkpoint is written to a temporary
// folder, its files are synced, the manifest is written last, and the folder is renamed: readers see it whole or not at
// all, whenever a process is killed. The next Writer removes temporary folders that are left. A file that is locked
// while a Writer is open keeps other writers out, where the file system has such locks.
//
// Errors of files, such as a full disk, do not end a run: older checkpoints stay, and the next one is tried again.
// Errors of devices and of other processes do.
package checkpoint
