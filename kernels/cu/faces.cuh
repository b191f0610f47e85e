// The packets that tiles send each other after each step. See tiles.cu.
#pragma once

#include "tile.cuh"

// The first listed item of a thread, in registers. Small tiles have no others.
struct OwnItem {
	Packet *out;
	const Packet *in;
	int odd, cell, ghost;
};

// own_item returns the first item of a thread.
__device__ __forceinline__ OwnItem own_item(const TileThread &w) {
	if (w.thread >= w.t.items) return OwnItem{};
	const FaceItem e = w.items[w.thread];
	const FaceChannel &d = w.t.channel[e.side];
	return OwnItem{d.out + e.place, d.in + e.place, d.odd, e.cell, e.cell + d.ghost};
}

// send_listed sends the points at the faces of a tile that are in the list.
__device__ __forceinline__ void send_listed(const TileThread &w, const OwnItem &first, unsigned step) {
	if (w.thread < w.t.items) first.out[step % 2 ? first.odd : 0].send(w.cells[first.cell], step);
#pragma unroll 1
	for (int i = w.thread + THREADS; i < w.t.items; i += THREADS) {
		const FaceItem e = w.items[i];
		const FaceChannel &d = w.t.channel[e.side];
		d.to_send(e.place, step)->send(w.cells[e.cell], step);
	}
}

// A packet that a thread waits for.
struct Awaited {
	const Packet *from; // null: none
	int side, ghost;    // side of the tile; cell to store it in
	Packet got;

	__device__ static Awaited load(const Packet *from, int side, int ghost) {
		return Awaited{from, side, ghost, from->load()};
	}
};

// wait_for waits for a packet. After the limit it reports the sender, and returns false.
__device__ __forceinline__ bool wait_for(const TileThread &w, Awaited &a, unsigned step) {
	const bool came = a.got.of(step) || wait(w.s.limit, w.s.failed, [&] {
		                  a.got = a.from->load();
		                  return a.got.of(step);
	                  });
	if (!came) {
		const int from = w.t.channel[a.side].other;
		report_timeout(w.s.failed, from >= 0 ? 1 + from : THIS_DEVICE);
	}
	return came;
}

// load_item loads the packet of an item, if the list has the item.
__device__ __forceinline__ Awaited load_item(const TileThread &w, int item, unsigned step) {
	if (item >= w.t.items) return Awaited{0};
	const FaceItem e = w.items[item];
	const FaceChannel &d = w.t.channel[e.side];
	return Awaited::load(d.to_receive(e.place, step), e.side, e.cell + d.ghost);
}

// receive_item waits for the packet of an item.
__device__ __forceinline__ bool receive_item(const TileThread &w, Awaited a, unsigned step) {
	if (!a.from) return true;
	const bool came = wait_for(w, a, step);
	if (came) w.cells[a.ghost] = a.got.value();
	return came;
}

// receive_listed waits for the ghosts of a tile that are in the list. It returns false after a timeout.
__device__ __forceinline__ bool receive_listed(const TileThread &w, const OwnItem &first, unsigned step) {
	if (w.thread < w.t.items) {
		if (!receive_item(w, Awaited::load(first.in + (step % 2 ? first.odd : 0), w.items[w.thread].side, first.ghost),
		                  step))
			return false;
	}
#pragma unroll 1
	for (int i = w.thread + THREADS; i < w.t.items; i += 2 * THREADS) {
		const Awaited one = load_item(w, i, step), other = load_item(w, i + THREADS, step);
		if (!receive_item(w, one, step) || !receive_item(w, other, step)) return false;
	}
	return true;
}

// each_face_point calls visit(p) for points at a face across an axis. The thread has p and the points of its next rows
// or, at faces across Y, of its next layers.
template <int AXIS, typename Visit> __device__ __forceinline__ void each_face_point(const TileThread &w, Visit visit) {
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

// in_row returns the point of a thread in one of its rows. is_there returns whether the point is in the tile.
template <int AXIS> __device__ __forceinline__ FacePoint in_row(FacePoint p, int row) {
	return AXIS == Y ? FacePoint{p.x, p.y, p.z + row} : FacePoint{p.x, p.y + row, p.z};
}
template <int AXIS> __device__ __forceinline__ bool is_there(const TileThread &w, FacePoint p) {
	return AXIS == Y ? p.z < w.t.n[DEPTH] : p.y < w.t.n[Y];
}

// Rows in which a thread sends or receives points at the same time. Blackwell lacks the registers for more.
enum { BATCH = ARCH < 1000 ? ROWS : 1 };

// each_value calls use(high, p, value) for the points at both faces across an axis.
template <int AXIS, typename Use>
__device__ __forceinline__ void each_value(const TileThread &w, const Columns &mine, Use use) {
	each_face_point<AXIS>(w, [&](FacePoint first) {
#pragma unroll
		for (int from = 0; from < ROWS; from += BATCH) {
			REAL v[BATCH][2];
#pragma unroll
			for (int i = 0; i < BATCH; i++) {
				const FacePoint p = in_row<AXIS>(first, from + i);
				if (!is_there<AXIS>(w, p)) break;
				v[i][LOW] = w.cells[w.face<AXIS>(LOW, p)];
				v[i][HIGH] = REG_LAYERS && AXIS == DEPTH ? mine.reg[from + i][REG_LAYERS ? REG_LAYERS - 1 : 0]
				                                         : w.cells[w.face<AXIS>(HIGH, p)];
			}
#pragma unroll
			for (int i = 0; i < BATCH; i++) {
				const FacePoint p = in_row<AXIS>(first, from + i);
				if (!is_there<AXIS>(w, p)) break;
				use(LOW, p, v[i][LOW]);
				use(HIGH, p, v[i][HIGH]);
			}
		}
	});
}

// store_ghost stores a ghost into its register or its cell.
template <int AXIS>
__device__ __forceinline__ void store_ghost(const TileThread &w, Columns &mine, int high, FacePoint p, int row,
                                            REAL v) {
	if (REG_LAYERS && AXIS == DEPTH) mine.ghost[high][row] = v;
	else w.cells[w.ghost<AXIS>(high, p)] = v;
}

// load_ghosts loads the ghosts at two faces from a field.
template <int AXIS> __device__ __forceinline__ void load_ghosts(const TileThread &w, Columns &mine, REAL *from) {
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

// store_ghosts stores the points at those of two faces that are sides of the box of this GPU into ghosts of a field,
// for later launches.
template <int AXIS>
__device__ __forceinline__ void store_ghosts(const TileThread &w, const Columns &mine, unsigned step) {
	each_value<AXIS>(w, mine, [&](int high, FacePoint p, REAL v) {
		const Side &side = w.s.side[AXIS][high];
		const int at = high ? w.t.n[AXIS] - 1 : 0;
		if (w.outer(AXIS, high) && side.out)
			*w.in(side.ghost[step % 2], side.strides, AXIS == X ? at : p.x, AXIS == Y ? at : p.y,
			      AXIS == DEPTH ? at : p.z) = v;
	});
}

// send_faces sends the points at two faces of a tile.
template <int AXIS>
__device__ __forceinline__ void send_faces(const TileThread &w, const Columns &mine, unsigned step) {
	each_value<AXIS>(w, mine, [&](int high, FacePoint p, REAL v) {
		const FaceChannel &d = w.t.channel[2 * AXIS + high];
		if (d.in) d.to_send(w.place(AXIS, p.x, p.y, p.z), step)->send(v, step);
	});
}

// receive_faces waits for the ghosts at two faces. It returns false after a timeout.
template <int AXIS> __device__ __forceinline__ bool receive_faces(const TileThread &w, Columns &mine, unsigned step) {
	bool all = true;
	each_face_point<AXIS>(w, [&](FacePoint first) {
#pragma unroll
		for (int from = 0; from < ROWS; from += BATCH) {
			Awaited a[BATCH][2];
#pragma unroll
			for (int row = 0; row < BATCH; row++) {
				const FacePoint p = in_row<AXIS>(first, from + row);
#pragma unroll
				for (int high = LOW; high <= HIGH; high++) {
					const FaceChannel &d = w.t.channel[2 * AXIS + high];
					a[row][high].from = 0;
					if (d.in && is_there<AXIS>(w, p))
						a[row][high] =
						    Awaited::load(d.to_receive(w.place(AXIS, p.x, p.y, p.z), step), 2 * AXIS + high, 0);
				}
			}
#pragma unroll
			for (int row = 0; row < BATCH; row++) {
#pragma unroll
				for (int high = LOW; high <= HIGH; high++) {
					if (a[row][high].from) {
						all = all && wait_for(w, a[row][high], step);
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
__device__ __forceinline__ void send(const TileThread &w, const Columns &mine, const OwnItem &first, unsigned step) {
	if (LISTED) return send_listed(w, first, step);
	send_faces<DEPTH>(w, mine, step);
	send_faces<Y>(w, mine, step);
	send_faces<X>(w, mine, step);
}

// receive waits for the ghosts of a tile. It returns false after a timeout.
__device__ __forceinline__ bool receive(const TileThread &w, Columns &mine, const OwnItem &first, unsigned step) {
	if (LISTED) return receive_listed(w, first, step);
	return receive_faces<DEPTH>(w, mine, step) && receive_faces<Y>(w, mine, step) && receive_faces<X>(w, mine, step);
}
