package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/solve"
	"github.com/halox/halox/streams"
)

func newCheckpointCommand() *cobra.Command {
	cmd := command.NewGroup("checkpoint", "List, verify and describe checkpoints",
		onCheckpoints("list", "List the checkpoints in a folder, the newest first",
			"List compares the sizes of files with the manifest, but not their checksums.", listCheckpoints),
		onCheckpoints("verify", "Compare all bytes of checkpoints with their checksums",
			"Verify ends with exit code 5 unless all checkpoints are complete.", verifyCheckpoints),
		onCheckpoints("info", "Describe the newest complete checkpoint in a folder",
			"Info compares all bytes of the checkpoint with their checksums, and the hash of the grid with\n"+
				"the config. It also prints why newer checkpoints are rejected.",
			describeCheckpoint))
	cmd.Example = "  halox checkpoint list checkpoints\n  halox checkpoint verify checkpoints --json"
	return cmd
}

// onCheckpoints returns a command that takes a folder of checkpoints, or one of them.
func onCheckpoints(name, short, long string, run func(cmd *cobra.Command, folder string) error) *cobra.Command {
	return &cobra.Command{
		Use: name + " FOLDER", Short: short,
		Long:    short + ".\n\n" + long + "\nFOLDER may also be a checkpoint, such as checkpoints/step-000000010000.",
		Example: "  halox checkpoint " + name + " checkpoints",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("FOLDER: must be one folder, got %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd, args[0]) },
	}
}

// listed is what the commands print of a checkpoint.
type listed struct {
	Path    string    `json:"path"`
	Step    int64     `json:"step"`
	Run     string    `json:"run"`
	Written time.Time `json:"written"`
	Bytes   int64     `json:"bytes"`
	Whole   bool      `json:"whole"`
	Reason  string    `json:"reason,omitempty"` // why it is not whole
}

func newListed(e checkpoint.Entry) listed {
	l := listed{Path: e.Path, Step: e.Step, Run: e.Run, Written: e.Written, Bytes: e.Bytes, Whole: e.Err == nil}
	if e.Err != nil {
		l.Reason = e.Err.Error()
	}
	return l
}

func listCheckpoints(cmd *cobra.Command, folder string) error {
	found, err := checkpoint.List(folder)
	if err != nil {
		return err
	}
	all := []listed{}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "step\tsize\twritten\trun\tstate")
	for _, e := range found {
		l, state := newListed(e), "whole"
		if e.Err != nil {
			state = l.Reason
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", l.Step, streams.Size(l.Bytes), l.Written.Format(time.RFC3339), l.Run,
			state)
		all = append(all, l)
	}
	return errors.Join(w.Flush(), command.Of(cmd.Context()).PrintJSON(all))
}

func verifyCheckpoints(cmd *cobra.Command, folder string) error {
	found, err := checkpoint.List(folder)
	if err != nil {
		return err
	}
	call, all := command.Of(cmd.Context()), []listed{}
	out := call.Verdicts(cmd.OutOrStdout())
	failed := 0
	for _, e := range found {
		if e.Err == nil {
			c := checkpoint.Checkpoint{Path: e.Path, Manifest: e.Manifest}
			e.Err = c.Verify(cmd.Context())
		}
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		if e.Err == nil {
			fmt.Fprintf(out, "ok    %s: %d files, %s\n", e.Path, len(e.Files), streams.Size(e.Bytes))
		} else {
			fmt.Fprintf(out, "FAIL  %v\n", e.Err)
			failed++
		}
		all = append(all, newListed(e))
	}
	if err := call.PrintJSON(all); err != nil {
		return err
	}
	if failed > 0 || len(found) == 0 {
		return command.As(command.CheckFailed,
			fmt.Errorf("%s: %d of %d checkpoints are whole", folder, len(found)-failed, len(found)))
	}
	return nil
}

func describeCheckpoint(cmd *cobra.Command, folder string) error {
	call := command.Of(cmd.Context())
	c, rejected, err := checkpoint.Find(cmd.Context(), nil, folder)
	for _, reason := range rejected {
		call.Warn(reason)
	}
	if err != nil {
		return err
	}
	arrays, err := c.Arrays()
	var attributes json.RawMessage
	if err = errors.Join(err, c.Attributes(&attributes)); err != nil {
		return err
	}
	var saved solve.Grid
	if err := c.Attributes(&saved); err == nil { // otherwise of another program
		if err := saved.Check(c.Path); err != nil {
			return command.As(command.CheckFailed, err)
		}
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s\nstep %d of run %s, written %s\n", c.Path, c.Step, c.Run, c.Written.Format(time.RFC3339))
	if saved.GridHash != "" {
		fmt.Fprintf(out, "hash of the grid %s\n", saved.GridHash)
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "array\tvalues\telement\tcomponents\tcompressed\tsize")
	for _, a := range arrays {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%t\t%s\n", a.Name, domain.Times(a.Size), a.Element, a.Components, a.Zstd,
			streams.Size(a.Bytes))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, attributes, "", "  "); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nattributes\n%s\n", &text)
	return call.PrintJSON(map[string]any{"path": c.Path, "step": c.Step, "run": c.Run, "written": c.Written,
		"arrays": arrays, "attributes": attributes})
}
