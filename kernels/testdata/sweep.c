/*
 * One sweep of the 5-point or 7-point stencil as a C programmer would write it:
 * the yardstick of BenchmarkSweep. Built with -DFLOAT=double or -DFLOAT=float.
 *
 *   sweep dims n sweeps
 *
 * sweeps a grid of n^2 or n^3 points and prints the time of the fastest sweep
 * in nanoseconds.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ALIGN = 128, PER_LINE = ALIGN / sizeof(FLOAT) };

typedef void sweep(FLOAT *restrict dst, const FLOAT *restrict src, long n, long pitch,
                   FLOAT alpha, FLOAT beta);

static void sweep2(FLOAT *restrict dst, const FLOAT *restrict src, long n, long pitch,
                   FLOAT alpha, FLOAT beta)
{
	for (long y = 1; y <= n; y++) {
		for (long x = 1; x <= n; x++) {
			const long i = y * pitch + x;

			dst[i] = alpha * src[i] +
				 beta * (src[i + 1] + src[i + pitch] +
					 src[i - 1] + src[i - pitch]);
		}
	}
}

static void sweep3(FLOAT *restrict dst, const FLOAT *restrict src, long n, long pitch,
                   FLOAT alpha, FLOAT beta)
{
	const long plane = pitch * (n + 2);

	for (long z = 1; z <= n; z++) {
		for (long y = 1; y <= n; y++) {
			for (long x = 1; x <= n; x++) {
				const long i = z * plane + y * pitch + x;

				dst[i] = alpha * src[i] +
					 beta * (src[i + 1] + src[i + pitch] + src[i + plane] +
						 src[i - 1] + src[i - pitch] + src[i - plane]);
			}
		}
	}
}

/* A grid whose first owned point of each row is aligned. */
static FLOAT *grid(long points)
{
	FLOAT *g = aligned_alloc(ALIGN, (points + PER_LINE) * sizeof(FLOAT));

	if (!g) {
		fputs("sweep: out of memory\n", stderr);
		exit(1);
	}
	g += PER_LINE - 1;
	for (long i = 0; i < points; i++)
		g[i] = (FLOAT)(i % 17);
	return g;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * t.tv_sec + t.tv_nsec;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fputs("usage: sweep dims n sweeps\n", stderr);
		return 2;
	}
	const long dims = atol(argv[1]), n = atol(argv[2]), sweeps = atol(argv[3]);
	sweep *const step = dims == 2 ? sweep2 : sweep3;
	const long pitch = (n + 2 + PER_LINE - 1) / PER_LINE * PER_LINE;
	const long points = pitch * (n + 2) * (dims == 2 ? 1 : n + 2);
	FLOAT *src = grid(points), *dst = grid(points);
	double fastest = 1e300;

	if (n < 1 || sweeps < 1)
		return 2;
	for (long s = -2; s < sweeps; s++) { /* two to warm up */
		const double start = now();

		step(dst, src, n, pitch, (FLOAT)0.1, (FLOAT)0.15);
		const double took = now() - start;
		FLOAT *swept = dst;

		if (s >= 0 && took < fastest)
			fastest = took;
		dst = src;
		src = swept;
	}
	/* The point keeps the compiler from dropping the sweeps. */
	fprintf(stderr, "%g\n", (double)src[points / 2]);
	printf("%.0f\n", fastest);
	return 0;
}
