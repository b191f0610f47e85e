// The main program behind point.cu on the CPU: it reads one launch after the other, runs it and
// writes what came of it.
template <typename T> static bool get(T *v, size_t n = 1) { return fread(v, sizeof(T), n, stdin) == n; }
template <typename T> static void put(const T *v, size_t n) { fwrite(v, sizeof(T), n, stdout); }

static void run(void (*kernel)(Sweep), const int *grid, const int *block, const Sweep &s) {
	gridDim = {(unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2]};
	blockDim = {(unsigned)block[0], (unsigned)block[1], (unsigned)block[2]};
	for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
		for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
			for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
				for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
					for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) kernel(s);
}

// An array, aligned as the memory of devices is.
struct alignas(128) Line {
	char bytes[128];
};

int main() {
	struct {
		char kernel[64];
		int grid[4], block[4];
		i64 bytes[ARRAYS], origin[ARRAYS]; // of the point 0, 0, 0 in each array
		i64 totals;
		Sweep arg;
	} c;
	while (get(&c)) {
		std::vector<std::vector<Line>> arrays(ARRAYS);
		std::vector<double> totals(c.totals + 1);
		for (int k = 0; k < ARRAYS; k++) {
			arrays[k].resize(c.bytes[k] / 128 + 1);
			if (!get((char *)arrays[k].data(), c.bytes[k])) return 1;
			c.arg.arrays.address[k] = (unsigned long long)arrays[k].data() + c.origin[k];
		}
		c.arg.totals = totals.data();
		void (*kernel)(Sweep) = 0;
		for (const auto &k : kernels)
			if (!strcmp(k.name, c.kernel)) kernel = k.run;
		if (!kernel) {
			fprintf(stderr, "no kernel %s", c.kernel);
			return 2;
		}
		try {
			run(kernel, c.grid, c.block, c.arg);
		} catch (const char *problem) {
			fprintf(stderr, "%s: %s", c.kernel, problem);
			return 3;
		}
		for (int k = 0; k < ARRAYS; k++) put((char *)arrays[k].data(), c.bytes[k]);
		put(totals.data(), c.totals);
		fflush(stdout);
	}
}
