// The main program after step.cu: it reads memory and launches, runs these one after the
// other, and writes what the memory then holds, for one case after the other.
template <typename T> static bool get(T *v, size_t n = 1) { return fread(v, sizeof(T), n, stdin) == n; }

// Memory: that of all fields, then the counts of each end. Addresses of host devices all count
// from 0.
static std::vector<char *> regions;

template <typename T> static void move(T *&p, int region) { p = (T *)(regions[region] + (long long)p); }

static void run(void (*kernel)(Step), Index grid, Index block, const Step &s) {
	gridDim = grid, blockDim = block;
	for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
		for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
			for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
				for (unsigned y = 0; y < block.y; y++)
					for (unsigned x = 0; x < block.x; x++) threadIdx = {x, y, 0}, kernel(s);
}

// once reads a case, runs it and writes what came of it; false at the end of all.
static bool once() {
	i64 count, launches;
	if (!get(&count)) return false;
	if (!get(&launches)) throw "half a case";
	std::vector<i64> bytes(count);
	if (!get(bytes.data(), count)) return 1;
	for (i64 n : bytes) {
		regions.push_back((char *)aligned_alloc(256, (n + 255) / 256 * 256));
		if (!get(regions.back(), n)) throw "half a region";
	}
	for (i64 i = 0; i < launches; i++) {
		struct {
			char kernel[32];
			int grid[3], block[3];
			i64 end, others[32]; // who launches, and its neighbours
			i64 bytes;
		} c;
		Step s;
		if (!get(&c) || c.bytes != sizeof s || !get(&s)) throw "a Step of another size";
		move(s.arrived, 1 + c.end);
		for (int f = 0; f < 2; f++) {
			move(s.field[f], 0);
			for (Target &t : s.target) move(t.ghost[f], 0);
		}
		for (int n = 0; n < s.degree; n++) move(s.neighbour[n].my_count, 1 + c.end), move(s.neighbour[n].its_count, 1 + c.others[n]);
		void (*kernel)(Step) = 0;
		for (const auto &k : kernels)
			if (!strcmp(k.name, c.kernel)) kernel = k.run;
		if (!kernel) throw "no such kernel";
		run(kernel, {(unsigned)c.grid[0], (unsigned)c.grid[1], (unsigned)c.grid[2]}, {(unsigned)c.block[0], (unsigned)c.block[1], 1}, s);
	}
	for (i64 n = 0; n < count; n++) fwrite(regions[n], 1, bytes[n], stdout);
	fflush(stdout);
	for (char *r : regions) free(r);
	regions.clear();
	return true;
}

int main() {
	try {
		while (once());
	} catch (const char *problem) {
		fprintf(stderr, "%s\n", problem);
		return 1;
	}
}
