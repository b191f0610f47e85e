// How the blocks of a launch share the planes of all tiles of a pass, and how warps signal each other.
#pragma once

#include "pass.cuh"

// The number of lanes of a warp that arrive once the warp has stored what others wait for. One is enough, because
// __syncwarp orders the stores of the other lanes before the arrival. With option EVERY_LANE all lanes arrive, for
// tools that do not model this ordering, such as compute-sanitizer's racecheck.
#ifdef EVERY_LANE
enum { ARRIVALS = 32 };
#else
enum { ARRIVALS = 1 };
#endif

// A run of planes of a tile.
struct Run {
	i64 place;          // end of this run among the planes of all tiles, by weight
	int tile_x, tile_y; // position of the tile
	int z0, z1;         // planes that are stored; z1 is 0 after the last run
};

// next_run finds the block's next run, with at most the given number of planes. All blocks get the same cost, see Pass.
// Tiles are ordered row by row; those of the first and last row and column lie at the sides of the box.
__device__ __forceinline__ void next_run(Run &p, const Pass &a, i64 planes, int tiles_x, int tiles_y, i64 most) {
	const int between = max(0, tiles_x - 2), rows_between = max(0, tiles_y - 2);
	const i64 at_side = a.weight;
	// Blocks with few planes usually start in one tile. Charging more than a quarter of a block's planes would leave
	// some blocks without work.
	const i64 start = min((i64)a.start, planes * tiles_x * tiles_y / gridDim.x / 4), length = planes + start;
	const i64 row_at_side = tiles_x * at_side, row = (tiles_x - between) * at_side + (i64)between * 16;
	const i64 total = ((tiles_y - rows_between) * row_at_side + rows_between * row) * length;
	const i64 stop = total * (blockIdx.x + 1) / gridDim.x;
	i64 place = max(p.place, total * blockIdx.x / gridDim.x);
	for (p.z0 = p.z1 = 0; p.z0 == p.z1 && place < stop;) {
		i64 at = place / length; // in the weights of all tiles
		i64 weight = at_side;
		p.tile_y = 0;
		if (at >= row_at_side) {
			p.tile_y = (int)min((at - row_at_side) / row, (i64)rows_between) + 1;
			at -= row_at_side + (p.tile_y - 1) * row;
		}
		i64 begin = place / length - at; // in the weights of this row
		if (p.tile_y == 0 || p.tile_y == tiles_y - 1 || at < at_side) {
			p.tile_x = (int)(at / at_side);
			begin += p.tile_x * at_side;
		} else {
			p.tile_x = 1 + (int)min((at - at_side) / 16, (i64)between);
			begin += at_side + (i64)(p.tile_x - 1) * 16;
			if (p.tile_x <= between) weight = 16;
		}
		begin *= length;
		const auto plane = [&](i64 there) { return min(max((there - begin) / weight - start, (i64)0), planes); };
		const i64 z0 = plane(place), z1 = min(plane(stop), z0 + most);
		p.z0 = (int)z0, p.z1 = (int)z1;
		place = begin + (z1 == z0 + most ? z1 + start : length) * weight;
	}
	if (p.z0 == p.z1) p.z0 = p.z1 = 0;
	p.place = place;
}

// next_run_in_step finds the block's next run such that blocks read nearby data at the same time, so that the L2 cache
// holds data shared by tiles. While there is a tile for each block, blocks take whole adjacent tiles. The remaining
// tiles get equal numbers of blocks, which take stacked runs of equal length. Blocks left over share the rest of these
// tiles. The last argument counts the planes that a run reads but does not store.
__device__ __forceinline__ void next_run_in_step(Run &p, int planes, int tiles_x, int tiles_y, int more) {
	const i64 blocks = gridDim.x, block = blockIdx.x, whole = (i64)tiles_x * tiles_y / blocks,
	          last = (i64)tiles_x * tiles_y % blocks;
	i64 tile = whole * blocks;
	p.z0 = p.z1 = 0;
	if (p.place < whole) {
		tile = p.place * blocks + block, p.z1 = planes;
		p.place++;
	} else if (last > 0) {
		const i64 length = max((i64)1, min(last * (planes + more) / blocks, (i64)planes)),
		          stretches = min(blocks / last, planes / length), left = blocks - stretches * last,
		          end = left > 0 ? length * stretches : planes;
		if (block < stretches * last) {
			const i64 stretch = block / last;
			tile += block % last;
			if (p.place == whole)
				p.z0 = (int)(end * stretch / stretches), p.z1 = (int)(end * (stretch + 1) / stretches);
			p.place = whole + 1;
		} else {
			const i64 above = planes - end, total = last * above, number = block - stretches * last,
			          at = max(p.place - whole, total * number / left), stop = total * (number + 1) / left;
			if (at < stop) {
				tile += at / above;
				p.z0 = (int)(end + at % above), p.z1 = (int)min((i64)planes, p.z0 + stop - at);
				p.place = whole + at + p.z1 - p.z0;
			}
		}
	}
	p.tile_x = (int)(tile % tiles_x), p.tile_y = (int)(tile / tiles_x);
}
