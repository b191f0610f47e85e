// What a launch of tiles is told of checks: norms of steps within it, see checks.cuh.
#pragma once

#include "norms.cuh"
#include "packet.cuh"

// Which steps of a launch have checks, see checks.cuh, and what ends it there.
struct Watch {
	i64 every;    // steps between two checks; 0: there are none
	i64 until;    // steps of the launch before the first
	i64 before;   // checks of the launches before
	i64 squares;  // whether the limit is one of the sum of squares
	i64 finite;   // whether norms that are not finite end the launch
	double limit; // of the change: one that is not larger ends the launch
};

enum { CHECK_SLOTS = 32, NORM_WORDS = sizeof(NormSum) / 8 };

typedef PacketOf<8> CheckPacket; // a vote, or a word of the norms of a tile

// Where checks leave what.
struct Checks {
	CheckPacket *tiles;        // CHECK_SLOTS of NORM_WORDS a tile
	const CheckPacket *votes;  // CHECK_SLOTS of one a GPU
	CheckPacket *const *voted; // of each GPU: its votes
	i64 rank, ranks;           // this GPU among all
	NormSum *host;             // by check of the launch
	i64 *report;               // see tell
};
