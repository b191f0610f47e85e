// An NCCL for tests: communicators of two ranks, whose device memory is memory of the host. Messages go through a socket, in
// order, and larger ones only while both ranks take part. NCCLFAKE names what goes wrong, and after a colon with which call of
// this process that begins, counted from 1: hangs, fails, corrupts, never begins.

#define _GNU_SOURCE

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { SUCCESS, UNHANDLED_CUDA, SYSTEM, INTERNAL, INVALID_ARGUMENT, INVALID_USAGE, REMOTE, IN_PROGRESS };

#define API __attribute__((visibility("default"))) int

typedef struct {
	char bytes[128];
} id;

typedef struct {
	size_t size;
	unsigned magic, version;
	int blocking;
} config;

typedef struct comm {
	int rank, socket, listens;
	id common;
	atomic_int state, aborted;
	pthread_t thread;
	int threads;
	int sends;
	char *bytes;
	size_t count;
} comm;

// The listening sockets of ids that were made here.
static struct {
	id common;
	int socket;
} made[4096];
static int made_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static atomic_int calls;

// goes_wrong reports whether a message goes wrong in that way.
static int goes_wrong(const char *how, int call) {
	const char *fault = getenv("NCCLFAKE");
	if (!fault) return 0;
	size_t n = strlen(how);
	if (strncmp(fault, how, n)) return 0;
	return fault[n] == 0 || (fault[n] == ':' && call >= atoi(fault + n + 1));
}

static struct sockaddr_un address_of(const id *common, socklen_t *size) {
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "%s", common->bytes); // an abstract name
	*size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(common->bytes));
	return at;
}

API ncclGetVersion(int *version) {
	*version = 22705;
	return SUCCESS;
}

API ncclGetUniqueId(id *common) {
	memset(common, 0, sizeof *common);
	pthread_mutex_lock(&lock);
	int n = made_count++;
	pthread_mutex_unlock(&lock);
	if (n >= 4096) return INTERNAL;
	snprintf(common->bytes, sizeof common->bytes, "halox-nccl-%d-%d", getpid(), n);
	socklen_t size;
	struct sockaddr_un at = address_of(common, &size);
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s < 0 || bind(s, (struct sockaddr *)&at, size) || listen(s, 1)) return SYSTEM;
	made[n].common = *common;
	made[n].socket = s;
	return SUCCESS;
}

// ready waits until the socket can be used, or the communicator is aborted.
static int ready(comm *c, int s, short events) {
	while (!c->aborted) {
		struct pollfd p = {.fd = s, .events = events};
		if (poll(&p, 1, 20) > 0) return 1;
	}
	return 0;
}

static void hang(comm *c) {
	while (!c->aborted) usleep(1000);
}

static int connected(comm *c) {
	if (c->rank == 0) {
		if (!ready(c, c->listens, POLLIN)) return SYSTEM;
		c->socket = accept4(c->listens, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		close(c->listens);
		return c->socket < 0 ? SYSTEM : SUCCESS;
	}
	socklen_t size;
	struct sockaddr_un at = address_of(&c->common, &size);
	c->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(c->socket, (struct sockaddr *)&at, size)) return REMOTE;
	return SUCCESS;
}

static void *begin(void *of) {
	comm *c = of;
	if (goes_wrong("never begins", 1)) hang(c);
	int result = connected(c);
	const char *file = getenv("NCCL_DEBUG_FILE");
	FILE *log = file && getenv("NCCL_DEBUG") ? fopen(file, "a") : NULL;
	if (log) {
		fprintf(log, "host:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via FAKE/SOCKET\n");
		fclose(log);
	}
	c->state = result;
	return NULL;
}

API ncclCommInitRankConfig(comm **out, int ranks, id common, int rank, config *with) {
	if (ranks != 2 || rank < 0 || rank > 1 || !with || with->magic != 0xcafebeef || with->blocking != 0) return INVALID_ARGUMENT;
	comm *c = calloc(1, sizeof *c);
	c->rank = rank;
	c->common = common;
	c->socket = c->listens = -1;
	for (int i = 0; i < made_count; i++)
		if (!memcmp(&made[i].common, &common, sizeof common)) c->listens = made[i].socket;
	c->state = IN_PROGRESS;
	*out = c;
	c->threads = 1;
	return pthread_create(&c->thread, NULL, begin, c) ? SYSTEM : IN_PROGRESS;
}

API ncclCommGetAsyncError(comm *c, int *state) {
	if (!c) return INVALID_ARGUMENT;
	*state = c->state;
	return SUCCESS;
}

// move carries bytes through the socket.
static int move(comm *c, char *bytes, size_t count, int sends) {
	while (count) {
		if (!ready(c, c->socket, sends ? POLLOUT : POLLIN)) return SYSTEM;
		ssize_t n = sends ? send(c->socket, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(c->socket, bytes, count, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
		if (n <= 0) return REMOTE;
		bytes += n, count -= (size_t)n;
	}
	return SUCCESS;
}

static int transfer(comm *c) {
	int call = ++calls;
	if (goes_wrong("hangs", call)) hang(c);
	if (goes_wrong("fails", call)) return SYSTEM;
	uint64_t length = c->count;
	int result = move(c, (char *)&length, sizeof length, c->sends);
	if (result) return result;
	if (length != c->count) return INVALID_USAGE;
	result = move(c, c->bytes, c->count, c->sends);
	if (!result && !c->sends && goes_wrong("corrupts", call)) c->bytes[c->count / 2] ^= 1;
	return result;
}

static void *carry(void *of) {
	comm *c = of;
	c->state = transfer(c);
	return NULL;
}

static void join(comm *c) {
	if (c->threads) pthread_join(c->thread, NULL);
	c->threads = 0;
}

static __thread comm *queued;
static __thread int depth;

API ncclGroupStart(void) {
	depth++;
	return SUCCESS;
}

API ncclGroupEnd(void) {
	if (depth-- != 1) return INVALID_USAGE;
	comm *c = queued;
	queued = NULL;
	if (!c) return SUCCESS;
	c->threads = 1;
	return pthread_create(&c->thread, NULL, carry, c) ? SYSTEM : IN_PROGRESS;
}

static int enqueue(comm *c, char *bytes, size_t count, int type, int peer, void *stream, int sends) {
	if (!c || !bytes || !stream || type != 1 || peer != 1 - c->rank) return INVALID_ARGUMENT;
	if (depth != 1 || queued || c->state != SUCCESS) return INVALID_USAGE;
	join(c);
	c->bytes = bytes;
	c->count = count;
	c->sends = sends;
	c->state = IN_PROGRESS;
	queued = c;
	return SUCCESS;
}

API ncclSend(const void *bytes, size_t count, int type, int peer, comm *c, void *stream) {
	return enqueue(c, (char *)bytes, count, type, peer, stream, 1);
}

API ncclRecv(void *bytes, size_t count, int type, int peer, comm *c, void *stream) {
	return enqueue(c, bytes, count, type, peer, stream, 0);
}

API ncclCommFinalize(comm *c) {
	if (!c || c->state != SUCCESS) return INVALID_USAGE;
	return SUCCESS;
}

API ncclCommAbort(comm *c) {
	if (!c) return INVALID_ARGUMENT;
	c->aborted = 1;
	join(c);
	if (c->socket >= 0) close(c->socket);
	free(c);
	return SUCCESS;
}

API ncclCommDestroy(comm *c) { return ncclCommAbort(c); }

__attribute__((visibility("default"))) const char *ncclGetErrorString(int code) {
	static const char *texts[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument",
				      "invalid usage", "remote process exited or there was a network error", "NCCL operation in progress"};
	return code >= 0 && code < 8 ? texts[code] : "unknown result code";
}

__attribute__((visibility("default"))) const char *ncclGetLastError(comm *c) {
	(void)c;
	return getenv("NCCLFAKE") ? "as NCCLFAKE says" : "";
}
