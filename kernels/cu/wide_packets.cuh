// The packets that tiles send each other after each group of steps. See wide_tiles.cu.
#pragma once

#include "wide_tile.cuh"

// send sends the points of a tile that other tiles have as ghosts.
__device__ __forceinline__ void send(const TileThread &w, const REAL *cells, unsigned exchange) {
	const i64 odd = exchange % 2 ? w.s.odd : 0;
#pragma unroll 2
	for (int i = w.thread; i < w.t.sent; i += THREADS) {
		const Item e = w.items[i];
		(w.t.inbox[e.to] + (odd + e.place))->send(cells[e.cell], exchange);
	}
}

// wait_for waits for a packet, which may already be in got. After the limit it reports the sender of an item, and
// returns false.
__device__ __forceinline__ bool wait_for(const TileThread &w, const Packet *from, Packet &got, int item,
                                         unsigned exchange) {
	const bool came = got.of(exchange) || wait(w.s.limit, w.s.failed, [&] {
		                  got = from->load();
		                  return got.of(exchange);
	                  });
	if (!came) {
		const unsigned sender = w.s.senders[w.t.items + item];
		report_timeout(w.s.failed, sender == HERE ? THIS_DEVICE : 1 + sender);
	}
	return came;
}

// receive waits for the ghosts of a tile. It returns false after a timeout.
__device__ __forceinline__ bool receive(const TileThread &w, REAL *cells, unsigned exchange) {
	enum { AT_ONCE = 2 }; // packets in flight per thread
	const Packet *const in = w.t.inbox[HERE] + w.t.packets + (exchange % 2 ? w.s.odd : 0);
#pragma unroll 1
	for (int i = w.thread; i < w.t.received; i += AT_ONCE * THREADS) {
		Packet got[AT_ONCE];
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++)
			if (i + k * THREADS < w.t.received) got[k] = in[i + k * THREADS].load();
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++) {
			const int item = i + k * THREADS;
			if (item >= w.t.received) break;
			if (!wait_for(w, in + item, got[k], item, exchange)) return false;
			cells[w.items[item].ghost] = got[k].value();
		}
	}
	return true;
}
