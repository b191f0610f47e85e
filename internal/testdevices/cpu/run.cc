// The scheduling of the threads of a launch, see run.h. Each program has a separate copy.
#include "cpu/program.h"

namespace cpu {

__thread Worker *self;

#ifdef __x86_64__

// cpu_switch saves the callee-saved registers on the stack, and restores those of another stack.
extern "C" __attribute__((visibility("hidden"))) void cpu_switch(void **save, void *load);
asm(R"(
	.text
	.type cpu_switch, @function
cpu_switch:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
	.size cpu_switch, .-cpu_switch
)");

static void go(Context &from, Context &to) { cpu_switch(&from.stack, to.stack); }

static void begin(Context &c, char *stack, size_t size, void (*run)()) {
	void **top = (void **)(stack + size) - 2; // as after a call: 8 bytes beyond a multiple of 16
	*top = (void *)run;
	c.stack = top - 6; // registers, with arbitrary values
}

#else

static void go(Context &from, Context &to) { swapcontext(&from.at, &to.at); }

static void begin(Context &c, char *stack, size_t size, void (*run)()) {
	getcontext(&c.at);
	c.at.uc_stack.ss_sp = stack, c.at.uc_stack.ss_size = size;
	makecontext(&c.at, run, 0);
}

#endif

static long long now(clockid_t clock) {
	timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

long long nanoseconds() { return now(CLOCK_MONOTONIC); }
long long processor_nanoseconds() { return now(CLOCK_PROCESS_CPUTIME_ID); }

// pause returns the processor to the scheduler of the block.
void pause() { go(self->current->at, self->scheduler); }

// yield lets other threads of the block run, before a thread reads memory again.
void yield() {
	self->polled = true;
	pause();
}

// fail ends the launch.
static void fail(const Fiber *f, const char *why) {
	fprintf(stderr, "block %u, %u, %u, thread %u: %s\n", self->block_idx.x, self->block_idx.y, self->block_idx.z,
	        f->thread, why);
	__atomic_store_n(&self->launch->trapped, 1, __ATOMIC_RELAXED);
}

void trap(const char *why) { fail(self->current, why), pause(); }

static void open_barrier() {
	Worker *w = self;
	w->result[w->turn & 1] = w->all;
	w->all = true, w->arrived = 0, w->turn++, w->progress = true;
	if (!w->parked) return;
	*w->last = w->parked;
	for (Fiber *f = w->parked; f; f = f->next) f->parked = false, w->last = &f->next;
	w->parked = 0;
}

// barrier waits for all threads of the block that have not ended, and returns whether all passed true.
bool barrier(bool v) {
	const unsigned turn = self->turn;
	self->all = self->all && v;
	if (++self->arrived == self->alive) open_barrier();
	else self->current->parked = true, pause();
	return self->result[turn & 1];
}

// run_thread runs a thread of the block from its beginning to its end.
static void run_thread(unsigned n) {
	Worker *w = self;
	const Dim3 &block = w->launch->block;
	w->current->thread = n;
	w->thread_idx = {n % block.x, n / block.x % block.y, n / block.x / block.y};
	w->launch->kernel(w->launch->argument);
	Warp &warp = w->warp[n / 32];
	w->progress = true;
	if (--w->alive > 0 && w->arrived == w->alive) open_barrier();
	warp.live &= ~(1u << n % 32);
	if (warp.live && warp.arrived == warp.live) open_shuffle(warp);
}

__attribute__((noinline)) static void run_threads() {
	self->current->waits = true;
	while (self->next < self->threads) {
		const unsigned n = self->next++;
		run_thread(self->backwards ? self->threads - 1 - n : n);
	}
	self->current->waits = false;
}

// A fiber may run blocks on different operating system threads in turn. Hence nothing here may keep the address of
// self.
static void run_fiber() {
	for (;;) {
		run_threads();
		pause();
	}
}

static Fiber *new_fiber() {
	Fiber *f = (Fiber *)calloc(1, sizeof(Fiber));
	f->stack = (char *)mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (f->stack == MAP_FAILED) abort();
	f->fresh = true;
	return f;
}

// resume runs a fiber until it waits or has no more threads to run.
static void resume(Fiber *f) {
	Worker *w = self;
	const Dim3 &block = w->launch->block;
	w->current = f;
	if (f->waits) w->thread_idx = {f->thread % block.x, f->thread / block.x % block.y, f->thread / block.x / block.y};
	if (f->fresh) f->fresh = false, begin(f->at, f->stack, STACK, run_fiber);
	go(w->scheduler, f->at);
	if (f->parked) f->next = w->parked, w->parked = f;
	else if (f->waits) f->next = 0, *w->last = f, w->last = &f->next;
	else f->next = w->idle, w->idle = f;
}

static Fiber *take(Fiber *&list) {
	Fiber *f = list;
	list = f->next;
	return f;
}

static void *help(void *launch);

// stalled is called when all threads of a block have polled memory without success for some time: another block may
// have to run.
static void stalled(Launch *l) {
	if (__atomic_load_n(&l->next, __ATOMIC_RELAXED) >= l->blocks) return;
	pthread_mutex_lock(&l->mutex);
	if (l->helper_count < 1024 && !pthread_create(&l->helpers[l->helper_count], 0, help, l)) l->helper_count++;
	pthread_mutex_unlock(&l->mutex);
}

// rest yields the processor to other operating system threads after a round in which no thread of a block made
// progress. After a long wait it sleeps, so that the threads that it waits for can run, which may be in other
// processes.
static void rest(int rounds) {
	const timespec nap = {0, 200000};
	if (rounds < 1000) sched_yield();
	else nanosleep(&nap, 0);
}

static void run_block(unsigned long long n) {
	Worker *w = self;
	Launch *l = w->launch;
	enum { PATIENCE = 64 };
	w->block_idx = {(unsigned)(n % l->grid.x), (unsigned)(n / l->grid.x % l->grid.y),
	                (unsigned)(n / l->grid.x / l->grid.y)};
	w->threads = w->alive = l->block.x * l->block.y * l->block.z;
	w->backwards = (n + l->number) & 1;
	w->next = w->arrived = w->turn = 0, w->all = true;
	w->first = w->parked = 0, w->last = &w->first;
	memset(w->warp, 0, sizeof w->warp);
	for (unsigned t = 0; t < w->threads; t++) w->warp[t / 32].live |= 1u << t % 32;
	memset(w->shared, 0xcb, l->shared);
	memset(w->shared + l->shared, GUARD_BYTE, GUARD);
	int idle_rounds = 0;
	Fiber *round = 0; // the fiber with which the current round began
	while (!__atomic_load_n(&l->trapped, __ATOMIC_RELAXED)) {
		if (w->next < w->threads) {
			if (!w->idle) w->idle = new_fiber(), w->idle->next = 0;
			resume(take(w->idle));
			continue;
		}
		if (!w->first) {
			if (w->parked) fail(w->parked, "all threads of the block wait for each other");
			break;
		}
		if (w->first == round || !round) {
			if (round && !w->progress) {
				if (!w->polled) fail(w->first, "all threads of the block wait for each other");
				rest(++idle_rounds);
				if (idle_rounds % PATIENCE == 0) stalled(l);
			} else {
				idle_rounds = 0;
			}
			round = w->first, w->progress = w->polled = false;
		}
		Fiber *f = take(w->first);
		if (!w->first) w->last = &w->first;
		resume(f);
		if (f == round && (!f->waits || f->parked)) round = 0, w->progress = true;
	}
	while (w->first || w->parked) { // after a trap
		Fiber *f = take(w->first ? w->first : w->parked);
		f->fresh = true, f->waits = f->parked = false, f->next = w->idle, w->idle = f;
	}
	for (unsigned i = 0; i < GUARD; i++)
		if (w->shared[l->shared + i] != GUARD_BYTE) {
			fprintf(stderr, "block %llu stored byte %u of %u bytes of shared memory\n", n, l->shared + i, l->shared);
			__atomic_store_n(&l->trapped, 1, __ATOMIC_RELAXED);
			break;
		}
}

static Worker *workers; // idle workers, with their stacks
static pthread_mutex_t workers_mutex = PTHREAD_MUTEX_INITIALIZER;

static void work(Launch *l) {
	setpriority(PRIO_PROCESS, 0, 10); // lower priority for this thread: threads that blocks wait for run first
	pthread_mutex_lock(&workers_mutex);
	Worker *w = workers;
	if (w) workers = w->pool;
	pthread_mutex_unlock(&workers_mutex);
	if (!w) w = (Worker *)calloc(1, sizeof(Worker));
	if (w->shared_size < l->shared + GUARD || !w->shared) {
		free(w->shared);
		w->shared_size = l->shared + GUARD;
		w->shared = (char *)aligned_alloc(128, (w->shared_size + 127) / 128 * 128);
	}
	Worker *const before = self;
	self = w, w->launch = l;
	for (;;) {
		const unsigned long long n = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED);
		if (n >= l->blocks) break;
		run_block(n);
	}
	self = before;
	pthread_mutex_lock(&workers_mutex);
	w->pool = workers, workers = w;
	pthread_mutex_unlock(&workers_mutex);
}

static void *help(void *launch) {
	work((Launch *)launch);
	return 0;
}

// run performs a launch, and returns whether it trapped.
int run(Kernel kernel, const void *argument, const unsigned *grid, const unsigned *block, unsigned shared) {
	static unsigned launches;
	Launch l = {};
	l.kernel = kernel, l.argument = argument, l.shared = shared;
	l.grid = {grid[0], grid[1], grid[2]}, l.block = {block[0], block[1], block[2]};
	l.number = __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
	l.blocks = (unsigned long long)grid[0] * grid[1] * grid[2];
	pthread_mutex_init(&l.mutex, 0);
	work(&l);
	for (int i = 0;; i++) {
		pthread_mutex_lock(&l.mutex);
		const bool more = i < l.helper_count;
		pthread_mutex_unlock(&l.mutex);
		if (!more) break;
		pthread_join(l.helpers[i], 0);
	}
	return l.trapped;
}

} // namespace cpu
