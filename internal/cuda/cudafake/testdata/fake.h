// A CUDA driver without a GPU, for tests of what calls the driver. Device
// memory is host memory, work on a stream is done at once, or remembered where
// the stream is being captured, and kernels are only written down. It is stricter
// than a real driver: what a call is given must belong to the calling thread's
// current context.

#ifndef FAKE_H
#define FAKE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#ifndef FAKE_DEVICES
#define FAKE_DEVICES 2
#endif

#ifndef FAKE_MULTIPROCESSORS
#define FAKE_MULTIPROCESSORS 4
#endif

// The shared memory that a block may have.
#ifndef FAKE_SHARED
#define FAKE_SHARED (227 << 10)
#endif

// The memory of a device that is free at first, of 6 GiB.
#ifndef FAKE_MEMORY
#define FAKE_MEMORY (5L << 30)
#endif

enum { MAX_DEVICES = 8 };

// The greatest pitch of a copy. A real driver's is 2 GiB, for which tests would
// need as much memory.
enum { MAX_PITCH = 1 << 20 };

enum {
	SUCCESS = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	INVALID_IMAGE = 200,
	INVALID_CONTEXT = 201,
	PEER_UNSUPPORTED = 217,
	INVALID_HANDLE = 400,
	ILLEGAL_STATE = 401,
	MAP_FAILURE = 205,
	NOT_FOUND = 500,
	NOT_READY = 600,
	PEER_ALREADY_ENABLED = 704,
	ILLEGAL_ADDRESS = 700,
	LAUNCH_FAILED = 719,
	COOPERATIVE_TOO_LARGE = 720,
	PEER_NOT_ENABLED = 705,
	CAPTURE_UNSUPPORTED = 900,
	CAPTURE_INVALIDATED = 901,
	CAPTURE_MERGE = 902,
	CAPTURE_UNMATCHED = 903,
	CAPTURE_UNJOINED = 904,
	CAPTURE_ISOLATION = 905,
	CAPTURED_EVENT = 907,
};

// How many streams a capture may have.
enum { MAX_STREAMS = 128 };

enum { MAX_ARG = 4096 };

typedef uint64_t addr;

enum kind { MEMORY, HOST, STREAM, EVENT, MODULE, FUNCTION, GRAPH, EXEC, KINDS };

// past says of each stream of a capture how much of its work came before.
typedef struct {
	unsigned of[MAX_STREAMS];
} past;

// object is anything that a context owns. Handles point at it; memory is found
// by its address.
typedef struct object {
	enum kind kind;
	int device;
	char *bytes;          // memory, a module's image, or a graph's nodes
	size_t size;          // of bytes; for a function, of its argument
	char *map;            // what bytes lie in, if they are mapped
	size_t mapped;        // its bytes
	int file;             // what is mapped, if other processes can open it, else 0
	int opened;           // it belongs to another process
	unsigned flags;       // as given when it was made
	int priority;         // a stream's
	double recorded;      // an event's time in ms, 0 before
	char name[64];        // a function's
	struct object *module; // a function's
	struct queue *queue;  // a stream's, if streams work by themselves
	struct mark *mark;    // an event's, then
	int (*run)(const unsigned *grid, const unsigned *block, unsigned shared, const void *arg); // a function's, or NULL
	void *library;        // a module's
	long capture;         // a stream's that it is in, or an event's of its last record; 0 for none
	int place;            // a stream's in its capture
	past before;         // what comes before the stream's next work, or the event, in its capture
	struct object *next;
} object;

// context is a device's primary context.
typedef struct {
	int device;
	int shares;
	unsigned flags;
	unsigned peers; // a bit for each device it may access
	int dead;       // the sticky code of each further call, or 0
} context;

// link is what the way from one device to another does.
enum link { OPEN, CLOSED, LYING };

extern pthread_mutex_t fake_mutex;
extern int fake_count;
extern int fake_initialised;
extern context fake_contexts[MAX_DEVICES];
extern enum link fake_links[MAX_DEVICES][MAX_DEVICES]; // from, to
extern _Thread_local context *fake_current;

// fake_enter counts a call and gives the code that was ordered for it.
int fake_enter(const char *call);

// fake_alive is the code for a call that needs a current context.
int fake_alive(void);

size_t fake_used(int device); // bytes of its memory
object *fake_new(enum kind kind, size_t size);
void fake_drop(object *o);
void fake_drop_all(int device);

// fake_get is the object of the handle if it is of the kind and belongs to the
// current context, else NULL.
object *fake_get(enum kind kind, void *handle);

// fake_known is fake_get for any context.
object *fake_known(enum kind kind, void *handle);

// fake_find is the memory or pinned memory that holds n bytes from p.
object *fake_find(enum kind kind, const void *p, size_t n);

// fake_shared_file is a new file of n bytes for other processes, and fake_map maps n bytes of it from an offset, at an
// address or anywhere.
int fake_shared_file(size_t n);
void *fake_map(void *at, int file, size_t n, size_t from);

// fake_share_event lets other processes open the event.
int fake_share_event(object *event);

// fake_is_open says whether another process has the memory open.
int fake_is_open(const object *memory);

// work is something that a stream does: a copy or a setting of a box of bytes, or
// a kernel.
typedef struct {
	object *function; // of a kernel, else NULL
	unsigned grid[3], block[3], shared;
	int early, cooperative;
	unsigned char arg[MAX_ARG];

	char *dst;
	const char *src; // NULL: all bytes become value
	int value;
	size_t width, height, depth;
	size_t dst_pitch, dst_rows, src_pitch, src_rows;
	int from, to; // devices of a copy to a peer
} work;

// fake_do does the work, or remembers it where the stream is being captured. The
// stream NULL is the default stream.
int fake_do(object *stream, const work *w);

// fake_perform does the work.
int fake_perform(const work *w);

// node is work of a graph, and what comes before it.
typedef struct node {
	int device, stream;
	past before;
	work work;
} node;

// With FAKE_RUNS streams work by themselves, as those of a GPU do: what they are given is queued, and done by
// a thread of each. Without it all is done at once, and these do nothing. The lock is held; what waits gives it
// back meanwhile.
int fake_enqueue(object *stream, const work *w);
int fake_enqueue_nodes(object *stream, const struct node *nodes, size_t count);
int fake_enqueue_record(object *stream, object *event);
int fake_enqueue_wait(object *stream, object *event);
int fake_idle(const object *stream);    // SUCCESS or NOT_READY
int fake_recorded(const object *event); // the same
void fake_drain(object *stream);
void fake_drain_to_end(object *stream); // which does not wait for other processes
void fake_drain_device(int device);
void fake_await(object *event);
double fake_time(const object *event); // of its last record in ms, 0 before
void fake_share_mark(object *event, void *shared); // the mark of an event between processes
void fake_end_queue(object *stream);

// fake_run_nodes does the work of a graph.
int fake_run_nodes(const struct node *nodes, size_t count);

// fake_remember adds work to the capture that the stream is in.
int fake_remember(object *stream, const work *w);

// What capturing means for what is asked of streams and events: the code to
// return, which may leave the capture invalid. fake_record and fake_wait are for
// streams and events in captures or not.
int fake_untouched(const object *stream_or_event);
int fake_record(object *event, object *stream);
int fake_wait(object *stream, object *event);

void fake_log_launch(const work *w);
void fake_log_run(const char *kernel); // which ran to its end

// fake_attribute is an attribute of every device.
int fake_attribute(int which);

#define API __attribute__((visibility("default"))) int

// CALL begins a driver function: it takes the lock for the function's body and
// obeys the orders that a test gave. LIVE also wants a current context.
static inline void fake_unlock(int *unused) {
	(void)unused;
	pthread_mutex_unlock(&fake_mutex);
}

// FAKE_STUCK is the driver function that never returns, if any.
#ifndef FAKE_STUCK
#define FAKE_STUCK ""
#endif

static inline void fake_stick(const char *name) {
	while (strcmp(name, FAKE_STUCK) == 0) pause();
}

#define CALL(name)                                                     \
	fake_stick(name);                                              \
	__attribute__((cleanup(fake_unlock))) int locked_ = 0;         \
	(void)locked_;                                                 \
	pthread_mutex_lock(&fake_mutex);                               \
	do {                                                           \
		int ordered_ = fake_enter(name);                       \
		if (ordered_) return ordered_;                         \
	} while (0)

#define LIVE(name)                                                     \
	CALL(name);                                                    \
	do {                                                           \
		int alive_ = fake_alive();                             \
		if (alive_) return alive_;                             \
	} while (0)

#endif
