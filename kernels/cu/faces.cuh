// What tiles send to each other after each step, and wait for. See tiles.cu.

// Where threads form several layers, so that most points at faces are no thread's own, a
// list says which of them a thread sends. The first errand of a thread is its only one for
// small tiles.
struct First {
	Mail *out;
	const Mail *in;
	int odd, cell, ghost;
};

// send_listed sends the points at the faces of a tile.
__device__ __forceinline__ void send_listed(const Worker &w, const First &first, unsigned step) {
	if (w.thread < w.t.errands) first.out[step % 2 ? first.odd : 0].put(w.cells[first.cell], step);
#pragma unroll 1
	for (int i = w.thread + w.threads; i < w.t.errands; i += w.threads) {
		const Errand e = w.errands[i];
		const Door &d = w.t.door[e.side];
		d.to_send(e.place, step)->put(w.cells[e.cell], step);
	}
}

// A packet that a thread waits for.
struct Awaited {
	const Mail *from; // null: none
	int ghost;        // the cell that it is for
	int side;         // where it comes in
	Mail got;
};

// look_for looks for the packet of an errand, if there are so many.
__device__ __forceinline__ Awaited look_for(const Worker &w, int errand, unsigned step) {
	Awaited a = {0};
	if (errand >= w.t.errands) return a;
	const Errand e = w.errands[errand];
	const Door &d = w.t.door[e.side];
	a.from = d.to_get(e.place, step);
	a.ghost = e.cell + d.ghost;
	a.side = e.side;
	a.got = a.from->look();
	return a;
}

// take waits for a packet and puts its value where it belongs. It returns false if it does
// not come within the limit, and says so.
__device__ __forceinline__ bool take(const Worker &w, Awaited a, unsigned step) {
	if (!a.from) return true;
	const bool came = a.got.of(step) || wait(w.s.limit, [&] {
		a.got = a.from->look();
		return a.got.of(step);
	});
	if (came) {
		w.cells[a.ghost] = a.got.value();
	} else {
		const int from = w.t.door[a.side].from;
		complain(w.s.failed, from >= 0 ? 1 + from : ITSELF);
	}
	return came;
}

// receive_listed waits for the ghosts of a tile. It returns false if one does not come.
__device__ __forceinline__ bool receive_listed(const Worker &w, const First &first, unsigned step) {
	if (w.thread < w.t.errands) {
		const Mail *const from = first.in + (step % 2 ? first.odd : 0);
		if (!take(w, Awaited{from, first.ghost, w.errands[w.thread].side, from->look()}, step)) return false;
	}
#pragma unroll 1
	for (int i = w.thread + w.threads; i < w.t.errands; i += 2 * w.threads) {
		const Awaited one = look_for(w, i, step), other = look_for(w, i + w.threads, step);
		if (!take(w, one, step) || !take(w, other, step)) return false;
	}
	return true;
}

// each_face_point calls visit(x, y, z) for the points at both faces across an axis, along
// which the caller knows where they lie, one layer of threads sharing them.
template <int AXIS, typename Visit> __device__ __forceinline__ void each_face_point(const Worker &w, Visit visit) {
	const int x = threadIdx.x, y = threadIdx.y, *n = w.t.n;
	if (AXIS != X && x >= n[X] || AXIS != Y && y >= n[Y] || AXIS == Y && DIMS == 2) return;
	if constexpr (AXIS == DEPTH) {
		visit(x, y, 0);
	} else {
#pragma unroll 1
		for (int z = AXIS == X ? x : y; z < n[DEPTH]; z += AXIS == X ? blockDim.x : blockDim.y) visit(AXIS == X ? 0 : x, AXIS == Y ? 0 : y, z);
	}
}

// send_faces sends the points at two faces of a tile.
template <int AXIS> __device__ __forceinline__ void send_faces(const Worker &w, unsigned step) {
	each_face_point<AXIS>(w, [&](int x, int y, int z) {
		const int at = w.place(AXIS, x, y, z), end = w.t.n[AXIS] - 1;
		REAL v[2];
#pragma unroll
		for (int high = LOW; high <= HIGH; high++)
			v[high] = value(w, step, AXIS == X ? high * end : x, AXIS == Y ? high * end : y, AXIS == DEPTH ? high * end : z);
#pragma unroll
		for (int high = LOW; high <= HIGH; high++) {
			const Door &d = w.t.door[2 * AXIS + high];
			if (d.in) d.to_send(at, step)->put(v[high], step);
		}
	});
}

// receive_faces waits for the ghosts at two faces. It returns false if one does not come.
template <int AXIS> __device__ __forceinline__ bool receive_faces(const Worker &w, unsigned step) {
	bool all = true;
	each_face_point<AXIS>(w, [&](int x, int y, int z) {
		if (!all) return;
		const int at = w.place(AXIS, x, y, z);
		Awaited a[2];
#pragma unroll
		for (int high = LOW; high <= HIGH; high++) {
			const Door &d = w.t.door[2 * AXIS + high];
			a[high] = Awaited{d.in ? d.to_get(at, step) : 0, w.ghost<AXIS>(high, x, y, z), 2 * AXIS + high};
			if (d.in) a[high].got = a[high].from->look();
		}
		all = take(w, a[LOW], step) && take(w, a[HIGH], step);
	});
	return all;
}

// send sends the points at the faces of a tile.
__device__ __forceinline__ void send(const Worker &w, const First &first, unsigned step) {
	if (w.listed()) return send_listed(w, first, step);
	send_faces<DEPTH>(w, step);
	send_faces<Y>(w, step);
	send_faces<X>(w, step);
}

// receive waits for the ghosts of a tile. It returns false if one does not come.
__device__ __forceinline__ bool receive(const Worker &w, const First &first, unsigned step) {
	if (w.listed()) return receive_listed(w, first, step);
	return receive_faces<DEPTH>(w, step) && receive_faces<Y>(w, step) && receive_faces<X>(w, step);
}
