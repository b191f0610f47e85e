// The checks of a launch of tiles: norms of steps within it, see checks.cuh.
#pragma once

#include "norms.cuh"
#include "packet.cuh"

// Which steps of a launch have checks, see checks.cuh, and the conditions that end the launch there.
struct Watch {
	i64 every;    // steps between checks; 0: no checks
	i64 until;    // steps of the launch before the first check
	i64 before;   // checks of earlier launches
	i64 squares;  // whether the limit applies to the sum of squares
	i64 finite;   // whether non-finite norms end the launch
	double limit; // a change that does not exceed it ends the launch
};

enum { CHECK_SLOTS = 32, NORM_WORDS = sizeof(NormSum) / 8 };

typedef PacketOf<8> CheckPacket; // a vote, or a word of the norms of a tile

// The memory for checks.
struct Checks {
	CheckPacket *tiles;        // CHECK_SLOTS of NORM_WORDS per tile
	const CheckPacket *votes;  // CHECK_SLOTS, each with one per GPU
	CheckPacket *const *voted; // of each GPU: its votes
	i64 rank, ranks;           // this GPU's index, and the number of GPUs
	NormSum *host;             // by check of the launch
	i64 *report;               // see tell
};
