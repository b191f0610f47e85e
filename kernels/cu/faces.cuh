// What tiles send to each other after each step, and wait for. See tiles.cu.
#pragma once

#include "tile.cuh"

// The first errand of a thread in the list is its only one for small tiles.
struct First {
	Mail *out;
	const Mail *in;
	int odd, cell, ghost;
};

// send_listed sends the points at the faces of a tile.
__device__ __forceinline__ void send_listed(const Worker &w, const First &first, unsigned step) {
	if (w.thread < w.t.errands) first.out[step % 2 ? first.odd : 0].put(w.cells[first.cell], step);
#pragma unroll 1
	for (int i = w.thread + THREADS; i < w.t.errands; i += THREADS) {
		const Errand e = w.errands[i];
		const Door &d = w.t.door[e.side];
		d.to_send(e.place, step)->put(w.cells[e.cell], step);
	}
}

// A packet that a thread waits for.
struct Awaited {
	const Mail *from; // null: none
	int side, ghost;  // where it comes in, and the cell that it is for
	Mail got;

	__device__ static Awaited look(const Mail *from, int side, int ghost) {
		return Awaited{from, side, ghost, from->look()};
	}
};

// come waits for a packet. It returns false if it does not come within the limit, and says so.
__device__ __forceinline__ bool come(const Worker &w, Awaited &a, unsigned step) {
	const bool came = a.got.of(step) || wait(w.s.limit, [&] {
		                  a.got = a.from->look();
		                  return a.got.of(step);
	                  });
	if (!came) {
		const int from = w.t.door[a.side].other;
		complain(w.s.failed, from >= 0 ? 1 + from : ITSELF);
	}
	return came;
}

// look_for looks for the packet of an errand, if there are so many.
__device__ __forceinline__ Awaited look_for(const Worker &w, int errand, unsigned step) {
	if (errand >= w.t.errands) return Awaited{0};
	const Errand e = w.errands[errand];
	const Door &d = w.t.door[e.side];
	return Awaited::look(d.to_get(e.place, step), e.side, e.cell + d.ghost);
}

// take waits for the packet of an errand.
__device__ __forceinline__ bool take(const Worker &w, Awaited a, unsigned step) {
	if (!a.from) return true;
	const bool came = come(w, a, step);
	if (came) w.cells[a.ghost] = a.got.value();
	return came;
}

// receive_listed waits for the ghosts of a tile. It returns false if one does not come.
__device__ __forceinline__ bool receive_listed(const Worker &w, const First &first, unsigned step) {
	if (w.thread < w.t.errands) {
		if (!take(w, Awaited::look(first.in + (step % 2 ? first.odd : 0), w.errands[w.thread].side, first.ghost), step))
			return false;
	}
#pragma unroll 1
	for (int i = w.thread + THREADS; i < w.t.errands; i += 2 * THREADS) {
		const Awaited one = look_for(w, i, step), other = look_for(w, i + THREADS, step);
		if (!take(w, one, step) || !take(w, other, step)) return false;
	}
	return true;
}

// each_face_point calls visit(p) for points at a face across an axis, of which the thread has p and
// those in the next rows: beside it, or behind it at faces across Y.
template <int AXIS, typename Visit> __device__ __forceinline__ void each_face_point(const Worker &w, Visit visit) {
	const int *n = w.t.n;
	if (AXIS == DEPTH) {
		if (w.layer() == 0 && w.has(0)) visit(FacePoint{w.x, w.y, 0});
	} else if (AXIS == X) {
		if (w.y >= n[Y]) return;
#pragma unroll 1
		for (int z = w.x + w.layer() * WIDTH; z < n[DEPTH]; z += LAYERS * WIDTH) visit(FacePoint{0, w.y, z});
	} else if (DIMS == 3) {
		if (w.x >= n[X]) return;
#pragma unroll 1
		for (int z = w.y + w.layer() * HEIGHT; z < n[DEPTH]; z += LAYERS * HEIGHT) visit(FacePoint{w.x, 0, z});
	}
}

// in_row returns the point of a thread in a row, counted from its first, and is_there whether
// the tile has it.
template <int AXIS> __device__ __forceinline__ FacePoint in_row(FacePoint p, int row) {
	return AXIS == Y ? FacePoint{p.x, p.y, p.z + row} : FacePoint{p.x, p.y + row, p.z};
}
template <int AXIS> __device__ __forceinline__ bool is_there(const Worker &w, FacePoint p) {
	return AXIS == Y ? p.z < w.t.n[DEPTH] : p.y < w.t.n[Y];
}

// In so many rows a thread sends, or receives, points at once. For Blackwell the compiler finds
// no registers for more.
enum { AT_ONCE = ARCH < 1000 ? ROWS : 1 };

// each_value calls use(high, p, value) for the points at both faces across an axis.
template <int AXIS, typename Use>
__device__ __forceinline__ void each_value(const Worker &w, const Columns &mine, Use use) {
	each_face_point<AXIS>(w, [&](FacePoint first) {
#pragma unroll
		for (int from = 0; from < ROWS; from += AT_ONCE) {
			REAL v[AT_ONCE][2];
#pragma unroll
			for (int i = 0; i < AT_ONCE; i++) {
				const FacePoint p = in_row<AXIS>(first, from + i);
				if (!is_there<AXIS>(w, p)) break;
				v[i][LOW] = w.cells[w.face<AXIS>(LOW, p)];
				v[i][HIGH] =
				    REST && AXIS == DEPTH ? mine.rest[from + i][REST ? REST - 1 : 0] : w.cells[w.face<AXIS>(HIGH, p)];
			}
#pragma unroll
			for (int i = 0; i < AT_ONCE; i++) {
				const FacePoint p = in_row<AXIS>(first, from + i);
				if (!is_there<AXIS>(w, p)) break;
				use(LOW, p, v[i][LOW]);
				use(HIGH, p, v[i][HIGH]);
			}
		}
	});
}

// store_ghost puts a ghost where it belongs.
template <int AXIS>
__device__ __forceinline__ void store_ghost(const Worker &w, Columns &mine, int high, FacePoint p, int row, REAL v) {
	if (REST && AXIS == DEPTH) mine.ghost[high][row] = v;
	else w.cells[w.ghost<AXIS>(high, p)] = v;
}

// fill_ghosts loads the ghosts at two faces from a field.
template <int AXIS> __device__ __forceinline__ void fill_ghosts(const Worker &w, Columns &mine, REAL *from) {
	each_face_point<AXIS>(w, [&](FacePoint first) {
#pragma unroll
		for (int row = 0; row < ROWS; row++) {
			const FacePoint p = in_row<AXIS>(first, row);
			if (!is_there<AXIS>(w, p)) break;
#pragma unroll
			for (int high = LOW; high <= HIGH; high++) {
				const int at = high ? w.t.n[AXIS] : -1;
				store_ghost<AXIS>(
				    w, mine, high, p, row,
				    *w.in(from, w.s.strides, AXIS == X ? at : p.x, AXIS == Y ? at : p.y, AXIS == DEPTH ? at : p.z));
			}
		}
	});
}

// hand_over stores the points at two faces, where they are sides of this GPU, into ghosts, for
// whoever works with the fields after the launch.
template <int AXIS> __device__ __forceinline__ void hand_over(const Worker &w, const Columns &mine, unsigned step) {
	each_value<AXIS>(w, mine, [&](int high, FacePoint p, REAL v) {
		const Side &side = w.s.side[AXIS][high];
		const int at = high ? w.t.n[AXIS] - 1 : 0;
		if (w.outer(AXIS, high) && side.out)
			*w.in(side.ghost[step % 2], side.strides, AXIS == X ? at : p.x, AXIS == Y ? at : p.y,
			      AXIS == DEPTH ? at : p.z) = v;
	});
}

// send_faces sends the points at two faces of a tile.
template <int AXIS> __device__ __forceinline__ void send_faces(const Worker &w, const Columns &mine, unsigned step) {
	each_value<AXIS>(w, mine, [&](int high, FacePoint p, REAL v) {
		const Door &d = w.t.door[2 * AXIS + high];
		if (d.in) d.to_send(w.place(AXIS, p.x, p.y, p.z), step)->put(v, step);
	});
}

// receive_faces waits for the ghosts at two faces. It returns false if one does not come.
template <int AXIS> __device__ __forceinline__ bool receive_faces(const Worker &w, Columns &mine, unsigned step) {
	bool all = true;
	each_face_point<AXIS>(w, [&](FacePoint first) {
#pragma unroll
		for (int from = 0; from < ROWS; from += AT_ONCE) {
			Awaited a[AT_ONCE][2];
#pragma unroll
			for (int row = 0; row < AT_ONCE; row++) {
				const FacePoint p = in_row<AXIS>(first, from + row);
#pragma unroll
				for (int high = LOW; high <= HIGH; high++) {
					const Door &d = w.t.door[2 * AXIS + high];
					a[row][high].from = 0;
					if (d.in && is_there<AXIS>(w, p))
						a[row][high] = Awaited::look(d.to_get(w.place(AXIS, p.x, p.y, p.z), step), 2 * AXIS + high, 0);
				}
			}
#pragma unroll
			for (int row = 0; row < AT_ONCE; row++) {
#pragma unroll
				for (int high = LOW; high <= HIGH; high++) {
					if (a[row][high].from) {
						all = all && come(w, a[row][high], step);
						store_ghost<AXIS>(w, mine, high, in_row<AXIS>(first, from + row), from + row,
						                  a[row][high].got.value());
					}
				}
			}
		}
	});
	return all;
}

// send sends the points at the faces of a tile.
__device__ __forceinline__ void send(const Worker &w, const Columns &mine, const First &first, unsigned step) {
	if (LISTED) return send_listed(w, first, step);
	send_faces<DEPTH>(w, mine, step);
	send_faces<Y>(w, mine, step);
	send_faces<X>(w, mine, step);
}

// receive waits for the ghosts of a tile. It returns false if one does not come.
__device__ __forceinline__ bool receive(const Worker &w, Columns &mine, const First &first, unsigned step) {
	if (LISTED) return receive_listed(w, first, step);
	return receive_faces<DEPTH>(w, mine, step) && receive_faces<Y>(w, mine, step) && receive_faces<X>(w, mine, step);
}
