package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/halox/halox/p2p/mpi"
)

// gather returns what each process knows, by rank; where this one is alone, what it knows. All processes call it.
func gather[T any](processes *mpi.Processes, what string, mine T) ([]T, error) {
	if processes.IsAlone() {
		return []T{mine}, nil
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, processes.Fail(err)
	}
	texts, err := processes.Gather(context.Background(), what, text)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(texts))
	for rank, text := range texts {
		if err := json.Unmarshal(text, &all[rank]); err != nil {
			return nil, fmt.Errorf("%s, of %s: %w", what, processes.Name(rank), err)
		}
	}
	return all, nil
}
