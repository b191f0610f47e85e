// Packets in which thread blocks, on one or several GPUs, send each other values.
#pragma once

#include "device.cuh"

// A value and its step. Each word of 8 bytes holds the step and 4 bytes of the value, since words may arrive
// separately: once all words hold the step, a reader has the value, without a flag or a fence.
template <int BYTES> struct PacketOf;

template <> struct PacketOf<4> {
	u64 word;

	__device__ void send(float v, unsigned step) { store_relaxed_sys(&word, (u64)step << 32 | __float_as_uint(v)); }
	__device__ PacketOf load() const { return {load_relaxed_sys(&word)}; }
	__device__ bool of(unsigned step) const { return word >> 32 == step; }
	__device__ float value() const { return __uint_as_float((unsigned)word); }
};

template <> struct alignas(16) PacketOf<8> {
	u64 word[2];

	__device__ void send(double v, unsigned step) {
		const u64 high = (u64)step << 32;
		store_relaxed_sys(word, high | (unsigned)__double2loint(v), high | (unsigned)__double2hiint(v));
	}
	__device__ PacketOf load() const {
		PacketOf p;
		load_relaxed_sys(word, p.word[0], p.word[1]);
		return p;
	}
	__device__ bool of(unsigned step) const { return word[0] >> 32 == step && word[1] >> 32 == step; }
	__device__ double value() const { return __hiloint2double((int)(unsigned)word[1], (int)(unsigned)word[0]); }
};
