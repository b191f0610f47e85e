// Packets by which thread blocks, of one GPU or of several, tell each other values.
#pragma once

#include "device.cuh"

// A value and its step. Each word of 8 bytes holds the step and 4 bytes of the value, so
// that words may come one by one.
template <int BYTES> struct Packet;

template <> struct Packet<4> {
	unsigned long long word;

	__device__ void put(float v, unsigned step) {
		const unsigned long long w = (unsigned long long)step << 32 | __float_as_uint(v);
		store_word(&word, w);
	}
	__device__ Packet look() const {
		Packet p;
		p.word = peek(&word);
		return p;
	}
	__device__ bool of(unsigned step) const { return word >> 32 == step; }
	__device__ float value() const { return __uint_as_float((unsigned)word); }
};

template <> struct alignas(16) Packet<8> {
	unsigned long long word[2];

	__device__ void put(double v, unsigned step) {
		const unsigned long long high = (unsigned long long)step << 32;
		const unsigned long long a = high | (unsigned)__double2loint(v), b = high | (unsigned)__double2hiint(v);
		store_words(word, a, b);
	}
	__device__ Packet look() const {
		Packet p;
		load_words(word, p.word);
		return p;
	}
	__device__ bool of(unsigned step) const { return word[0] >> 32 == step && word[1] >> 32 == step; }
	__device__ double value() const { return __hiloint2double((int)(unsigned)word[1], (int)(unsigned)word[0]); }
};
