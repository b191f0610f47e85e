package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/results"
)

// withNetwork prints the table of a bench of links, and writes what it says of the network to a file, if one is named.
func withNetwork(file *string) benchOutput {
	check := func(l *launched) error {
		if *file == "" {
			return nil
		}
		if l.processes.IsAlone() || slices.Max(l.processes.Nodes) == 0 {
			return errors.New("--network: there is none between processes of one host: start some on several")
		}
		if err := possible(*file); err != nil && l.speaks() {
			return fmt.Errorf("--network: %w", err)
		}
		return nil
	}
	return benchOutput{check: check, table: func(w io.Writer, r *results.Record) error {
		if err := writeTable(w, r); err != nil || *file == "" {
			return err
		}
		text, err := networkOf(r)
		if err != nil {
			return fmt.Errorf("--network: %w", err)
		}
		if err := files.Write(*file, []byte(text)); err != nil {
			return fmt.Errorf("--network: %w", err)
		}
		_, err = fmt.Fprintln(w, "wrote", *file)
		return err
	}}
}

// networkOf returns the file for halox plan --network of the links between hosts that were measured, by the worst of them: the
// time of the smallest message to and fro, the rate of the largest one way, or that of one where both go at once and each is
// slower then, by MPI alone, and what halox adds to the first. In an exchange messages go both ways at once.
func networkOf(r *results.Record) (string, error) {
	smallest, largest := math.Inf(1), 0.
	for _, row := range r.Rows {
		if bytes, ok := row.Float("bytes"); ok && row.Text("link") == "network" {
			smallest, largest = min(smallest, bytes), max(largest, bytes)
		}
	}
	latency, message, rate := 0., 0., math.Inf(1)
	for _, row := range r.Rows {
		bytes, _ := row.Float("bytes")
		if row.Text("link") != "network" {
			continue
		}
		switch took := row.Median(results.Time); {
		case row.Text("mode") == "ping-pong" && bytes == smallest && row.Text("path") == "wire":
			latency = max(latency, took)
		case row.Text("mode") == "ping-pong" && bytes == smallest:
			message = max(message, took)
		case row.Text("mode") == "one-way" && bytes == largest && row.Text("path") == "wire":
			rate = min(rate, row.Median(results.Rate))
		case row.Text("mode") == "both-ways" && bytes == largest && row.Text("path") == "wire":
			rate = min(rate, row.Median(results.Rate)/2)
		}
	}
	if latency == 0 || math.IsInf(rate, 1) {
		return "", errors.New("no messages between hosts were measured one way: start processes on several, with --modes one-way among others")
	}
	return fmt.Sprintf("# %s bytes to and fro, %s bytes one way\nlatency_us: %.4g\nbandwidth_gb_s: %.4g\nadapters: 1\nmessage_us: %.4g\n",
		fmt.Sprint(smallest), fmt.Sprintf("%.0f", largest), latency, rate, max(0, message-latency)), nil
}
