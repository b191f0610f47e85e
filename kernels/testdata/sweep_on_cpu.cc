// The main program after sweep.cu: it reads one case after the other, runs it and writes
// what came of it.
template <typename T> static bool get(T *v, size_t n = 1) { return fread(v, sizeof(T), n, stdin) == n; }
template <typename T> static void put(const T *v, size_t n) { fwrite(v, sizeof(T), n, stdout); }

static void run(void (*kernel)(Sweep), Index grid, Index block, const Sweep &s) {
	gridDim = grid, blockDim = block;
	for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
		for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
			for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) {
				block_total = NormSum{0, 0, 0, 0};
				for (unsigned y = 0; y < block.y; y++)
					for (unsigned x = 0; x < block.x; x++) threadIdx = {x, y, 0}, kernel(s);
			}
}

int main() {
	struct {
		char kernel[32];
		int grid[3], block[3];
		i64 elements, slots;
		Sweep arg;
	} c;
	while (get(&c)) {
		std::vector<Group<VEC>> src(c.elements / VEC + 1), dst(c.elements / VEC + 1);
		std::vector<NormSum> norms(c.slots + 1);
		if (!get((REAL *)src.data(), c.elements) || !get((REAL *)dst.data(), c.elements)) return 1;
		c.arg.fields.src = (REAL *)src.data(), c.arg.fields.dst = (REAL *)dst.data(), c.arg.norms = norms.data();
		void (*kernel)(Sweep) = 0;
		for (const auto &k : kernels)
			if (!strcmp(k.name, c.kernel)) kernel = k.run;
		if (!kernel) return 2;
		try {
			run(kernel, {(unsigned)c.grid[0], (unsigned)c.grid[1], (unsigned)c.grid[2]},
			    {(unsigned)c.block[0], (unsigned)c.block[1], 1}, c.arg);
		} catch (const char *problem) {
			fprintf(stderr, "%s: %s\n", c.kernel, problem);
			return 3;
		}
		put((REAL *)dst.data(), c.elements);
		put(norms.data(), c.slots);
		fflush(stdout);
	}
}
